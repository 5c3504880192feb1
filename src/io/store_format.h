/* Everything on disk has its magic, tags, sizes and offsets here. ON DISK: do not change a number; add new ones, and
 * keep retired ones listed. deltafs-format(5) describes the same byte by byte. All fields are little-endian.
 *
 * Every checksum is CRC-32C, begun with the CRC-32C of the container's UUID (16 bytes) instead of 0: bytes of another
 * container never pass. It covers all bytes of its structure behind itself. */
#ifndef DELTAFS_IO_STORE_FORMAT_H
#define DELTAFS_IO_STORE_FORMAT_H

#define FORMAT_VERSION 1

#define FORMAT_UUID_SIZE 16

/* First byte behind the checksum of each structure in a log. */
enum format_type {
    FORMAT_LOG_HEADER = 0xd0,
    FORMAT_BLOCK = 0xd1,
    FORMAT_LEAF = 0xd2,
    FORMAT_FENCE = 0xd3,
    FORMAT_FOOTER = 0xd4,
    FORMAT_TAIL = 0xd5,
    FORMAT_EXTENTS = 0xd6,
    FORMAT_FLAT_TRAILER = 0xd7,
    FORMAT_VALUES = 0xd8,
};

/* Log header: at offset 0 of each log.
 *  0 u32 checksum   4 u8 type   5 u8 kind of log   6 u16 version   8 u32 partition   12 u32 zero   16 UUID */
#define LOG_HEADER_SIZE 32
#define LOG_KIND_DATA   1
#define LOG_KIND_INDEX  2
/* Of logical files; `partition` is the writer. */
#define LOG_KIND_FRAMES  3
#define LOG_KIND_EXTENTS 4
#define LOG_KIND_FLAT    5
#define LOG_KIND_VALUES  6 /* `partition` is the writer */

/* Block in the data log.
 *  0 u32 checksum   4 u8 type   5 u8 flags   6 u16 records   8 u32 payload bytes   12 u32 payload bytes unpacked
 * 16 u32 partition   20 u32 epoch   24 u32 run   28 u32 block of the run   32 payload */
#define BLOCK_HEADER_SIZE   32
#define BLOCK_RECORDS_MAX   65535
#define BLOCK_FLAG_SNAPPY   0x01
#define BLOCK_FLAG_PLANES   0x02 /* unpacked: bit planes (planes.h); only for values of one size */
#define BLOCK_FLAG_VARIABLE 0x04 /* unpacked: the values' sizes as varints, then the values */
#define BLOCK_FLAGS_KNOWN   0x07

/* Block in a value log, where records stay with their writer (the manifest's line Local): as one in the data log, but
 * 16 u32 writer   20 u32 epoch   24 u64 its offset in the log
 * and with zeros behind it up to a multiple of VALUES_ALIGN, which its checksum covers. Of keys that are numbers each
 * value has one byte before it, the lowest of the key's hash. What stands in the data log in place of a value is a
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
 * 56 run table, then the upper bits, then the lower bits, then the run numbers; each begins at a byte */
#define LEAF_HEADER_SIZE 56
#define LEAF_FLAG_LOST   0x01        /* says that records between its keys are lost; refused by all readers */
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

/* Data log of a logical file: a page that begins with the log header and else is zero, then groups. A group is
 * FRAME_GROUP frames and then a page of their checksums, 4 bytes each, 0 for those not written yet. A frame's checksum
 * covers: u32 session  u32 writer  u64 number of the frame in the log, then the frame. The last group may be cut
 * short. */
#define FRAME_SIZE  4096
#define FRAME_GROUP 1024

/* Extent log of a writer of a logical file: a log header with the writer in place of the partition, then batches.
 *  0 u32 checksum of the header alone   4 u8 type   5 u8 flags   6 u16 zero   8 u32 bytes of the batch   12 u32 session
 * 16 u32 writer   20 u32 entries   24 u64 order   32 u64 end of the data log, as a position
 * 40 u32 checksum of the entries   44 entries
 * Each entry: u8 tag, varint offset (zigzag, counted from where the entry before ends); of data varint size; with
 * EXTENT_TAG_RUN varint count, varint stride - size; with EXTENT_TAG_GAPS varint position stride - size; with
 * EXTENT_TAG_MOVED varint position (zigzag, counted from where the entry before ends in the data log). */
#define BATCH_HEADER_SIZE 44
#define BATCH_FLAG_LAST   0x01
#define BATCH_ENTRIES_MAX (1u << 20)  /* what a writer puts in a batch */
#define BATCH_SIZE_MAX    (64u << 20) /* bytes that a reader accepts */
#define EXTENT_TAG_KIND   0x03        /* 0: data, 1: truncate, 2: extend */
#define EXTENT_TAG_RUN    0x04        /* several pieces */
#define EXTENT_TAG_GAPS   0x08        /* which do not follow each other without gaps in the data log */
#define EXTENT_TAG_MOVED  0x10        /* it does not begin where the entry before ends there */
#define EXTENT_TAGS_KNOWN 0x1f
#define EXTENT_ENTRY_MAX  (1 + 6 * 10) /* bytes */

/* Index of a session in one file: a log header (LOG_KIND_FLAT, the session in place of the partition), batches,
 * trailer: 0 u32 checksum   4 u8 type   5 3 zero   8 u32 session   12 u32 zero   16 u64 bytes of the batches   24 magic
 */
#define FLAT_TRAILER_SIZE 32
#define FLAT_MAGIC        "dltfsFLT"

#define FORMAT_SECTOR 512 /* bytes that a disk writes as a whole: what a crash leaves of what was not synced */

/* Manifest: lines "WORD TEXT... ~CHECKSUM\n", the checksum eight hexadecimal digits over all before " ~", begun with 0.
 * A reader that does not know a WORD skips the line if it begins with a small letter, and refuses the container if it
 * begins with a capital. */
#define MANIFEST_NAME     "MANIFEST"
#define MANIFEST_NEW_NAME "MANIFEST.new"
#define KEPT_SUFFIX       ".damaged" /* of a file as it was before it was repaired; a second one is .damaged.2 */

/* A logical file's session N has its own folder; of a session, writer W's logs are in the folder of W modulo its number
 * of buckets, if it has any. */
#define MANIFEST_ASIDE_NAME "MANIFEST.new-%s" /* of a UUID of its own */
#define LOCK_NAME           "LOCK"            /* of atomic mode; locked, and else nothing */
#define LOCK_FILE           0                 /* its byte that who writes has for itself, and readers share; */
#define LOCK_GATE           1                 /* and the one before that: a writer has it while it waits, too */
#define LOCK_BYTES          2
#define SESSION_FOLDER      "s%08x"
#define SESSION_NAME        "SESSION" /* lines as a manifest's */
#define SESSION_NEW_NAME    "SESSION.new"
#define SESSION_GONE_NAME   "SESSION.removed" /* what SESSION is called while the session is being removed */
#define SESSION_INDEX_NAME  "INDEX"
#define SESSION_INDEX_NEW   "INDEX.new"
#define SESSION_BUCKETS_MAX 256u
#define SESSION_WRITERS_MAX (1u << 24)
#define LOG_NAME_FRAMES     "w%08x.data"
#define LOG_NAME_EXTENTS    "w%08x.extents"

/* Where a container's buckets are, on each of the volumes that it is spread over. */
#define VOLUME_FOLDER "deltafs.%s" /* of its UUID */

/* Who writes the container; no part of what is read (lease.h). */
#define LEASE_NAME "LEASE"

/* In an index: what is indexed in it; lines as a manifest's. A value is the number of a group of rows. */
#define SOURCES_NAME      "SOURCES"
#define FILEINDEX_SCHEMA  "group:u4"
#define FILEINDEX_VALUE   4
#define FILEINDEX_GROUP   256   /* rows of a group, at most; */
#define FILEINDEX_SLICE   16384 /* bytes that a group's keys span, at most, unless rows are many */
#define FILEINDEX_GROUP_1 64    /* the same of tables that do not say how many rows their groups have */
#define FILEINDEX_SLICE_1 4096
#define FILEINDEX_ROW_MAX (UINT64_C(1) << 38)
#define FILEINDEX_FOLDER  "keys"  /* of a logical file, in it; */
#define FILEINDEX_BESIDE  ".keys" /* of a plain one, behind its name */

/* Partition P (8 hexadecimal digits) has its logs in the folder of its two last digits. */
#define BUCKET_COUNT   256u
#define BUCKET_NAME    "%02x"
#define LOG_NAME_DATA  "%02x/p%08x.data"
#define LOG_NAME_INDEX "%02x/p%08x.index"

/* Writer W has its value log in the folder of W modulo the number of these folders. */
#define LOG_NAME_VALUES   "%02x/v%08x.values"
#define LOCAL_WRITERS_MAX (1u << 20) /* of a job */

#endif
