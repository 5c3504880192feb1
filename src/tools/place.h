/* What a name given to a command stands for, and logical files that are opened by one. */
#ifndef DELTAFS_TOOLS_PLACE_H
#define DELTAFS_TOOLS_PLACE_H

#include <sys/stat.h>
#include <deltafs/deltafs_logical.h>

enum place_kind {
    PLACE_LOGICAL,   /* a logical file */
    PLACE_DIRECTORY, /* a DeltaFS directory */
    PLACE_FOLDER,    /* of the file system, with anything in it */
    PLACE_FILE,      /* a plain file */
    PLACE_OTHER,     /* a device, a pipe, a socket */
};

struct place {
    enum place_kind kind;
    struct stat stat; /* behind symbolic links */
};

/* One word for a kind: "logical", "directory", "folder", "file", "other". */
const char *place_word(enum place_kind kind);

/* See what is there. On failure the message is out, and the exit code returned. */
int place_look(const char *path, struct place *out);

/* Whether there is a logical file; anything else, trouble too, is none, and says nothing. */
int place_is_logical(const char *path);

/* Say that `path` is not a logical file, and what reads it instead; returns the exit code. */
int place_refuse(const char *path, enum place_kind kind);

/* Open a logical file for reading. On failure the message is out, and the exit code returned. */
int place_open(const char *path, deltafs_logical **out);
/* The same, for what is to be read; says if a crash has taken something of it. */
int place_open_whole(const char *path, deltafs_logical **out);

/* What there is to know about a logical file: lines of a word and its value; members of a JSON object, one a line, the
 * last without its newline. */
void place_print(const struct deltafs_logical_stat *s);
void place_print_json(const struct deltafs_logical_stat *s);
/* The same of what is no part of DeltaFS. */
void place_print_plain(const struct place *p, int is_json);

#endif
