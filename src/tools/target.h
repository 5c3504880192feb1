/* What a path names: a directory, a logical file, or something that is not of DeltaFS. */
#ifndef DELTAFS_TOOLS_TARGET_H
#define DELTAFS_TOOLS_TARGET_H

#include <sys/stat.h>
#include <deltafs/deltafs_fileindex.h>
#include <deltafs/deltafs_logical.h>
#include "tools/report.h"

enum target_kind {
    TARGET_LOGICAL,   /* a logical file */
    TARGET_DIRECTORY, /* a DeltaFS directory */
    TARGET_FOLDER,    /* of the file system, with anything in it */
    TARGET_FILE,      /* a plain file */
    TARGET_OTHER,     /* a device, a pipe, a socket */
};

struct target {
    enum target_kind kind;
    struct stat stat; /* behind symbolic links */
    /* After target_open: the handle of a logical file or directory, what it says of itself, and the bytes of its files.
     */
    deltafs_logical *file;
    deltafs_dir *dir;
    struct deltafs_logical_stat of_file;
    struct deltafs_stat of_dir;
    uint64_t stored;
    int is_index;  /* a directory that is an index, */
    uint64_t rows; /* of so many rows */
};

/* Each of these prints a message if it fails, and returns the exit code. */

/* Refuse an empty name. */
int target_refuse_empty(void);

/* Find out what is at `path`. */
int target_look(const char *path, struct target *out);

/* The same, and open it for reading if it is of DeltaFS. Warns if a crash has taken bytes of a logical file. If it
 * cannot be opened, out->kind says what it is. Close with target_close. */
int target_open(const char *path, struct target *out);
void target_close(struct target *t);

/* Refuse a new name that is within a DeltaFS directory or a logical file. */
int target_check_new(const char *path);

/* Open a logical file, with the same warning; or a directory. Both for reading. */
int target_open_logical(const char *path, deltafs_logical **out);
int target_open_directory(const char *path, deltafs_dir **out);

/* Open the index at `path`, or of the file there; or else a directory. The other handle is NULL. */
int target_open_rows(const char *path, deltafs_fileindex **index, deltafs_dir **dir);

/* Open a directory that is not an index, which has no records of its own. */
int target_open_records(const char *path, deltafs_dir **out);

/* Open the index at `path`, or of the file there; *out is NULL if there is none. */
int target_open_index(const char *path, deltafs_fileindex **out);

/* Refuse `path`, because it is not a logical file; say what reads it instead. */
int target_refuse(const char *path, enum target_kind kind);

/* One word for what it is: "logical", "directory", "index", "folder", "file", "other". */
const char *target_word(const struct target *t);

/* Whether there is a logical file; anything else, trouble too, is none, and says nothing. */
int target_is_logical(const char *path);

/* Whether there is a namespace. */
int target_is_namespace(const char *path);
/* Whether it is the name of a snapshot, and not a path where something is. */
int target_is_snapshot(const char *name);

/* Print all that is known about an open target. */
void target_report(struct report *r, const struct target *t);

#endif
