/* deltafs export: the rows of a directory as a file of another format. cmd_export.c is the command. export_make.c opens
 * the directory, export_read.c reads the rows, export_file.c makes the file. Each format is a file export_FORMAT.c that
 * defines a `const struct export_format`, and a row of the table in cmd_export.c. A format sees rows, not directories:
 * it begins, takes rows as often as there are some, and ends. All functions that return an int print a message if they
 * fail, and return the exit code. */
#ifndef DELTAFS_TOOLS_EXPORT_H
#define DELTAFS_TOOLS_EXPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <deltafs/deltafs_query.h>
#include "tools/aside.h"
#include "tools/cmd.h"
#include "tools/key_list.h"

/* A column of the rows. Number 0 is the key and number 1 the epoch, as u8; then come the columns of a value. */
struct export_column {
    const char *name; /* unique; a column of values that is called key or epoch is value.key or value.epoch */
    char kind;        /* 'f', 'i', 'u', 'S' or 'V', as in a schema */
    uint32_t size;    /* bytes, or 0: bytes of any number ('V': keys of bytes, values without a schema) */
    uint32_t offset;  /* in a value */
};

enum { EXPORT_KEY, EXPORT_EPOCH, EXPORT_VALUES };

struct export
{
    const char *command; /* for messages */
    deltafs_dir *dir;    /* for attributes and epochs */
    int has_bytes_keys;
    uint32_t value_size; /* of all values, or 0 if sizes differ */
    int has_keys;        /* keys are given: the rows are trajectories */
    uint64_t expected;   /* rows, without keys; fewer if some are damaged */
    char *schema;        /* of the values; "" if there is none */
    deltafs_schema *fields;
    struct export_column *column;
    size_t columns;
    const char *name; /* of the file, for messages */
    const char *path; /* of the file that is to be written: hidden until it is complete. NULL: standard output */
    FILE *file;       /* the same, open and empty */
    void *state;      /* of the format: state_size bytes, zero at first */
};

struct export_format {
    const char *name;
    int is_text;     /* it can go to standard output */
    int is_by_epoch; /* trajectories also come by epoch, then by key; otherwise by key, then by epoch */
    size_t state_size;
    int (*begin)(struct export *x);
    /* Rows are valid during the call. There is at least one call, and at least one row. */
    int (*rows)(struct export *x, const struct deltafs_record *row, size_t count);
    int (*end)(struct export *x);      /* not called after a failure */
    void (*release)(struct export *x); /* free what `state` has; always called after begin. NULL: nothing to do */
};

/* Set schema, fields, column and columns. */
int export_columns_make(struct export *x, const char *schema);
void export_columns_free(struct export *x);

/* Bytes of column `c` of a row, as they are stored (numbers: little-endian); *size gets their number. `number` is room
 * for a key or label. */
const void *export_cell(const struct export *x, size_t c, const struct deltafs_record *row, uint8_t number[8],
                        size_t *size);
/* Column `c` of `count` rows, one after the other; not for a column whose size is 0. */
void export_gather(const struct export *x, size_t c, const struct deltafs_record *row, size_t count, void *out);

/* The value of a cell of a column of numbers. */
double export_number(const struct export_column *c, const uint8_t *cell);

/* Write to x->file. */
int export_write(struct export *x, const void *bytes, size_t n);
/* Say that the file cannot be written, for the reason in errno; returns the exit code. */
int export_fail_write(const struct export *x);

/* ---- The file (export_file.c) ---- */

struct export_file {
    int is_forced, has_old;
    mode_t mode; /* of the file that is replaced */
    char to[PATH_MAX], folder[PATH_MAX], aside[ASIDE_ROOM];
};

/* Make the hidden file for `name`, or take standard output if that is "-"; sets name, path and file of *x. Signals are
 * held back from now on. */
int export_file_make(struct export_file *f, const char *name, struct export *x);
/* Give it its name if `is_complete`, or remove it. */
int export_file_finish(struct export_file *f, struct export *x, int is_complete);

/* ---- The rows (export_read.c) ---- */

struct export_source {
    const char *fields; /* these two as in struct deltafs_select_options */
    const struct deltafs_range *range;
    struct key_list *keys; /* NULL: all */
    uint64_t rows;         /* set: how many there were */
    int is_damaged;        /* set: some could not be read; the message is out */
    int is_not_found;      /* set: a key has no rows; the message is out */
};

/* Give all rows to the format. */
int export_read(struct export_source *s, struct export *x, const struct export_format *format);

/* ---- All of it (export_make.c) ---- */

/* What the command line says. */
struct export_request {
    const char *keys_file, *fields, *to;
    struct command_range epochs;
    const struct export_format *format;
    int is_hex, is_forced;
};

/* Open the directory, and collect the keys: of the operands behind the first, and of the file. x->command is set. */
int export_open(struct export *x, const struct export_request *r, const struct command_call *c, struct key_list *keys);
/* Write the file. */
int export_make(struct export *x, const struct export_request *r, struct key_list *keys);
void export_close(struct export *x, struct key_list *keys);

extern const struct export_format export_csv, export_jsonl, export_npy, export_npz, export_openpmd, export_parquet,
    export_vtkhdf;

#endif
