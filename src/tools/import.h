/* Input files of an import: what each format does, and reading records by position. The ranks share the records of an
 * epoch's files evenly, so a file may be read by several. */
#ifndef DELTAFS_TOOLS_IMPORT_H
#define DELTAFS_TOOLS_IMPORT_H

#include <stddef.h>
#include <deltafs/deltafs.h>
#include "tools/cmd.h"
#include "tools/number_text.h"
#include "tools/progress.h"

/* An open input file. */
struct input {
    const char *path;
    int fd;
    uint64_t size;
};

/* Each returns EXIT_OK, or keeps a message with the file's name (text_keep) and returns another exit code. */
int input_open(struct input *in, const char *path);
/* Exactly `n` bytes at `offset`. */
int input_read(const struct input *in, uint64_t offset, void *bytes, size_t n);
void input_close(struct input *in);

/* The options that describe files of the format raw. */
struct import_options {
    const char *schema; /* of a record in the files */
    const char *key;    /* the key's field */
    struct command_number skip, epoch;
};

/* A record in the files: a value of `size` bytes. If the key is in it, at `key_at`, the value that is imported is the
 * rest. Otherwise the keys are an array of their own. With `has_part`, the value that is imported ends in the number of
 * the part (u4) that the file is. */
struct import_layout {
    struct import_options options;
    char *schema; /* of the values that are imported; owned by the layout, as malloc gives it */
    char *record; /* of a record in files of the format raw, without error bounds; the same */
    size_t size;
    int has_key, is_signed, has_part;
    size_t key_at, key_size;
};

#define IMPORT_FACTS 7 /* 56 bytes */

/* What a file has. All are numbers of 64 bits, as they are added up over the ranks. */
struct import_file {
    uint64_t label;
    uint64_t records;
    uint64_t part, parts;         /* which of how many files of the epoch it is (its rank); 0 parts: not known */
    uint64_t kind;                /* files of different kinds (species) do not belong together */
    uint64_t number;              /* of its name among the arguments */
    uint64_t has_no_label;        /* 1: neither an option nor its name says which; `label` is 0 */
    uint64_t facts[IMPORT_FACTS]; /* bytes of its header, for set_facts */
    uint64_t values, keys;        /* offsets of the first record, and of the first key if keys are an array */
};

struct import_format {
    const char *name;
    /* Make a layout of `out->options`. EXIT_USAGE, with the message kept, for a mistake in them. */
    int (*begin)(struct import_layout *out);
    /* Check a file by its first bytes and its size, and describe it. Fails as input_open. */
    int (*inspect)(const struct import_layout *l, const struct input *in, struct import_file *out);
    /* Set the directory's attributes for an epoch, of which these are all files, in the order of their parts. `before`
     * are those of the epoch before, or NULL. Collective. Returns a status. May be NULL. */
    int (*set_facts)(deltafs_dir *d, const struct import_file *f, size_t n, const struct import_file *before,
                     size_t before_n);
};

/* Print a field and its error bound, if it has one, as the next one of a schema, of which `used` bytes are there.
 * Returns how many are there then. */
#define IMPORT_FIELD_ROOM (sizeof ",:f4294967295~" + NUMBER_TEXT_ROOM) /* bytes, beside its name */
size_t import_print_field(char *schema, size_t used, const struct deltafs_field *f);

extern const struct import_format import_vpic;
extern const struct import_format import_raw;

/* Append records from .. to - 1 of a file. Fails as input_open; errors of appending are returned at the epoch's end. */
int import_records(const struct import_layout *l, const struct import_file *f, const struct input *in, uint64_t from,
                   uint64_t to, deltafs_dir *d, struct progress *bar);

#endif
