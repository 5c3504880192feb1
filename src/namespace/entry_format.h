/* Namespaces on disk. ON DISK: see io_format.h.
 *
 * A namespace is a folder with the text log NAMESPACE and tables. A table is a directory whose keys are numbers: the
 * upper half of a key is the upper half of the hash of the folder's id, the lower half is the lower half of the hash of
 * the name. Beside it may be its data, a directory too: the bytes of files.
 *
 * Record of a table:
 *  0 u8 type   1 u8 bytes of the name   2 u16 mode (permissions)   4 u64 table, 12 u64 number: id of the folder
 * 20 u64 table, 28 u64 number: id of the entry   36 u64 stamp   44 name
 * and, unless it says that the entry is removed, varints: uid, gid, mtime and atime (each as its difference to the
 * stamp, coded as 2d, or -2d - 1 if it is below 0), size; of a file of one byte or more also the place of its bytes; of
 * a symbolic link the target.
 *
 * The bytes of a file are in chunks of CHUNK_SIZE, but for the last one. A chunk is a record of the data of some table;
 * its place is u64 table, u64 key; table 0 and key 0: all its bytes are zero. A chunk whose record is shorter than it
 * goes on with zeros. The place of a file's bytes is that of its chunk if it has one; if it has more, that of the list
 * of their places, which are one behind the other, cut into records of CHUNK_SIZE with keys that follow each other. */
#ifndef DELTAFS_NAMESPACE_ENTRY_FORMAT_H
#define DELTAFS_NAMESPACE_ENTRY_FORMAT_H

#include "io/io_format.h"

#define NAMESPACE_NAME "NAMESPACE"
#define COMPACTED_NAME "COMPACTED"
#define TABLE_NAME     "t%016llx"
#define TABLE_DATA     ".data"    /* behind it */
#define TABLE_JOURNAL  ".journal" /* behind it */
#define PIN_NAME       "PIN."     /* before the UUID of a snapshot, or of a namespace on top */
#define VIEW_NAME      "VIEW."    /* before a UUID: the lease of a process that has it open for reading */

#define REGISTRY_NAME     "REGISTRY" /* in a registry, which is a folder of snapshots */
#define SNAPSHOT_NAME     "SNAPSHOT" /* in a folder with the snapshot's name */
#define SNAPSHOT_NAME_MAX 200

#define ENTRY_HEADER_SIZE 44
#define ENTRY_NAME_MAX    255
#define ENTRY_TARGET_MAX  4095
#define ENTRY_SIZE_MAX    (ENTRY_HEADER_SIZE + ENTRY_NAME_MAX + ENTRY_TARGET_MAX + 80)

/* Types. */
#define ENTRY_REMOVED 0
#define ENTRY_FILE    1
#define ENTRY_FOLDER  2
#define ENTRY_LINK    3

#define JOURNAL_MAGIC       0x314a4644 /* "DFJ1" */
#define JOURNAL_HEADER_SIZE 32
#define JOURNAL_FLAG_SYNCED 1 /* all groups before were durable when this one was written */
#define JOURNAL_RECORD_SIZE 13
#define JOURNAL_ENTRY       1
#define JOURNAL_CHUNK       2

#define CHUNK_SIZE (256u << 10)
#define PLACE_SIZE 16
#define FILE_MAX   (UINT64_C(1) << 40)

#endif
