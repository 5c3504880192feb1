/* Logical files on disk: data log, extent log, session. ON DISK: see io_format.h. */
#ifndef DELTAFS_LOGICAL_FORMAT_LOGICAL_FORMAT_H
#define DELTAFS_LOGICAL_FORMAT_LOGICAL_FORMAT_H

#include "io/io_format.h"

/* Types of structures (byte 4), and kinds of logs (log header), whose `partition` is the writer. */
#define FORMAT_EXTENTS      0xd6
#define FORMAT_FLAT_TRAILER 0xd7
#define LOG_KIND_FRAMES     3
#define LOG_KIND_EXTENTS    4
#define LOG_KIND_FLAT       5

/* Data log of a logical file: a page that begins with the log header and else is zero, then groups. A group is
 * FRAME_GROUP frames and then a page of their checksums, 4 bytes each, 0 for those not written yet. A frame's checksum
 * covers: u32 session  u32 writer  u64 number of the frame in the log, then the frame. The last group may be
 * incomplete. The manifest names both numbers. */
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
#define FILEINDEX_FOLDER    "keys"     /* the index over the file's rows, in the file's folder */
#define FILEINDEX_NEXT      ".compact" /* behind the name of any index: a compacted one that is to replace it */
#define LOG_NAME_FRAMES     "w%08x.data"
#define LOG_NAME_EXTENTS    "w%08x.extents"

#endif
