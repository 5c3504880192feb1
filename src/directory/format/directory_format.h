/* Particle directories on disk: block, value log, leaf, fence, footer, tail. ON DISK: see io_format.h. */
#ifndef DELTAFS_DIRECTORY_FORMAT_DIRECTORY_FORMAT_H
#define DELTAFS_DIRECTORY_FORMAT_DIRECTORY_FORMAT_H

#include "io/io_format.h"

/* Types of structures (byte 4), and kinds of logs (log header); 3 to 5 are those of logical files. */
#define FORMAT_BLOCK    0xd1
#define FORMAT_LEAF     0xd2
#define FORMAT_FENCE    0xd3
#define FORMAT_FOOTER   0xd4
#define FORMAT_TAIL     0xd5
#define FORMAT_VALUES   0xd8
#define LOG_KIND_DATA   1
#define LOG_KIND_INDEX  2
#define LOG_KIND_VALUES 6 /* `partition` is the writer */

/* Block in the data log.
 *  0 u32 checksum   4 u8 type   5 u8 flags   6 u16 records   8 u32 payload bytes   12 u32 payload bytes unpacked
 * 16 u32 partition   20 u32 epoch   24 u32 run   28 u32 block of the run   32 payload */
#define BLOCK_HEADER_SIZE   32
#define BLOCK_RECORDS_MAX   65535
#define BLOCK_FLAG_SNAPPY   0x01
#define BLOCK_FLAG_PLANES   0x02 /* unpacked: bit planes (planes.h); only for values of one size */
#define BLOCK_FLAG_VARIABLE 0x04 /* unpacked: the values' sizes as varints, then the values */
#define BLOCK_FLAG_STRIPS   0x08 /* bit planes, the strips (strips.h) packed by themselves */
#define BLOCK_FLAGS_KNOWN   0x0f
/* Table of strips, in front of them:  0 u32 stored bytes * 2 + flags   4 u32 checksum of the stored bytes */
#define BLOCK_TABLE_ENTRY     8
#define BLOCK_STRIP_SNAPPY    0x00000001u
#define BLOCK_STRIP_SPARSE    0x80000000u /* without constant planes (strip_pack.h) */
#define BLOCK_STRIP_FLAGS     (BLOCK_STRIP_SNAPPY | BLOCK_STRIP_SPARSE)
#define BLOCK_STRIP_LENGTH(e) (((e) & ~BLOCK_STRIP_FLAGS) >> 1)

/* Block in a value log, where records stay with their writer (the manifest's line Local): as one in the data log, but
 * 16 u32 writer   20 u32 epoch   24 u64 its offset in the log
 * and with zeros behind it up to a multiple of VALUES_ALIGN, which its checksum covers. Of keys that are numbers each
 * value has one byte before it, the lowest of the key's hash. What the data log has in place of a value is a
 * number of POSITION_SIZE bytes: the block's offset in units of VALUES_ALIGN, above the writer (of its job) in as many
 * bits as the job's last has, above the number of the record in the block in as many bits as the line says. */
#define VALUES_ALIGN      16
#define VALUES_TAG_SIZE   1
#define POSITION_SIZE     8
#define POSITION_BITS_MAX 16 /* of the record's number */

/* Leaf in the index log.
 *  0 u32 checksum   4 u8 type   5 u8 low bits a key   6 u8 run bits a key   7 u8 flags   8 u32 bytes of the leaf
 * 12 u32 partition   16 u32 epoch   20 u32 segment   24 u32 leaf of the segment   28 u32 records   32 u64 first key
 * 40 u64 last key   48 u32 runs   52 u32 bytes of the run table
 * 56 run table, then the upper bits, then the lower bits, then the run numbers; each begins at a byte; then, with
 * LEAF_FLAG_EPOCHS, for each record whose epoch is not as expected: varint of its number (the first) or what it adds to
 * the one before, varint of its epoch. Expected is 0 of a key's first record in the leaf, and of its others one more
 * than the one before has. */
#define LEAF_HEADER_SIZE 56
#define LEAF_FLAG_LOST   0x01        /* says that records between its keys are lost; refused by all readers */
#define LEAF_FLAG_EPOCHS 0x02        /* where epochs are compacted (the manifest's line Compacted) */
#define LEAF_RECORDS     2048        /* what a writer puts in a leaf, unless one key needs more */
#define LEAF_RECORDS_MAX (1 << 20)   /* what a reader accepts */
#define LEAF_SIZE_MAX    (64u << 20) /* bytes that a reader accepts */

/* Fence in the index log, behind the leaves of its segment.
 *  0 u32 checksum   4 u8 type   5 3 zero   8 u32 bytes of the fence   12 u32 partition   16 u32 epoch   20 u32 segment
 * 24 u32 leaves   28 u32 zero   32 u64 offset of the first leaf
 * 40 for each leaf: varint of its first key (the first) or what it adds to the one before, varint of its bytes */
#define FENCE_HEADER_SIZE 40
#define FENCE_SIZE_MAX    (64u << 20) /* bytes that a reader accepts */

/* Footer in the index log, behind the fence; the last segment of an epoch has FOOTER_FLAG_LAST.
 *  0 u32 checksum   4 u8 type   5 u8 flags   6 u8 key shift   7 u8 zero   8 u32 partition   12 u32 epoch   16 u32
 * segment 20 u32 leaves   24 u32 runs   28 u32 bytes of the fence   32 u64 offset of the fence   40 u64 records 48 u64
 * raw bytes   56 u64 offset of the footer before, 0 if none   64 u64 first key   72 u64 last key 80 u64 end of the
 * segment in the data log   88 u64 offset of this footer   96 magic */
#define FOOTER_SIZE      104
#define FOOTER_FLAG_LAST 0x01
#define FOOTER_SHIFT_MAX 63 /* of keys: a segment has them without so many of their lowest bits */
#define FOOTER_MAGIC     "dltfsFTR"

/* Tail at the end of a closed index log: for each segment of each epoch, in order, a copy of its footer and, unless
 * TAIL_FLAG_NO_FENCES, of its fence; then the trailer:
 *  0 u32 checksum of the tail from its start up to here, then of the trailer behind this field   4 u8 type   5 u8 flags
 *  6 u16 zero   8 u32 partition   12 u32 footers   16 u64 bytes of the tail, trailer included   24 magic */
#define TAIL_TRAILER_SIZE   32
#define TAIL_FLAG_NO_FENCES 0x01
#define TAIL_MAGIC          "dltfsEND"

/* Partition P (8 hexadecimal digits) has its logs in the folder of its two last digits. */
#define LOG_NAME_DATA  "%02x/p%08x.data"
#define LOG_NAME_INDEX "%02x/p%08x.index"

/* Writer W has its value log in the folder of W modulo the number of these folders. */
#define LOG_NAME_VALUES   "%02x/v%08x.values"
#define LOCAL_WRITERS_MAX (1u << 20) /* of a job */

#endif
