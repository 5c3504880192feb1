/* What ring, link and shuffle share: the form of a message, and the two ends of a channel.
 *
 * Message, or chunk of a ring, little-endian but for keys, which are as the machine has them:
 *     0 u32 round   4 u32 number of this message in the round, from 0   8 u32 bytes, this header included
 *     12 u32 records that end in it   16 u16 flags   18 u16 credits that go back (network)   20 u32 zero
 * then items:
 *     u64 key   u32 value size   u32 offset of this piece in the value   u32 bytes of this piece   the piece
 * or, if the directory's values have one size and that is short, only key and value. A value that no buffer takes whole
 * goes in pieces; between them nothing else goes through the channel. */
#ifndef DELTAFS_MPI_CHANNEL_H
#define DELTAFS_MPI_CHANNEL_H

#include <stdint.h>

#define MESSAGE_HEADER 24
#define MESSAGE_END    1 /* flag: the round's last message of this channel */

#define ITEM_HEADER 20

struct channel_out {
    uint8_t *bytes;      /* of the buffer that fills; NULL: none */
    uint32_t used, room; /* bytes; as long as there is no buffer, used is room */
    uint32_t records;    /* that end in it; not counted where items are key and value alone */
    uint32_t sent;       /* messages of the round */
    uint32_t holder;     /* whose value in pieces is going through; 0: nobody's */
    uint32_t index;      /* among the rings, or the network's channels */
    uint8_t stage;
};

struct channel_in {
    const uint8_t *bytes; /* of the message that is being taken in; NULL: none */
    uint32_t at, end;
    uint32_t records;
    uint32_t moved; /* bytes of the piece at `at` that have gone on already */
    uint32_t received;
    uint32_t index;
    uint8_t stage;
    uint8_t has_ended;
};

/* All tags of messages on the library's communicator, which nothing else uses; and one more for each stage. */
enum mpi_tag { MPI_TAG_RECORDS = 1, MPI_TAG_CREDITS = 9 };

/* Bytes of a channel at one of its ends, both directions. */
#define CHANNEL_BYTES (sizeof(struct channel_out) + sizeof(struct channel_in))

/* Where records for the rank itself are collected, to be stored together. */
#define OWN_BYTES (16u << 10)

/* What the producer and the consumer of a ring share; each has a cache line that only it writes. */
#define RING_LINE   64
#define RING_HEADER (2 * RING_LINE)

/* What the network keeps for a channel besides its messages; and for each request, with what MPI says of it, at most.
 */
#define LINK_REQUEST 12
struct link_channel {
    int32_t peer;
    uint16_t stage;
    uint16_t credits;   /* messages that may leave */
    uint16_t owed;      /* credits to give back */
    uint8_t out;        /* the buffer to send from next */
    uint8_t in;         /* the buffer that is taken in next */
    uint32_t back[2];   /* credits on their way, in and out */
    uint8_t arrived;    /* bit for each buffer received into */
    uint8_t is_leaving; /* bit for each buffer sent from */
};

#endif
