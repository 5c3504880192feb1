/* Small containers of all sorts, made in a folder, and what must be read from them: for the campaigns that remove, swap
 * and link their files (torture_files.c), and that let memory run out (torture_memory.c). files_make.c makes them,
 * files_read.c reads them. */
#ifndef DELTAFS_FILES_H
#define DELTAFS_FILES_H

#include <limits.h>
#include <deltafs/deltafs_fileindex.h>
#include <deltafs/deltafs_logical.h>
#include "torture_model.h"
#include "torture_rng.h"

#define FILES_STATES 4 /* moments at which more is in the container than before */
#define FILES_KEYS   48
#define FILES_BYTES  20000 /* of a logical file, at most */
#define FILES_VALUE  64

enum files_kind { FILES_DIRECTORY, FILES_LOGICAL, FILES_INDEX, FILES_INSIDE, FILES_KINDS };
extern const char *const files_kind_names[FILES_KINDS];

/* How a container is made; texts are options' values. */
struct files_shape {
    enum files_kind kind;
    uint64_t seed;
    size_t states;
    const char *partitions, *keys, *value_size, *codec, *layout, *threads, *sync;
    uint32_t volumes;       /* 0: none */
    int is_flat, is_killed; /* sessions have their index in one file; the last writer is killed before it closes */
};
void files_shape_make(struct files_shape *s, uint64_t seed);

/* A container, in a folder of its own with its volumes and the files that it indexes. */
struct files {
    struct files_shape shape;
    char root[200], path[240];
    size_t state;   /* how much is in it: epochs, sessions, indexed files */
    size_t maybe;   /* and at most so much, if calls failed */
    uint64_t label; /* of a directory's last epoch */
    /* Of a logical file: what it contains now, and what it would if the last call that failed took effect. */
    uint8_t bytes[FILES_BYTES], other[FILES_BYTES];
    uint8_t past[FILES_STATES + 2][FILES_BYTES]; /* in earlier states */
    size_t size, other_size;
    int is_emptied;  /* what was in it before is gone */
    size_t cut;      /* or what was beyond that */
    int may_lack;    /* sessions, and nothing tells */
    int was_emptied; /* by the writer that was killed, before it wrote */
};
void files_init(struct files *f, const struct files_shape *s, const char *root);

/* Make it, or bring it to its next state. Returns the status of the first call that failed; `message` is of that. */
int files_next(struct files *f, int is_killed, char message[1024]);
/* The paths of its volumes, as the option has them. */
const char *files_volumes(const struct files *f, char text[512]);
deltafs_options *files_options(const struct files *f);

/* What files_make.c writes. */
uint64_t files_records(const struct files_shape *s, size_t i); /* of epoch `i`, from 0: one of each key below that */
uint64_t files_label(size_t i);
size_t files_value(const struct files_shape *s, uint64_t label, uint64_t key, uint8_t value[FILES_VALUE]);
struct files_row {
    uint64_t id;
    float x;
} __attribute__((packed));
size_t files_rows(const struct files_shape *s, size_t i); /* of table `i` */
struct files_row files_row_of(size_t i, size_t k);

/* Read it in all ways. `may_fail`: DELTAFS_OK, a status that calls may fail with, or FILES_ANY; what they hand out must
 * be right even so. `least` is the lowest state that may be read as if it were all. */
#define FILES_ANY 1
struct files_reading {
    int has_failed; /* some call did */
    char message[1024];
};
void files_check(const struct files *f, size_t least, int may_fail, struct files_reading *out,
                 struct torture_verdict *v);

/* ---- Trees (files_tree.c) ---- */

/* Entries below a folder, by their paths relative to it. */
struct files_entries {
    size_t count;
    struct files_entry {
        char path[PATH_MAX];
        char kind; /* 'f' a file, 'd' a folder, 'l' a symbolic link */
    } entry[512];
};
void files_list(const char *root, struct files_entries *out);
/* The path FOLDER/NAME, in `path`. */
char *files_join(char path[PATH_MAX], const char *folder, const char *name);
/* Copy a file, a link, or a folder with all in it, as cp -a does. */
void files_copy(const char *from, const char *to);
/* Whether both files are there and have the same bytes, or neither is there. */
int files_same(const char *a, const char *b);
/* A number of all that is in a folder: names, sizes, bytes and where links lead. */
uint64_t files_sum(const char *root);
/* End the program: it cannot do its work. */
__attribute__((format(printf, 1, 2), noreturn)) void files_die(const char *fmt, ...);

#endif
