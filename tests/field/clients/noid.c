/* A client of proton-C that never names its container, so that its container-id is empty: `noid HOST PORT`. It prints
   `attached`, or the error of its connection. */

#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/proactor.h>
#include <proton/session.h>
#include <proton/transport.h>
#include <stdio.h>

static void begin(pn_connection_t *connection) {
    pn_connection_open(connection);
    pn_session_t *session = pn_session(connection);
    pn_session_open(session);
    pn_link_t *link = pn_receiver(session, "receiver");
    pn_terminus_set_address(pn_link_source(link), "anywhere");
    pn_link_open(link);
}

static void report(pn_condition_t *condition) {
    if (pn_condition_is_set(condition))
        printf("%s: %s\n", pn_condition_get_name(condition), pn_condition_get_description(condition));
}

static int handle(pn_event_t *event) {
    switch (pn_event_type(event)) {
    case PN_CONNECTION_INIT:
        begin(pn_event_connection(event));
        return 1;
    case PN_LINK_REMOTE_OPEN:
        printf("attached\n");
        pn_connection_close(pn_event_connection(event));
        return 1;
    case PN_CONNECTION_REMOTE_CLOSE:
        report(pn_connection_remote_condition(pn_event_connection(event)));
        pn_connection_close(pn_event_connection(event));
        return 1;
    case PN_TRANSPORT_CLOSED:
        report(pn_transport_condition(pn_event_transport(event)));
        return 1;
    case PN_PROACTOR_INACTIVE:
        return 0;
    default:
        return 1;
    }
}

int main(int count, char **words) {
    char address[PN_MAX_ADDR];
    pn_proactor_t *proactor = pn_proactor();
    if (count != 3) return 2;
    pn_proactor_addr(address, sizeof address, words[1], words[2]);
    pn_proactor_connect2(proactor, NULL, NULL, address);
    for (int going = 1; going;) {
        pn_event_batch_t *batch = pn_proactor_wait(proactor);
        for (pn_event_t *event; going && (event = pn_event_batch_next(batch));) going = handle(event);
        pn_proactor_done(proactor, batch);
    }
    pn_proactor_free(proactor);
    return 0;
}
