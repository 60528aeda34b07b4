/* Two workers take the last place at the same moment: do both get it?

Each worker claims a slot for the key (its digest), counts itself in it (its number), and then reads the other one's slot. The memory is
as weak as any that Linux runs on: the steps of a worker take effect in any order, also before one that stands earlier, unless one of
the guards below keeps it back. Another worker's steps may come between any two. -DNO_FENCE=1 leaves put_in_order out, which stands between
the own number and the slot of the other. */

#ifndef NO_FENCE
#define NO_FENCE 0
#endif

bool digest[2];
bool number[2];
byte places;
byte ended;

proctype worker(byte me)
{
    bool digest_written, number_written, digest_read, number_read, known, counted;
    do
    :: !digest_written -> atomic { digest[me] = true; digest_written = true }
    :: !number_written -> atomic { number[me] = true; number_written = true }
    :: !digest_read && (NO_FENCE || (number_written && digest_written)) ->
        atomic { known = digest[1 - me]; digest_read = true }
    :: !number_read && (NO_FENCE || (number_written && digest_written)) ->
        atomic { counted = number[1 - me]; number_read = true }
    :: digest_written && number_written && digest_read && number_read -> break
    od;
    atomic {
        if
        :: !(known && counted) -> places++
        :: else
        fi;
        assert(places <= 1);
        ended++
    }
}

init { atomic { run worker(0); run worker(1) } }
