#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/path.h"
#include "base/thread.h"
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "repair/repair.h"
#include "directory/write/writer.h"

#define SERIAL_THREADS_MOST   4u          /* of the same, for the option threads */
#define SERIAL_MEMORY_DEFAULT (64u << 20) /* of the one process of deltafs_create, if the option says auto */

struct deltafs_dir {
    struct error error;
    const struct dir_transport *transport; /* NULL: a reader */
    char *path;                            /* a writer's, for messages */
    void *ctx;
    enum option_keys keys;
    int64_t value_size;
    struct buffer blob; /* a key of bytes with its value, as they are stored */
    struct reader *reader;
};

const char *deltafs_errmsg(const deltafs_dir *dir)
{
    return dir ? dir->error.text : deltafs_private_thread_error()->text;
}

int deltafs_private_dir_attach(const struct dir_transport *transport, void *ctx, const struct writer_config *c,
                               deltafs_dir **out, struct error *e)
{
    deltafs_dir *d = calloc(1, sizeof *d);

    if (!d)
        return error_no_memory(e, sizeof *d, "a handle");
    *d = (deltafs_dir){
        .error.text = "no error", .transport = transport, .ctx = ctx, .keys = c->keys, .value_size = c->caller_size};
    uint64_t label;
    if (deltafs_private_writer_has_truncated(transport->writer(ctx), &label))
        snprintf(d->error.text, sizeof d->error.text,
                 "%s: the epoch labelled %llu is cut off: its job had written all of it, but not its commit "
                 "(deltafs repair, before the reopening, would have committed it)",
                 c->path, (unsigned long long)label);
    d->path = strdup(c->path);
    int status = d->path ? buffer_reserve(&d->blob, deltafs_private_writer_blob(c), "a record", e)
                         : error_no_memory(e, strlen(c->path), "a path");
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
    free(d->path);
    free(d);
}

/* ---- Writing from one process ---- */

struct serial {
    struct writer *writer;
    int is_async;
    uint64_t pending; /* records of the current epoch */
};

void deltafs_private_dir_explain_async(uint64_t label, struct error *e)
{
    error_set(e, e->status,
              "%s; this is about the epoch labelled %llu, which ended before; it is given up, and so "
              "is what was appended since",
              e->text, (unsigned long long)label);
}

static int serial_append(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                         size_t value_stride, size_t size, struct error *e)
{
    struct serial *s = ctx;

    (void)e;
    s->pending += n;
    if (!deltafs_private_writer_is_local(s->writer)) {
        deltafs_private_writer_put_many(s->writer, n, keys, key_stride, values, value_stride, size);
        return DELTAFS_OK;
    }
    for (size_t some; n > 0; n -= some) {
        const uint8_t *places;
        some = deltafs_private_writer_put_values(s->writer, n, keys, key_stride, values, value_stride, size, &places);
        if (some == 0)
            break;
        deltafs_private_writer_put_many(s->writer, some, keys, key_stride, places, POSITION_SIZE, POSITION_SIZE);
        keys += some * key_stride;
        values += size > 0 ? some * value_stride : 0;
    }
    return DELTAFS_OK;
}

/* Commit the epoch that is ending. */
static int serial_commit(struct serial *s, struct error *e)
{
    struct writer_totals totals;
    struct error second;
    int is_commit_unknown = 0, status = deltafs_private_writer_wait_end(s->writer, &totals, e);

    if (status == DELTAFS_OK)
        status = deltafs_private_writer_commit(s->writer, &totals, &is_commit_unknown, e);
    if (status == DELTAFS_OK) {
        deltafs_private_writer_keep(s->writer);
        return status;
    }
    /* What may not be this job's any more must not be given up by cutting it off. */
    if (!is_commit_unknown && deltafs_private_writer_check_lease(s->writer, &second) != DELTAFS_OK) {
        is_commit_unknown = 1;
        *e = second;
        status = e->status;
    }
    deltafs_private_writer_discard(s->writer, is_commit_unknown, e);
    return status;
}

static int serial_epoch_wait(void *ctx, struct error *e)
{
    struct serial *s = ctx;
    uint64_t label;

    if (!deltafs_private_writer_is_ending(s->writer, &label))
        return DELTAFS_OK;
    int status = serial_commit(s, e);
    if (status != DELTAFS_OK) {
        s->pending = 0;
        deltafs_private_dir_explain_async(label, e);
    }
    return status;
}

static int serial_epoch_end(void *ctx, uint64_t label, struct error *e)
{
    struct serial *s = ctx;
    int status = deltafs_private_writer_check_label(s->writer, label, e);

    if (status == DELTAFS_OK)
        status = serial_epoch_wait(s, e);
    if (status != DELTAFS_OK)
        return status;
    deltafs_private_writer_end(s->writer, label);
    s->pending = 0;
    return s->is_async ? DELTAFS_OK : serial_commit(s, e);
}

static int serial_close(void *ctx, struct error *e)
{
    struct serial *s = ctx;
    struct error second;
    uint64_t tail_length;
    int late = serial_epoch_wait(s, e);
    uint64_t pending = s->pending;
    int status = deltafs_private_writer_check_lease(s->writer, late == DELTAFS_OK ? e : &second);

    if (status == DELTAFS_OK)
        status = deltafs_private_writer_finish(s->writer, &tail_length, late == DELTAFS_OK ? e : &second);
    if (status == DELTAFS_OK)
        status = deltafs_private_writer_commit_close(s->writer, tail_length, late == DELTAFS_OK ? e : &second);
    status = late != DELTAFS_OK ? late : status;
    int closed = deltafs_private_writer_destroy(s->writer, status == DELTAFS_OK ? e : &second);
    status = status != DELTAFS_OK ? status : closed;
    if (status == DELTAFS_OK && pending > 0)
        status = error_set(e, DELTAFS_ERR_UNCOMMITTED,
                           pending == 1 ? "%llu record was appended after the last epoch end; it is not kept"
                                        : "%llu records were appended after the last epoch end; they are not kept",
                           (unsigned long long)pending);
    free(s);
    return status;
}

static void serial_fail(void *ctx, const struct error *e)
{
    deltafs_private_writer_fail(((struct serial *)ctx)->writer, e);
}

static struct writer *serial_writer(void *ctx)
{
    return ((struct serial *)ctx)->writer;
}

static const struct dir_transport serial_transport = {.append = serial_append,
                                                      .fail = serial_fail,
                                                      .epoch_end = serial_epoch_end,
                                                      .epoch_wait = serial_epoch_wait,
                                                      .close = serial_close,
                                                      .writer = serial_writer};

/* The one process of a directory may well use what it has. */
static uint32_t serial_threads(void)
{
    uint32_t cpus = thread_processors();

    return cpus < 2 ? THREADS_AUTO : cpus < SERIAL_THREADS_MOST ? cpus + 1 : SERIAL_THREADS_MOST;
}

/* The configuration of a directory that is to be made, or reopened: then *schema is to be freed. */
static int serial_configure(struct writer_config *c, const char *path, const deltafs_options *o, int is_reopening,
                            char **schema, struct error *e)
{
    uint64_t partitions = deltafs_private_options_number(o, OPTION_PARTITIONS);
    int status = is_reopening ? deltafs_private_writer_inspect(c, path, o, schema, e)
                              : deltafs_private_writer_configure(c, path, o, e);

    if (!is_reopening)
        c->partitions = partitions == OPTION_AUTO ? 1 : (uint32_t)partitions;
    if (status == DELTAFS_OK)
        status = deltafs_private_writer_share(c, 1, e);
    if (deltafs_private_options_number(o, OPTION_THREADS) == OPTION_AUTO)
        c->threads = serial_threads();
    if (c->memory == OPTION_AUTO)
        c->memory = SERIAL_MEMORY_DEFAULT;
    return status;
}

/* Make the directory or take it over, and open it. */
static int serial_open(struct serial *s, struct writer_config *c, deltafs_dir **out, struct error *e)
{
    struct lease lease = {0};
    struct error second;
    int status = c->is_reopened ? deltafs_private_writer_take(c, &lease, e)
                                : deltafs_private_writer_create_container(c, &lease, e);

    if (status != DELTAFS_OK)
        return status;
    s->is_async = c->is_async;
    status = deltafs_private_writer_open(c, 0, c->partitions, &lease, &s->writer, e);
    if (status == DELTAFS_OK && c->is_reopened)
        status = deltafs_private_writer_note_open(s->writer, c, e);
    if (status == DELTAFS_OK && c->is_reopened)
        status = deltafs_private_writer_truncate(s->writer, e);
    if (status == DELTAFS_OK)
        status = deltafs_private_dir_attach(&serial_transport, s, c, out, e);
    if (status != DELTAFS_OK) {
        deltafs_private_writer_return_lease(s->writer, &lease);
        deltafs_private_writer_destroy(s->writer, &second);
        deltafs_private_writer_remove_container(c, &lease);
    }
    return status;
}

static int dir_open_to_write(const char *path, const deltafs_options *o, int is_reopening, int may_drop,
                             deltafs_dir **out, struct error *e)
{
    struct writer_config c;
    char *schema = NULL;
    struct serial *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory(e, sizeof *s, "a writer");
    int status = serial_configure(&c, path, o, is_reopening, &schema, e);
    c.may_drop = may_drop;
    if (status == DELTAFS_OK)
        status = serial_open(s, &c, out, e);
    if (status != DELTAFS_OK)
        free(s);
    free(schema);
    return status;
}

/* `call` is the public function, for messages. */
static int open_to_write(const char *call, const char *path, const deltafs_options *options, int is_reopening,
                         deltafs_dir **out)
{
    struct error *e = deltafs_private_thread_error();
    deltafs_options *defaults = NULL;
    int status = DELTAFS_OK;

    if (!path || !*path || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: path and out must be given", call);
    char *whole = path_absolute(path);
    if (!whole)
        status = error_no_memory(e, strlen(path), "a path");
    else if (!options)
        status = deltafs_options_create(&defaults);
    if (status == DELTAFS_OK)
        status = dir_open_to_write(whole, options ? options : defaults, is_reopening, 0, out, e);
    deltafs_options_destroy(defaults);
    free(whole);
    return status;
}

int deltafs_create(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return open_to_write("deltafs_create", path, options, 0, out);
}

int deltafs_reopen(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return open_to_write("deltafs_reopen", path, options, 1, out);
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
        return error_set(&d->error, DELTAFS_ERR_MODE,
                         "%s: %s is open for reading; open it by deltafs_reopen to write to it", call, d->reader->path);
    return DELTAFS_OK;
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
    if (status == DELTAFS_OK)
        return d->transport->append(d->ctx, n, keys, key_stride, values, value_stride, size, &d->error);
    d->transport->fail(d->ctx, &d->error);
    return status;
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
    return status;
}

uint64_t dir_last_records(const deltafs_dir *d)
{
    return deltafs_private_writer_last_records(d->transport->writer(d->ctx));
}

int deltafs_last_label(deltafs_dir *d, uint64_t *label)
{
    const struct manifest *m;
    int is_there;

    if (!d || !label)
        return error_set(d ? &d->error : deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_last_label: dir and label must be given");
    if (d->transport) {
        is_there = deltafs_private_writer_last_label(d->transport->writer(d->ctx), label);
    } else {
        m = &d->reader->manifest;
        is_there = m->epoch_count > 0;
        if (is_there)
            *label = m->epoch[m->epoch_count - 1].label;
    }
    return is_there ? DELTAFS_OK
                    : error_set(&d->error, DELTAFS_ERR_NOT_FOUND, "%s: no epoch is committed yet",
                                d->transport ? d->path : d->reader->path);
}

int deltafs_epoch_cancel(deltafs_dir *d, const char *why)
{
    struct error e;
    int status = dir_must_write(d, "deltafs_epoch_cancel");

    if (status != DELTAFS_OK)
        return status;
    error_set(&e, DELTAFS_ERR_CANCELLED, "%s", why ? why : "the epoch was given up");
    d->transport->fail(d->ctx, &e);
    return DELTAFS_OK;
}

int deltafs_epoch_end(deltafs_dir *d, uint64_t label)
{
    int status = dir_must_write(d, "deltafs_epoch_end");

    return status == DELTAFS_OK ? d->transport->epoch_end(d->ctx, label, &d->error) : status;
}

int deltafs_epoch_wait(deltafs_dir *d)
{
    int status = dir_must_write(d, "deltafs_epoch_wait");

    return status == DELTAFS_OK ? d->transport->epoch_wait(d->ctx, &d->error) : status;
}

int deltafs_close(deltafs_dir *d)
{
    int status = DELTAFS_OK;

    if (!d)
        return DELTAFS_OK;
    if (d->transport)
        status = d->transport->close(d->ctx, deltafs_private_thread_error());
    reader_close(d->reader);
    deltafs_private_dir_free(d);
    return status;
}

/* Of the options only those count that are about the repairing itself: what a job has in its environment is about
 * directories that are made. */
static int repair_options(deltafs_options *o, const struct deltafs_repair_options *wish)
{
    char lease[32];
    int status = DELTAFS_OK;

    for (int i = 0; i < OPTION_COUNT && status == DELTAFS_OK; i++)
        if (i != OPTION_LEASE && i != OPTION_MEMORY)
            status = deltafs_private_options_reset(o, (enum option_id)i, deltafs_private_thread_error());
    snprintf(lease, sizeof lease, "%llu", (unsigned long long)wish->lease);
    if (status == DELTAFS_OK && wish->has_lease)
        status = deltafs_options_set(o, "lease", lease);
    return status;
}

/* Of a directory that is to be opened and closed. */
struct repair_closing {
    const char *path;
    const deltafs_options *o;
};

static int repair_close(void *ctx, int may_drop, struct error *e)
{
    const struct repair_closing *c = ctx;
    deltafs_dir *d;
    int status = dir_open_to_write(c->path, c->o, 1, may_drop, &d, e);

    return status == DELTAFS_OK ? deltafs_close(d) : status;
}

static int dir_repair(const char *path, const struct deltafs_repair_options *wish, deltafs_options *o,
                      deltafs_repair_fn fn, void *arg, struct error *e)
{
    struct repair_closing closing = {path, o};
    int status = repair_options(o, wish);

    if (status != DELTAFS_OK)
        return status;
    uint64_t memory = deltafs_private_options_number(o, OPTION_MEMORY);
    struct repair_how how = {.lease = deltafs_private_options_number(o, OPTION_LEASE),
                             .memory = memory == OPTION_AUTO ? SERIAL_MEMORY_DEFAULT : memory,
                             .close = repair_close,
                             .ctx = &closing};
    return repair_directory(path, wish, &how, fn, arg, e);
}

int deltafs_repair(const char *path, const struct deltafs_repair_options *wish, deltafs_repair_fn fn, void *arg)
{
    static const struct deltafs_repair_options plain;
    struct error *e = deltafs_private_thread_error();
    deltafs_options *o = NULL;

    if (!path || !*path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_repair: path must be given");
    if (wish && wish->has_label && wish->has_drop_from)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_repair: a label and epochs to be dropped do not go together");
    int status = deltafs_options_create(&o);
    if (status == DELTAFS_OK)
        status = dir_repair(path, wish ? wish : &plain, o, fn, arg, e);
    deltafs_options_destroy(o);
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
    deltafs_options_destroy(defaults);
    if (status != DELTAFS_OK) {
        free(d);
        return status;
    }
    *out = d;
    return DELTAFS_OK;
}

static int dir_must_read(deltafs_dir *d, const char *call)
{
    if (!d)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: no directory", call);
    if (d->transport)
        return error_set(&d->error, DELTAFS_ERR_MODE,
                         "%s: %s is open for writing; to read what is committed, open it by deltafs_open, too", call,
                         d->path);
    if (d->reader->is_scanning)
        return error_set(&d->error, DELTAFS_ERR_MODE, "%s: called from the function of a scan of the same handle",
                         call);
    return DELTAFS_OK;
}

int deltafs_refresh(deltafs_dir *d)
{
    int status = dir_must_read(d, "deltafs_refresh");

    return status == DELTAFS_OK ? reader_refresh(d->reader, &d->error) : status;
}

/* The same, for what hands its answer out in *out. */
static int dir_must_read_to(deltafs_dir *d, const char *call, const void *out)
{
    int status = dir_must_read(d, call);

    return status == DELTAFS_OK && !out ? error_set(&d->error, DELTAFS_ERR_INVALID, "%s: out must be given", call)
                                        : status;
}

/* Scan partitions `first` to `end` - 1, behind damage too. */
static int dir_scan(deltafs_dir *d, uint32_t first, uint32_t end, const struct deltafs_range *range,
                    deltafs_record_fn fn, void *arg)
{
    struct reader *r = d->reader;
    struct scan_damages damages = {0};
    struct deltafs_verify_counts counts = {0};
    struct error e;
    uint32_t first_epoch, end_epoch;
    int status = DELTAFS_OK;

    reader_epochs(r, range, &first_epoch, &end_epoch);
    r->is_scanning = 1;
    for (uint32_t partition = first; partition < end && first_epoch < end_epoch && status == DELTAFS_OK; partition++) {
        struct part_reader *p;
        if (reader_part(r, partition, &p, &e) != DELTAFS_OK) {
            scan_damage(&damages, &e);
            continue;
        }
        for (uint32_t epoch = first_epoch; epoch < end_epoch && status == DELTAFS_OK; epoch++)
            status = part_scan(r, p, epoch, fn, arg, &counts, &damages, &d->error);
    }
    r->is_scanning = 0;
    if (status == DELTAFS_OK && damages.count > 0)
        status = error_set(&d->error, damages.first.status, "%s%s", damages.first.text,
                           damages.count > 1 ? "; and more, which verify names" : "");
    return status;
}

int deltafs_scan_partition(deltafs_dir *d, uint32_t partition, const struct deltafs_range *range, deltafs_record_fn fn,
                           void *arg)
{
    int status = dir_must_read(d, "deltafs_scan_partition");

    if (status != DELTAFS_OK)
        return status;
    if (!fn)
        return error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_scan_partition: fn must be given");
    if (partition >= d->reader->manifest.partitions)
        return error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_scan_partition: no partition %u; %s has 0 to %u",
                         partition, d->reader->path, d->reader->manifest.partitions - 1);
    return dir_scan(d, partition, partition + 1, range, fn, arg);
}

int deltafs_scan(deltafs_dir *d, const struct deltafs_range *range, deltafs_record_fn fn, void *arg)
{
    int status = dir_must_read(d, "deltafs_scan");

    if (status != DELTAFS_OK)
        return status;
    if (!fn)
        return error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_scan: fn must be given");
    return dir_scan(d, 0, d->reader->manifest.partitions, range, fn, arg);
}

int deltafs_stat(deltafs_dir *d, struct deltafs_stat *out)
{
    int status = dir_must_read_to(d, "deltafs_stat", out);

    if (status != DELTAFS_OK)
        return status;
    const struct manifest *m = &d->reader->manifest;
    struct deltafs_stat s = {.version = m->version,
                             .partitions = m->partitions,
                             .keys = m->keys == KEYS_BYTES ? "bytes" : "u64",
                             .epochs = m->epoch_count,
                             .value_size = m->value_size,
                             .schema = m->schema,
                             .uuid = m->uuid_text,
                             .is_closed = m->is_closed,
                             .layout = m->is_local ? "local" : "partitioned"};
    for (uint64_t i = 0; i < m->epoch_count; i++) {
        s.records += m->epoch[i].records;
        s.bytes_raw += m->epoch[i].bytes_raw;
    }
    *out = s;
    return DELTAFS_OK;
}

int deltafs_bytes_stored(deltafs_dir *d, uint64_t *out)
{
    uint64_t bytes;
    int status = dir_must_read_to(d, "deltafs_bytes_stored", out);

    if (status == DELTAFS_OK)
        status = reader_bytes_stored(d->reader, &bytes, &d->error);
    if (status == DELTAFS_OK)
        *out = bytes;
    return status;
}

int deltafs_epoch_stat(deltafs_dir *d, uint64_t i, struct deltafs_epoch_stat *out)
{
    int status = dir_must_read_to(d, "deltafs_epoch_stat", out);

    if (status != DELTAFS_OK)
        return status;
    const struct manifest *m = &d->reader->manifest;
    if (i >= m->epoch_count)
        return error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_epoch_stat: no epoch number %llu; there are %llu",
                         (unsigned long long)i, (unsigned long long)m->epoch_count);
    const struct manifest_epoch *epoch = &m->epoch[i];
    *out = (struct deltafs_epoch_stat){epoch->label, epoch->records, epoch->bytes_raw, epoch->bytes_stored};
    return DELTAFS_OK;
}

int deltafs_io_stat(const deltafs_dir *d, struct deltafs_io_stat *out)
{
    if (!d || !out)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_io_stat: directory and out must be given");
    if (d->transport)
        deltafs_private_writer_io(d->transport->writer(d->ctx), out);
    else
        io_stat(&d->reader->io, out);
    return DELTAFS_OK;
}

int deltafs_memory_stat(deltafs_dir *d, struct deltafs_memory_stat *out)
{
    int status = dir_must_write(d, "deltafs_memory_stat");

    if (status != DELTAFS_OK)
        return status;
    if (!out)
        return error_set(&d->error, DELTAFS_ERR_INVALID, "deltafs_memory_stat: out must be given");
    deltafs_private_writer_memory(d->transport->writer(d->ctx), out);
    return DELTAFS_OK;
}

int deltafs_verify(deltafs_dir *d, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out)
{
    int status = dir_must_read_to(d, "deltafs_verify", out);

    return status == DELTAFS_OK ? reader_verify(d->reader, fn, arg, out, &d->error) : status;
}

int dir_reader(deltafs_dir *d, const char *call, struct reader **reader, struct error **e)
{
    int status = dir_must_read(d, call);

    if (status == DELTAFS_OK) {
        *reader = d->reader;
        *e = &d->error;
    }
    return status;
}
