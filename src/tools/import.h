/* What an importer for one format of input files does. Ranks share the records of an epoch's files evenly, so a file
 * may be read by several. */
#ifndef DELTAFS_TOOLS_IMPORT_H
#define DELTAFS_TOOLS_IMPORT_H

#include <deltafs/deltafs.h>
#include "tools/input.h"

/* Records of `size` bytes read at a time. */
static inline size_t import_chunk(size_t size)
{
    size_t n = ((size_t)4 << 20) / size;

    return n < 1 ? 1 : n > 32768 ? 32768 : n;
}

/* The options of all importers. */
struct import_options {
    const char *schema; /* raw: of a record in the files */
    const char *key;    /* raw: the key's field */
    uint64_t skip;      /* raw: bytes before the first record of each file */
    int has_epoch;      /* raw: whether the label is given */
    uint64_t epoch;
};

/* What a file is. All are numbers of 64 bits, as they are added up over the ranks. */
struct import_file {
    uint64_t label;
    uint64_t records;
    uint64_t part, parts; /* which of how many files of the epoch it is (its rank); 0 parts: not known */
    uint64_t kind;        /* files of different kinds (species) do not belong together */
};

struct import_format {
    const char *name;
    /* Prepare; *state is the importer's own. 0, or -1 with a message (a mistake in the options). */
    int (*begin)(const struct import_options *o, void **state, char message[INPUT_MESSAGE_MAX]);
    /* The schema of the values, for the directory. */
    const char *(*schema)(const void *state);
    /* Check a file by its first bytes and its size, and describe it. */
    int (*inspect)(void *state, const struct input *in, struct import_file *out, char message[INPUT_MESSAGE_MAX]);
    /* Bytes of a record in the files. */
    size_t (*record)(const void *state);
    /* Append records first .. first + n - 1, at most import_chunk(record). 0, or -1 with a message about the file;
     * errors of appending come out at the epoch's end. */
    int (*append)(void *state, const struct input *in, uint64_t first, size_t n, deltafs_dir *d,
                  char message[INPUT_MESSAGE_MAX]);
    void (*end)(void *state);
};

extern const struct import_format import_vpic;
extern const struct import_format import_raw;

#endif
