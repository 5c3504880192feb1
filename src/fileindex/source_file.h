/* A file whose rows are indexed, open for reading: a plain file or a logical one. */
#ifndef DELTAFS_FILEINDEX_SOURCE_FILE_H
#define DELTAFS_FILEINDEX_SOURCE_FILE_H

#include <deltafs/deltafs_logical.h>
#include "base/private.h"
#include "logical/write/captured_keys.h"
#include "fileindex/sources.h"

struct key_file {
    char kind; /* 'f' or '-'; 0: not open */
    struct io_file plain;
    deltafs_logical *logical;
    const char *hdf5;        /* the library for the values of datasets, as for h5lib_load; the opener may set it */
    struct h5values *values; /* from the first such value on */
};

/* How a logical file is opened: by one process, or by all of a group together. */
typedef int (*key_file_open_fn)(void *ctx, const char *path, deltafs_logical **out);

/* What is at `path`: 'f' or '-'; DELTAFS_ERR_NOT_FOUND, or _NOT_DELTAFS if it is neither. */
int key_file_kind(struct io *io, const char *path, char *kind, struct error *e);
/* Open what is of that kind; `open` and `ctx` may be NULL. */
int key_file_open(struct key_file *f, struct io *io, const char *path, char kind, key_file_open_fn open, void *ctx,
                  struct error *e);
void key_file_close(struct key_file *f);
/* Whether it is a logical file that has lost bytes, which read as zeros: a key of 0, say. */
int key_file_is_incomplete(const struct key_file *f);
/* What tells later whether the file is as it is now. With `settle` that is so for any later write. */
int key_file_identity(struct key_file *f, int settle, struct source_identity *out, struct error *e);
int source_identity_is_same(const struct source_identity *a, const struct source_identity *b);
/* `n` extents one after another, all of which are within the file. */
int key_file_read(struct key_file *f, size_t n, const struct deltafs_extent *extent, void *bytes, struct error *e);
/* Values of a column that has a dataset: those of rows `first` to first + rows - 1, as elements of c->stride bytes, in
 * which the value is at c->offset. `path` must stay valid until the file is closed. */
int key_file_elements(struct key_file *f, const struct deltafs_column *c, const char *path, uint64_t first,
                      uint64_t rows, void *out, struct error *e);
/* Adds the file's operations that its own io counts. */
void key_file_io_stat(const struct key_file *f, struct deltafs_io_stat *sum);

/* The keys of rows first .. first + n - 1, whose values stand one each `stride` bytes in `bytes`. A negative one is
 * DELTAFS_ERR_SCHEMA, with the file's name, and the place of the first row in it. */
int key_column_decode(const struct deltafs_column *c, const uint8_t *bytes, size_t n, uint64_t place, const char *path,
                      uint64_t *key, struct error *e);
/* Hand the keys of rows `from` to `end` to `fn`, many at a time. A status other than DELTAFS_OK ends that. */
typedef int (*key_batch_fn)(void *arg, uint64_t first, const uint64_t *key, size_t n, struct error *e);
int key_column_scan(struct key_file *f, const struct deltafs_column *c, uint64_t from, uint64_t end, const char *path,
                    key_batch_fn fn, void *arg, struct error *e);
/* What this process wrote to a logical file in a session of its group, all of which has been closed. */
struct key_writer {
    uint8_t uuid[16]; /* of the file's container */
    uint32_t session, writer;
    const struct captured_keys *keys; /* NULL: none */
};

/* As key_column_scan, for one process of the group that wrote the file last: the rows whose keys it wrote itself and
 * nobody has overwritten and, of rows `from` to `end`, those whose keys nobody of the group has written. If the ranges
 * of all processes cover the column's `rows` rows, each row is one process's. Captured keys are not read. If another
 * file is at the path by now, all of `from` to `end` are read, and no others. */
int key_column_scan_written(struct key_file *f, const struct deltafs_column *c, uint64_t rows, uint64_t from,
                            uint64_t end, const struct key_writer *w, const char *path, key_batch_fn fn, void *arg,
                            struct error *e);
/* One value, little-endian then. */
void column_value(const struct deltafs_column *c, const uint8_t *bytes, uint8_t *out);

#endif
