/* A small model of the shuffle (mpi/shuffle.h): what may happen next in a job of a few ranks, one step at a time. An
 * explorer goes through all that can happen, in whatever order (test_credit.c).
 *
 * A record is one message, a long value two, which follow one another. Ways and channels are those of the real router.
 * A ring takes `ring` messages. A channel over the network has `credits`: a message takes one from the sender, which
 * the receiver owes when it has taken the message, gives back in a step of its own, and which is then under way for as
 * long as it likes. A rank's memtable takes `memtable` records, then stalls until the disk has taken them.
 *
 * In the shuffle a rank looks after others only while it waits; here it may at any time within a round. That adds
 * orders of events, and hides no deadlock: who does not wait can take a step of its own, so the job is not stuck.
 * Nothing is said of how long a message is under way between nodes: not to have taken it yet comes to the same. */
#ifndef DELTAFS_CREDIT_MODEL_H
#define DELTAFS_CREDIT_MODEL_H

#include "mpi/shuffle/router.h"

#define CREDIT_RANKS    8
#define CREDIT_RECORDS  32
#define CREDIT_CHANNELS 160
#define CREDIT_ROUNDS   3
#define CREDIT_BYTES    512 /* of a state, at most */

/* Faults that may be built in, to see that they are found. */
enum credit_fault {
    FAULT_NONE,
    FAULT_ONE_RING,  /* all stages share one ring between two ranks of a node */
    FAULT_EARLY_END, /* a rank puts its marks without waiting for those of earlier stages */
    FAULT_NO_HOLD,   /* another's record may go between the pieces of a value */
    FAULT_NO_CREDIT, /* messages leave without credits */
};

struct credit_setting {
    enum router_kind kind;
    const char *nodes; /* the number of ranks of each, a digit each */
    const char
        *records; /* "03 12+ | 30": one from rank 0 to 3, a long one from 1 to 2; in the next round one from 3 to 0 */
    unsigned ring, credits, memtable;
    enum credit_fault fault;
};

struct credit_channel {
    uint8_t from, to, stage, is_net;
    uint8_t source;           /* its number as the holder of another */
    uint8_t room;             /* messages */
    uint16_t at;              /* in the state */
    int16_t go[CREDIT_RANKS]; /* by destination: the channel by which what it brings goes on; -1: none */
};

struct credit_record {
    uint8_t to, round;
};

enum credit_kind { STEP_CREDIT, STEP_GIVE, STEP_DISK, STEP_FINISH, STEP_TAKE, STEP_MARK, STEP_APPEND, STEP_KINDS };

struct credit_step {
    uint8_t kind, i; /* of which channel or rank */
};

struct credit_model {
    struct credit_setting setting;
    struct layout layout;
    struct router router;
    uint32_t rounds, records, channels, bytes, actions;
    struct credit_record record[CREDIT_RECORDS];
    uint8_t message[CREDIT_ROUNDS][CREDIT_RANKS][2 * CREDIT_RECORDS]; /* that a rank appends, in order; ends with 0 */
    struct credit_channel channel[CREDIT_CHANNELS];
    int16_t first[CREDIT_RANKS][CREDIT_RANKS]; /* the channel by which a record leaves its origin; -1: none */
    struct credit_step step[3 * CREDIT_RANKS + 4 * CREDIT_CHANNELS];
    const char *violation; /* what was found to be wrong */
};

void credit_init(struct credit_model *m, const struct credit_setting *s);
void credit_fini(struct credit_model *m);

/* A state is m->bytes bytes. */
void credit_begin(const struct credit_model *m, uint8_t *state);
/* Take step number `action`, of m->actions. Returns 0 if it cannot be taken now, or -1 if it violates what must hold:
 * m->violation says what. */
int credit_step(struct credit_model *m, const uint8_t *from, uint32_t action, uint8_t *to);
/* Whether a step that can be taken takes nothing from any other, now or later, and changes nothing that another
 * looks at but to make it possible: all others may wait for it, and nothing that can happen is missed. */
int credit_is_free(const struct credit_model *m, const uint8_t *state, uint32_t action);
/* Whether all has come to its end. */
int credit_is_complete(const struct credit_model *m, const uint8_t *state);
void credit_describe(const struct credit_model *m, const uint8_t *state, uint32_t action, char *text, size_t n);

#endif
