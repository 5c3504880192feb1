#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/sized.h"
#include "directory/dir.h"
#include "directory/read/reader_open.h"
#include "directory/read/scan.h"
#include "directory/write/error_bounds.h"
#include "directory/write/writer.h"
#include "io/io_format.h"

#define FOLLOWED 1024 /* records that are appended at a time where others follow: a processor's cache has them */

struct deltafs_dir {
    struct error error;
    const struct dir_transport *transport; /* NULL: a reader */
    char *path;                            /* a writer's, for messages */
    char *schema;                          /* a writer's */
    void *ctx;
    struct writer *writer;
    enum option_keys keys;
    int64_t value_size;
    struct partitioner by;               /* a writer's, if it is the caller's own */
    struct bounds bounds;                /* of the schema */
    struct buffer blob;                  /* a key of bytes with its value, as they are stored; or values, rounded */
    const struct dir_follower *follower; /* NULL: none */
    void *followers;
    struct reader *reader;
};

const char *deltafs_errmsg(const deltafs_dir *dir)
{
    return dir ? dir->error.text : deltafs_private_thread_error()->text;
}

int dir_end(const deltafs_dir *d, int status)
{
    if (status != DELTAFS_OK && d)
        *deltafs_private_thread_error() = d->error;
    return status;
}

int deltafs_private_dir_attach(const struct dir_transport *transport, void *ctx, struct writer *writer,
                               const struct writer_config *c, deltafs_dir **out, struct error *e)
{
    deltafs_dir *d = calloc(1, sizeof *d);

    if (!d)
        return error_no_memory(e, sizeof *d, "a handle");
    *d = (deltafs_dir){.error.text = "no error",
                       .transport = transport,
                       .ctx = ctx,
                       .writer = writer,
                       .keys = c->keys,
                       .value_size = c->caller_size,
                       .by = {.partitions = c->partitions, .fn = c->caller.fn, .arg = c->caller.arg}};
    uint64_t label;
    if (deltafs_private_writer_has_truncated(writer, &label))
        snprintf(d->error.text, sizeof d->error.text,
                 "%s: the epoch labelled %llu is discarded: its job wrote all of it, but not its commit "
                 "(to commit it, run deltafs repair before reopening)",
                 c->path, (unsigned long long)label);
    d->path = strdup(c->path);
    d->schema = strdup(c->schema);
    int status = d->path && d->schema ? buffer_reserve(&d->blob, deltafs_private_writer_blob(c), "a record", e)
                                      : error_no_memory(e, strlen(c->path) + strlen(c->schema), "a path");
    if (status == DELTAFS_OK)
        status = bounds_init(&d->bounds, c->schema, e);
    if (status == DELTAFS_OK)
        *out = d;
    else
        deltafs_private_dir_free(d);
    return status;
}

void deltafs_private_dir_free(deltafs_dir *d)
{
    if (!d)
        return;
    buffer_fini(&d->blob);
    bounds_fini(&d->bounds);
    free(d->path);
    free(d->schema);
    free(d);
}

void deltafs_private_dir_explain_async(uint64_t label, struct error *e)
{
    error_set(e, e->status,
              "%s; this concerns the epoch labelled %llu, which ended before; it is discarded, and so "
              "are the records appended since",
              e->text, (unsigned long long)label);
}

enum option_keys dir_keys(const deltafs_dir *d)
{
    return d->transport ? d->keys : d->reader->manifest.keys;
}

int dir_must_write(deltafs_dir *d, const char *call)
{
    if (!d)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: no directory", call);
    if (!d->transport)
        error_set(&d->error, DELTAFS_ERR_MODE, "%s: %s is open for reading; open it with deltafs_reopen to write to it",
                  call, d->reader->path);
    return dir_end(d, d->transport ? DELTAFS_OK : DELTAFS_ERR_MODE);
}

static int append_check(deltafs_dir *d, const char *call, enum option_keys kind, const void *keys, const void *values,
                        size_t size)
{
    if (!keys || (size > 0 && !values))
        return error_set(&d->error, DELTAFS_ERR_INVALID, "%s: no %s given", call, keys ? "values" : "keys");
    if (d->keys != kind)
        return error_set(&d->error, DELTAFS_ERR_MODE, "%s: the keys of %s are %s", call, d->path,
                         d->keys == KEYS_BYTES ? "bytes; append to it by deltafs_append_bytes"
                                               : "numbers; append to it by deltafs_append or deltafs_append_many");
    if (d->value_size >= 0 && size != (size_t)d->value_size)
        return error_set(&d->error, DELTAFS_ERR_SIZE,
                         "%s: a value of %zu bytes; every value of this directory has %lld", call, size,
                         (long long)d->value_size);
    if (size > BLOCK_VALUE_MAX)
        return error_set(&d->error, DELTAFS_ERR_SIZE, "%s: a value of %zu bytes; at most %u are possible", call, size,
                         BLOCK_VALUE_MAX);
    return DELTAFS_OK;
}

/* What the caller's partitioner returns must be partitions. */
static int append_check_partitions(deltafs_dir *d, const char *call, size_t n, const uint8_t *keys, size_t key_stride)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t key;
        memcpy(&key, keys + i * key_stride, sizeof key);
        uint32_t partition = d->by.fn(key, d->by.partitions, d->by.arg);
        if (partition >= d->by.partitions)
            return error_set(&d->error, DELTAFS_ERR_INVALID,
                             "%s: the partitioner returns %u for the key %llu; %s has the partitions 0 to %u", call,
                             partition, (unsigned long long)key, d->path, d->by.partitions - 1);
    }
    return DELTAFS_OK;
}

/* `call` is the public function, for messages. */
static int append_numbers(deltafs_dir *d, const char *call, size_t n, const void *keys, size_t key_stride,
                          const void *values, size_t value_stride, size_t size)
{
    int status = dir_must_write(d, call);

    if (status != DELTAFS_OK)
        return status;
    if (n == 0)
        return DELTAFS_OK;
    status = append_check(d, call, KEYS_U64, keys, values, size);
    if (status == DELTAFS_OK && d->by.fn)
        status = append_check_partitions(d, call, n, keys, key_stride);
    if (status != DELTAFS_OK) {
        d->transport->fail(d->ctx, &d->error);
        return dir_end(d, status);
    }
    const uint8_t *key = keys, *value = values;
    const int is_rounded = d->bounds.count > 0;
    const size_t most = is_rounded ? d->blob.capacity / size : d->follower ? FOLLOWED : n;
    for (size_t some; n > 0 && status == DELTAFS_OK; n -= some) {
        some = n < most ? n : most;
        const uint8_t *kept = is_rounded ? d->blob.bytes : value;
        size_t stride = is_rounded ? size : value_stride;
        if (is_rounded)
            bounds_copy(&d->bounds, d->blob.bytes, value, some, value_stride, size);
        status = d->transport->append(d->ctx, some, key, key_stride, kept, stride, size, &d->error);
        if (status == DELTAFS_OK && d->follower)
            d->follower->append(d->followers, some, key, key_stride, kept, stride);
        key += some * key_stride;
        value += size > 0 ? some * value_stride : 0;
    }
    return dir_end(d, status);
}

int deltafs_append_many(deltafs_dir *d, size_t n, const void *keys, size_t key_stride, const void *values,
                        size_t value_stride, size_t size)
{
    return append_numbers(d, "deltafs_append_many", n, keys, key_stride, values, value_stride, size);
}

int deltafs_append(deltafs_dir *d, uint64_t key, const void *value, size_t size)
{
    return append_numbers(d, "deltafs_append", 1, &key, 0, value, 0, size);
}

static int append_bytes(deltafs_dir *d, const void *key, size_t key_size, const void *value, size_t size)
{
    size_t n = 1 + key_size + size;
    int status = append_check(d, "deltafs_append_bytes", KEYS_BYTES, key, value, size);

    if (status != DELTAFS_OK)
        return status;
    if (key_size < 1 || key_size > KEY_BYTES_MAX)
        return error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_append_bytes: a key of %zu bytes; it has 1 to %d",
                         key_size, KEY_BYTES_MAX);
    if (n > BLOCK_VALUE_MAX)
        return error_set(&d->error, DELTAFS_ERR_SIZE,
                         "deltafs_append_bytes: a key and value of %zu bytes; at most %u are possible", key_size + size,
                         BLOCK_VALUE_MAX - 1);
    d->blob.bytes[0] = (uint8_t)key_size;
    memcpy(d->blob.bytes + 1, key, key_size);
    if (size > 0)
        memcpy(d->blob.bytes + 1 + key_size, value, size);
    bounds_round(&d->bounds, d->blob.bytes + 1 + key_size, 1, 0);
    uint64_t hash = hash_bytes(key, key_size);
    return d->transport->append(d->ctx, 1, (const uint8_t *)&hash, 0, d->blob.bytes, 0, n, &d->error);
}

int deltafs_append_bytes(deltafs_dir *d, const void *key, size_t key_size, const void *value, size_t size)
{
    int status = dir_must_write(d, "deltafs_append_bytes");

    if (status != DELTAFS_OK)
        return status;
    status = append_bytes(d, key, key_size, value, size);
    if (status != DELTAFS_OK)
        d->transport->fail(d->ctx, &d->error);
    return dir_end(d, status);
}

uint64_t dir_last_records(const deltafs_dir *d)
{
    return deltafs_private_writer_last_records(d->writer);
}

void dir_cover_epochs(deltafs_dir *d, uint32_t epochs)
{
    deltafs_private_writer_cover(d->writer, epochs);
}

void dir_skip_covered(deltafs_dir *d)
{
    d->reader->skips_covered = 1;
}

int dir_renew_lease(deltafs_dir *d, struct error *e)
{
    return deltafs_private_writer_check_lease(d->writer, e);
}

int dir_confirm_lease(deltafs_dir *d, struct error *e)
{
    return deltafs_private_writer_confirm_lease(d->writer, e);
}

int deltafs_last_label(deltafs_dir *d, uint64_t *label)
{
    const struct manifest *m;
    int is_there;

    if (!d || !label)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_last_label: dir and label must be given");
    if (d->transport) {
        is_there = deltafs_private_writer_last_label(d->writer, label);
    } else {
        m = &d->reader->manifest;
        is_there = m->epoch_count > 0;
        if (is_there)
            *label = m->epoch[m->epoch_count - 1].label;
    }
    if (!is_there)
        error_set(&d->error, DELTAFS_ERR_NOT_FOUND, "%s: no epoch is committed yet",
                  d->transport ? d->path : d->reader->path);
    return dir_end(d, is_there ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
}

int deltafs_epoch_cancel(deltafs_dir *d, const char *why)
{
    struct error e;
    int status = dir_must_write(d, "deltafs_epoch_cancel");

    if (status != DELTAFS_OK)
        return status;
    error_set(&e, DELTAFS_ERR_CANCELLED, "%s", why ? why : "the epoch was cancelled");
    d->transport->fail(d->ctx, &e);
    return DELTAFS_OK;
}

/* The followers write their epochs while this one is written, which is committed before theirs are. */
static int dir_end_followed(deltafs_dir *d, uint64_t label, int is_new)
{
    int status = d->transport->epoch_end(d->ctx, label, 1, &d->error), is_ending = status == DELTAFS_OK && is_new;

    /* Records that the option old_label keeps for the next label stay with the followers, too. */
    if (status == DELTAFS_ERR_LABEL && deltafs_private_writer_old_label(d->writer) == OLD_LABEL_KEEP)
        return status;
    d->follower->epoch_end(d->followers, label, is_ending);
    if (is_ending)
        status = d->transport->epoch_wait(d->ctx, NULL, &d->error);
    d->follower->epoch_wait(d->followers, label, is_ending && status == DELTAFS_OK);
    return status;
}

int deltafs_epoch_end(deltafs_dir *d, uint64_t label)
{
    int status = dir_must_write(d, "deltafs_epoch_end");
    uint64_t last = 0;

    if (status != DELTAFS_OK)
        return status;
    int is_new = !deltafs_private_writer_last_label(d->writer, &last) || label > last;
    return dir_end(d, d->follower ? dir_end_followed(d, label, is_new)
                                  : d->transport->epoch_end(d->ctx, label, 0, &d->error));
}

int dir_epoch_end(deltafs_dir *d, uint64_t label, struct error *e)
{
    return d->transport->epoch_end(d->ctx, label, 1, e);
}

int dir_epoch_wait(deltafs_dir *d, const struct error *refused, struct error *e)
{
    return d->transport->epoch_wait(d->ctx, refused, e);
}

size_t dir_hold_room(const deltafs_dir *d, size_t size)
{
    return deltafs_private_writer_hold_room(d->writer, size);
}

int dir_place(deltafs_dir *d, struct error *e)
{
    return d->transport->place(d->ctx, e);
}

void dir_follow(deltafs_dir *d, const struct dir_follower *follower, void *ctx)
{
    d->follower = follower;
    d->followers = ctx;
}

int deltafs_epoch_wait(deltafs_dir *d)
{
    int status = dir_must_write(d, "deltafs_epoch_wait");

    return status == DELTAFS_OK ? dir_end(d, d->transport->epoch_wait(d->ctx, NULL, &d->error)) : status;
}

const char *dir_schema(const deltafs_dir *d)
{
    return d->schema;
}

struct error *dir_error(deltafs_dir *d)
{
    return &d->error;
}

int dir_set_attribute(deltafs_dir *d, const struct deltafs_attribute *a, int refused)
{
    return dir_end(d, d->transport->set_attribute(d->ctx, a, refused, &d->error));
}

int deltafs_close(deltafs_dir *d)
{
    int status = DELTAFS_OK;

    if (!d)
        return DELTAFS_OK;
    if (d->transport)
        status = d->transport->close(d->ctx, deltafs_private_thread_error());
    if (d->follower)
        status =
            error_first(status, d->follower->close(d->followers, error_after(status, deltafs_private_thread_error())));
    reader_close(d->reader);
    deltafs_private_dir_free(d);
    return status;
}

/* ---- Reading ---- */

int deltafs_open(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    struct error *e = deltafs_private_thread_error();

    if (!path || !*path || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_open: path and out must be given");
    deltafs_dir *d = calloc(1, sizeof *d);
    if (!d)
        return error_no_memory(e, sizeof *d, "a handle");
    strcpy(d->error.text, "no error");
    deltafs_options *defaults = NULL;
    int status = options ? DELTAFS_OK : deltafs_options_create(&defaults);
    const deltafs_options *o = options ? options : defaults;
    if (status == DELTAFS_OK)
        status = reader_open(path, (uint32_t)deltafs_private_options_number(o, OPTION_READ_THREADS),
                             deltafs_private_options_number(o, OPTION_READ_CACHE), &d->reader, e);
    if (status == DELTAFS_OK) {
        d->reader->memory = deltafs_private_options_number(o, OPTION_MEMORY);
        d->reader->manifest.caller = deltafs_private_options_partitioner(o, d->reader->manifest.partitioner_name);
    }
    deltafs_options_destroy(defaults);
    if (status != DELTAFS_OK) {
        free(d);
        return status;
    }
    *out = d;
    return DELTAFS_OK;
}

/* Fails unless the handle is open for reading. `missing` is the name of an argument that is not given, or NULL. */
static int dir_must_read(deltafs_dir *d, const char *call, const char *missing)
{
    int status = DELTAFS_OK;

    if (!d)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: no directory", call);
    if (d->transport)
        status = error_set(&d->error, DELTAFS_ERR_MODE,
                           "%s: %s is open for writing; open it with deltafs_open, too, to read what is committed",
                           call, d->path);
    else if (d->reader->is_scanning)
        status =
            error_set(&d->error, DELTAFS_ERR_MODE, "%s: called from the function of a scan of the same handle", call);
    else if (missing)
        status = error_set(&d->error, DELTAFS_ERR_INVALID, "%s: %s must be given", call, missing);
    return dir_end(d, status);
}

int dir_reader(deltafs_dir *d, const char *call, const char *missing, struct reader **reader, struct error **e)
{
    int status = dir_must_read(d, call, missing);

    if (status == DELTAFS_OK) {
        *reader = d->reader;
        *e = &d->error;
    }
    return status;
}

int deltafs_refresh(deltafs_dir *d)
{
    int status = dir_must_read(d, "deltafs_refresh", NULL);

    if (status != DELTAFS_OK)
        return status;
    if (d->reader->iterators > 0)
        return dir_end(d, error_set(&d->error, DELTAFS_ERR_MODE,
                                    "deltafs_refresh: %s has an open iterator; close it before", d->reader->path));
    return dir_end(d, reader_refresh(d->reader, &d->error));
}

/* ---- Scanning ---- */

/* Scan partitions `first` to `end` - 1, behind damage too. */
static int dir_scan(deltafs_dir *d, uint32_t first, uint32_t end, const struct deltafs_range *range,
                    deltafs_record_fn fn, void *arg, int *stopped)
{
    struct scan_to to = {.fn = fn, .arg = arg};
    struct reader *r = d->reader;
    struct damages damages = {0};
    struct error e;
    uint32_t first_epoch, end_epoch;
    int status = DELTAFS_OK;

    reader_epochs(r, range, &first_epoch, &end_epoch);
    r->is_scanning = 1;
    for (uint32_t partition = first; partition < end && first_epoch < end_epoch && status == DELTAFS_OK && !to.stopped;
         partition++) {
        struct part_reader *p;
        if (reader_part(r, partition, &p, &e) != DELTAFS_OK) {
            damages_add(&damages, &e);
            continue;
        }
        status = part_scan_epochs(r, p, first_epoch, end_epoch, &to, &damages, &d->error);
    }
    r->is_scanning = 0;
    if (status == DELTAFS_OK && !to.stopped)
        status = damages_status(&damages, &d->error);
    if (stopped)
        *stopped = to.stopped;
    return dir_end(d, status);
}

int deltafs_scan_partition(deltafs_dir *d, uint32_t partition, const struct deltafs_range *range, deltafs_record_fn fn,
                           void *arg, int *stopped)
{
    int status = dir_must_read(d, "deltafs_scan_partition", fn ? NULL : "fn");

    if (status != DELTAFS_OK)
        return status;
    if (partition < d->reader->manifest.partitions)
        return dir_scan(d, partition, partition + 1, range, fn, arg, stopped);
    if (stopped)
        *stopped = 0;
    return dir_end(d,
                   error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_scan_partition: no partition %u; %s has 0 to %u",
                             partition, d->reader->path, d->reader->manifest.partitions - 1));
}

int deltafs_scan(deltafs_dir *d, const struct deltafs_range *range, deltafs_record_fn fn, void *arg, int *stopped)
{
    int status = dir_must_read(d, "deltafs_scan", fn ? NULL : "fn");

    return status == DELTAFS_OK ? dir_scan(d, 0, d->reader->manifest.partitions, range, fn, arg, stopped) : status;
}

/* ---- Facts ---- */

int deltafs_stat(deltafs_dir *d, struct deltafs_stat *out)
{
    int status = dir_must_read(d, "deltafs_stat", out ? NULL : "out");

    if (status != DELTAFS_OK)
        return status;
    const struct manifest *m = &d->reader->manifest;
    struct deltafs_stat s = {.version = FORMAT_VERSION,
                             .partitions = m->partitions,
                             .keys = m->keys == KEYS_BYTES ? "bytes" : "u64",
                             .epochs = m->epoch_count,
                             .value_size = m->value_size,
                             .schema = m->schema,
                             .uuid = m->uuid_text,
                             .is_closed = m->is_closed,
                             .layout = m->is_local ? "local" : "partitioned",
                             .attributes = m->attributes.count,
                             .compacted = m->compacted,
                             .partitioner = m->partitioner == PARTITIONER_RANGE    ? "range"
                                            : m->partitioner == PARTITIONER_CALLER ? m->partitioner_name
                                                                                   : "hash"};
    for (uint64_t i = 0; i < m->epoch_count; i++) {
        s.records += m->epoch[i].records;
        s.bytes_raw += m->epoch[i].bytes_raw;
    }
    return dir_end(d, sized_fill(out, &s, sizeof s, "deltafs_stat", &d->error));
}

int deltafs_bytes_stored(deltafs_dir *d, uint64_t *out)
{
    int status = dir_must_read(d, "deltafs_bytes_stored", out ? NULL : "out");

    return status == DELTAFS_OK ? dir_end(d, reader_bytes_stored(d->reader, out, &d->error)) : status;
}

int deltafs_epoch_stat(deltafs_dir *d, uint64_t i, struct deltafs_epoch_stat *out)
{
    int status = dir_must_read(d, "deltafs_epoch_stat", out ? NULL : "out");

    if (status != DELTAFS_OK)
        return status;
    const struct manifest *m = &d->reader->manifest;
    if (i >= m->epoch_count)
        return dir_end(d, error_set(&d->error, DELTAFS_ERR_INVALID,
                                    "deltafs_epoch_stat: no epoch number %llu; there are %llu", (unsigned long long)i,
                                    (unsigned long long)m->epoch_count));
    const struct manifest_epoch *epoch = &m->epoch[i];
    struct deltafs_epoch_stat s = {sizeof s, epoch->label, epoch->records, epoch->bytes_raw, epoch->bytes_stored};
    return dir_end(d, sized_fill(out, &s, sizeof s, "deltafs_epoch_stat", &d->error));
}

int deltafs_io_stat(const deltafs_dir *d, struct deltafs_io_stat *out)
{
    struct deltafs_io_stat s;

    if (!d || !out)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_io_stat: directory and out must be given");
    if (d->transport)
        deltafs_private_writer_io(d->writer, &s);
    else
        io_stat(&d->reader->io, &s);
    return sized_fill(out, &s, sizeof s, "deltafs_io_stat", deltafs_private_thread_error());
}

int deltafs_memory_stat(deltafs_dir *d, struct deltafs_memory_stat *out)
{
    struct deltafs_memory_stat s;
    int status = dir_must_write(d, "deltafs_memory_stat");

    if (status != DELTAFS_OK)
        return status;
    deltafs_private_writer_memory(d->writer, &s);
    return dir_end(d, out ? sized_fill(out, &s, sizeof s, "deltafs_memory_stat", &d->error)
                          : error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_memory_stat: out must be given"));
}
