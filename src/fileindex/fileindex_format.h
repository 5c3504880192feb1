/* Indexes over files, on disk. ON DISK: see io_format.h. */
#ifndef DELTAFS_FILEINDEX_FILEINDEX_FORMAT_H
#define DELTAFS_FILEINDEX_FILEINDEX_FORMAT_H

#include "logical/format/logical_format.h" /* FILEINDEX_FOLDER */

/* A value is the number of a group of rows. */
#define FILEINDEX_SCHEMA  "group:u4"
#define FILEINDEX_VALUE   4
#define FILEINDEX_GROUP   256   /* rows of a group, at most; */
#define FILEINDEX_SLICE   16384 /* bytes that a group's keys span, at most, unless rows are many */
#define FILEINDEX_GROUP_1 64    /* the same of tables that do not say how many rows their groups have */
#define FILEINDEX_SLICE_1 4096
#define FILEINDEX_ROW_MAX (UINT64_C(1) << 38)
#define FILEINDEX_BESIDE  ".keys" /* of a plain file, behind its name; of a logical one: FILEINDEX_FOLDER */

#endif
