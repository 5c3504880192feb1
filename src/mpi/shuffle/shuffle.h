/* The shuffle: brings each record from the rank that has it to the one that owns its key's partition, by the router's
 * way, over rings within a node and links between nodes.
 *
 * Records are collected in place, in the buffer that leaves. A rank in the middle of a way takes what comes in by one
 * channel and puts it into the next; where that is full, the channel it came by waits, and others go on. So memory is
 * what the plan says and no more: who is slow slows those who send to him, to their very source. What waits in one
 * stage waits for later stages only, and at last for the receiver's storage: there is no circle
 * (tests/mpi/test_credit.c).
 *
 * A round ends with a mark in every channel, stage by stage: a rank puts it into the channels of a stage when it has
 * nothing more to send and all channels into it, of all stages before, have ended. Messages are numbered, so that
 * none can be missing; a rank that has all marks has all records that are for it, and nobody had to be asked. After its
 * mark nothing is taken from a channel until the next round begins here: who is ahead waits.
 *
 * Calls are one at a time. None waits for MPI; those that must wait for others call `wait`. */
#ifndef DELTAFS_MPI_SHUFFLE_H
#define DELTAFS_MPI_SHUFFLE_H

#include <mpi.h>
#include <stddef.h>
#include "directory/format/partition.h"
#include "mpi/shuffle/plan.h"

struct shuffle;

struct shuffle_config {
    const struct plan *plan; /* with the number of partitions */
    uint32_t rank, ranks;    /* of comm */
    MPI_Comm comm;           /* the library's own, in the order of the layout */
    int cache;               /* see rings_cache */
    int64_t value_size;      /* -1: any */
    /* Store records of this rank's partitions; returns how many, the first of them. Fewer than n: storage is busy. */
    size_t (*store)(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                    size_t value_stride, size_t size);
    /* Called again and again while something must be waited for; calls shuffle_progress. */
    void (*wait)(void *arg);
    /* Called when MPI fails: the shuffle is dead then, and the others wait for it. May be NULL. */
    void (*lose)(void *arg, const struct error *e);
    void *arg;
};

/* Why a rank that has records to give away had to wait. */
enum shuffle_stall { STALL_RING, STALL_CREDIT, STALL_SEND, STALL_STORAGE, STALL_END, STALLS };

struct shuffle_stat {
    uint64_t messages[STAGES], bytes[STAGES]; /* sent */
    uint64_t records[STAGES];                 /* the same: a record counts in each stage that it goes through */
    uint64_t stalls[STALLS], stall_ns[STALLS];
    uint64_t memory; /* bytes */
};

/* Local. */
int shuffle_create(const struct shuffle_config *c, struct shuffle **out, struct error *e);
/* Collective over `node`, the ranks of this one's node; see rings_share. */
int shuffle_share(struct shuffle *s, MPI_Comm node, struct error *e);
/* How records are placed from the next round on, or the first: the same on all ranks. At first: by their hash. */
void shuffle_place(struct shuffle *s, const struct partitioner *by);
/* Collective over the node if it was shared, but where the ranks have lost each other. NULL is fine. */
void shuffle_destroy(struct shuffle *s);

/* Bytes that it takes at most: what the plan says, and a value that came in pieces. */
uint64_t shuffle_memory(const struct shuffle *s);

/* Send records to their owners. Waits where there is no room. */
void shuffle_put(struct shuffle *s, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                 size_t value_stride, size_t size);
/* So many bytes are kept here instead: from time to time that calls shuffle_progress, as shuffle_put does. */
void shuffle_pass(struct shuffle *s, size_t bytes);
/* Receive, forward and store what can be, without waiting. Returns whether anything was, or has been sent since the
 * last call. */
int shuffle_progress(struct shuffle *s);
/* End the round: returns when all records for this rank are stored, and all that went through it have left. */
void shuffle_end(struct shuffle *s);
/* Begin the next one; what comes is stored from now on. */
void shuffle_begin(struct shuffle *s);
/* All ranks have ended their last round: wait until nothing is under way. */
void shuffle_wind_up(struct shuffle *s);

/* Take the first error since the last was taken: MPI's, a message that breaks the protocol, no memory for a value. It
 * spoils the round. But for MPI's, which stays, messages still flow after it, so that no peer is left waiting. */
int shuffle_take_error(struct shuffle *s, struct error *e);
/* Stop: nothing is sent or received any more, and nothing waits. For when the ranks have lost each other. */
void shuffle_kill(struct shuffle *s);

void shuffle_get_stat(const struct shuffle *s, struct shuffle_stat *out);
/* Lives as long as the shuffle. */
const struct plan *shuffle_plan(const struct shuffle *s);

#endif
