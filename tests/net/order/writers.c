/* Two threads write a number of their own and read that of the other, turn by turn: in how many turns do both miss the other's?
 * The argument is the number of turns; FENCE says whether put_in_order stands in between. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "operations.h"

/* One slot for each turn, the writers' numbers a page apart, so that no turn waits for another. */
enum { APART = 4096 / sizeof(double) };
static double *numbers;
static char *seen[2];
static long turns;
static atomic_long begun[2];

static void *take_turns(void *which) {
    long me = (long) which, turn;
    for (turn = 0; turn < turns; turn++) {
        atomic_store(&begun[me], turn + 1);
        while (atomic_load(&begun[1 - me]) <= turn) {}
        trouter_write_number(numbers, me * APART + turn % 64 * 2 * APART, (double) turn + 1);
        if (FENCE) trouter_put_in_order();
        seen[me][turn] = trouter_read_number(numbers, (1 - me) * APART + turn % 64 * 2 * APART) >= (double) turn + 1;
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[2];
    long which, turn, missed = 0;
    turns = count > 1 ? atol(words[1]) : 0;
    numbers = calloc(64 * 2 * APART, sizeof *numbers);
    for (which = 0; which < 2; which++) seen[which] = calloc((size_t) turns + 1, 1);
    for (which = 0; which < 2; which++) pthread_create(&threads[which], NULL, take_turns, (void *) which);
    for (which = 0; which < 2; which++) pthread_join(threads[which], NULL);
    for (turn = 0; turn < turns; turn++) missed += !seen[0][turn] && !seen[1][turn];
    printf("%ld\n", missed);
    return 0;
}
