/* What a shuffle is, for the files that are it: shuffle_open.c makes it, shuffle_move.c moves records. */
#ifndef DELTAFS_MPI_SHUFFLE_STATE_H
#define DELTAFS_MPI_SHUFFLE_STATE_H

#include "directory/format/block.h"
#include "mpi/shuffle/channel.h"
#include "mpi/shuffle/link.h"
#include "mpi/shuffle/ring.h"
#include "mpi/shuffle/shuffle.h"

struct shuffle {
    struct shuffle_config config;
    struct plan plan;
    struct rings *rings;
    struct link *link;
    struct channel_out *out; /* all channels: of stage 0, of stage 1, ...; then one for this rank itself */
    struct channel_in *in;
    uint8_t *own;    /* what the latter collects, where items are key and value alone */
    uint32_t own_at; /* up to here it is stored */
    uint32_t base[STAGES], channels;
    uint16_t *table;      /* of each partition the channel that its records go by from here; `channels`: its own */
    uint32_t stage_shift; /* from a channel of stage OUT to that of stage MID with the same peer */
    uint32_t whole;       /* bytes of an item that is key and value alone; 0: items have their sizes */
    struct partitioner by;
    uint32_t own_first, own_count; /* this rank's partitions */
    uint32_t round;
    size_t since_progress; /* bytes put */
    int is_open, is_dead;
    int has_sent; /* since shuffle_progress last looked */
    struct error error;
    /* The round's end: */
    int has_ended;                /* this rank has nothing more to send */
    uint32_t open[STAGES];        /* channels into this rank that have not ended */
    uint32_t end_stage, end_next; /* where the next mark goes */
    /* A long value on its way to this rank's storage: */
    uint8_t *value;
    uint64_t value_key;
    size_t value_size, value_got;
    uint32_t value_holder;
    struct shuffle_stat stat;
    enum shuffle_stall why; /* what the last channel that was full lacks */
};

/* Computes the channel by which records of a partition go on from here: s->channels if this rank owns it. */
uint32_t shuffle_compute(const struct shuffle *s, uint32_t partition);

#endif
