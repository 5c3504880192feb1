/* What all containers on disk have in common: log headers, text logs, buckets, volumes, leases. ON DISK: do not change
 * a number; add new ones, and keep retired ones listed. deltafs-format(5) describes the same byte by byte. All fields
 * are little-endian. directory_format.h, logical_format.h and fileindex_format.h have the rest.
 *
 * Every checksum is CRC-32C, begun with the CRC-32C of the container's UUID (16 bytes) instead of 0: bytes of another
 * container never pass. It covers all bytes of its structure behind itself. */
#ifndef DELTAFS_IO_IO_FORMAT_H
#define DELTAFS_IO_IO_FORMAT_H

#define FORMAT_VERSION   1
#define FORMAT_UUID_SIZE 16
#define FORMAT_SECTOR    512 /* bytes that a disk writes as a whole: what a crash leaves of what was not synced */

/* Log header: at offset 0 of each log.
 *  0 u32 checksum   4 u8 type   5 u8 kind of log   6 u16 version   8 u32 partition or writer   12 u32 zero   16 UUID
 * Every structure in a log has its type at byte 4. */
#define LOG_HEADER_SIZE   32
#define FORMAT_LOG_HEADER 0xd0 /* types d1 to d5 and d8 are those of directories, d6 and d7 those of logical files */

/* Manifest: lines "WORD TEXT... ~CHECKSUM\n", the checksum eight hexadecimal digits over all before " ~", begun with 0.
 * A reader that does not know a WORD skips the line if it begins with a small letter, and refuses the container if it
 * begins with a capital. */
#define MANIFEST_NAME      "MANIFEST"
#define VALUE_INDEX_FOLDER "by"   /* of indexes by value, directories themselves */
#define NEW_SUFFIX         ".new" /* of a file that is to replace another */
#define MANIFEST_NEW_NAME  MANIFEST_NAME NEW_SUFFIX
#define MANIFEST_COPY_NAME "MANIFEST.copy" /* of a directory: the same lines, each written once MANIFEST has it */
#define SOURCES_NAME       "SOURCES"       /* of an index: what is indexed in it; lines as a manifest's */
#define KEPT_SUFFIX        ".damaged"      /* of a file as it was before it was repaired; a second one is .damaged.2 */

/* A container's buckets: folders among which its files are spread. */
#define BUCKET_COUNT 256u
#define BUCKET_NAME  "%02x"

/* Where a container's buckets are, on each of the volumes that it is spread over. */
#define VOLUME_FOLDER "deltafs.%s" /* of its UUID */
/* In each of these buckets: a text log of one line, "Owner inode=N born=N path=PATH": the container's folder, the time
 * of its birth in nanoseconds (0: not known), and its path when the bucket was made, which may have blanks. */
#define OWNER_NAME "OWNER"

/* Who writes the container; no part of what is read (lease.h). */
#define LEASE_NAME "LEASE"

#endif
