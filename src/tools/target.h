/* What a command's argument names, and logical files that a command opens. */
#ifndef DELTAFS_TOOLS_PLACE_H
#define DELTAFS_TOOLS_PLACE_H

#include <sys/stat.h>
#include <deltafs/deltafs_logical.h>

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
};

/* One word for a kind: "logical", "directory", "folder", "file", "other". */
const char *target_word(enum target_kind kind);

/* See what is there. On failure the message is out, and the exit code returned. */
int target_look(const char *path, struct target *out);

/* Whether there is a logical file; anything else, trouble too, is none, and says nothing. */
int target_is_logical(const char *path);

/* Say that `path` is not a logical file, and what reads it instead; returns the exit code. */
int target_refuse(const char *path, enum target_kind kind);

/* Open a logical file for reading. On failure the message is out, and the exit code returned. */
int target_open(const char *path, deltafs_logical **out);
/* The same, for what is to be read; says if a crash has taken something of it. */
int target_open_whole(const char *path, deltafs_logical **out);

/* What there is to know about a logical file: lines of a word and its value; members of a JSON object, one a line, the
 * last without its newline. */
void target_print(const struct deltafs_logical_stat *s);
void target_print_json(const struct deltafs_logical_stat *s);
/* The same of what is no part of DeltaFS. */
void target_print_plain(const struct target *p, int is_json);

#endif
