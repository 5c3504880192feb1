/* Writing a directory from one process. */
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "base/thread.h"
#include "directory/dir.h"
#include "directory/serial.h"
#include "directory/write/writer.h"

#define SERIAL_THREADS_MOST 4u /* threads of one process, if the option threads is auto */

struct serial {
    struct writer *writer;
    int is_async;
    uint64_t pending; /* records of the current epoch */
};

static void serial_store(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                         size_t value_stride, size_t size)
{
    deltafs_private_writer_put(((struct serial *)ctx)->writer, 1, n, keys, key_stride, values, value_stride, size);
}

/* Hold records back as long as that is possible. */
static void serial_put(struct serial *s, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                       size_t value_stride, size_t size)
{
    if (deltafs_private_writer_is_holding(s->writer)) {
        if (deltafs_private_writer_hold(s->writer, n, keys, key_stride, values, value_stride, size))
            return;
        deltafs_private_writer_release(s->writer, serial_store, s);
    }
    serial_store(s, n, keys, key_stride, values, value_stride, size);
}

static int serial_append(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                         size_t value_stride, size_t size, struct error *e)
{
    struct serial *s = ctx;

    (void)e;
    s->pending += n;
    if (!deltafs_private_writer_is_local(s->writer)) {
        serial_put(s, n, keys, key_stride, values, value_stride, size);
        return DELTAFS_OK;
    }
    for (size_t some; n > 0; n -= some) {
        const uint8_t *places;
        some = deltafs_private_writer_put_values(s->writer, n, keys, key_stride, values, value_stride, size, &places);
        if (some == 0)
            break;
        serial_put(s, some, keys, key_stride, places, POSITION_SIZE, POSITION_SIZE);
        keys += some * key_stride;
        values += size > 0 ? some * value_stride : 0;
    }
    return DELTAFS_OK;
}

/* Commit the epoch that is ending, unless it is `refused`. */
static int serial_commit(struct serial *s, const struct error *refused, struct error *e)
{
    struct writer_totals totals;
    struct error second;
    int is_commit_unknown = 0, status = deltafs_private_writer_wait_end(s->writer, &totals, e);

    if (status == DELTAFS_OK && refused) {
        *e = *refused;
        status = e->status;
    }
    if (status == DELTAFS_OK)
        status = deltafs_private_writer_commit(s->writer, &totals, &is_commit_unknown, e);
    if (status == DELTAFS_OK) {
        deltafs_private_writer_keep(s->writer);
        return status;
    }
    /* What may not be this job's any more must not be truncated. */
    if (!is_commit_unknown && deltafs_private_writer_check_lease(s->writer, &second) != DELTAFS_OK) {
        is_commit_unknown = 1;
        *e = second;
        status = e->status;
    }
    deltafs_private_writer_discard(s->writer, is_commit_unknown, e);
    return status;
}

static int serial_epoch_wait(void *ctx, const struct error *refused, struct error *e)
{
    struct serial *s = ctx;
    uint64_t label;

    if (!deltafs_private_writer_is_ending(s->writer, &label))
        return DELTAFS_OK;
    int status = serial_commit(s, refused, e);
    if (status != DELTAFS_OK) {
        s->pending = 0;
        if (s->is_async)
            deltafs_private_dir_explain_async(label, e);
    }
    return status;
}

/* Begin the current epoch again; the one before is committed. */
static int serial_discard(struct serial *s, struct error *e)
{
    int status = serial_epoch_wait(s, NULL, e);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_private_writer_check_lease(s->writer, e);
    deltafs_private_writer_discard(s->writer, status != DELTAFS_OK, e);
    s->pending = 0;
    return status;
}

/* The label cannot end the epoch, as *e says: do what the option old_label asks for. */
static int serial_refuse(struct serial *s, uint64_t label, struct error *e)
{
    enum option_old_label how = deltafs_private_writer_old_label(s->writer);
    struct error why = *e;
    uint64_t records = s->pending;
    int is_committed = 0, status = how == OLD_LABEL_KEEP ? DELTAFS_OK : serial_discard(s, e);

    if (status == DELTAFS_OK && how == OLD_LABEL_SKIP)
        status = deltafs_private_writer_find_label(s->writer, label, &is_committed, e);
    if (status != DELTAFS_OK || is_committed)
        return status;
    *e = why;
    deltafs_private_writer_explain_label(s->writer, records, e);
    return e->status;
}

/* How the next epoch is placed; this one, if all of it is held back. Without memory for that it is as before. */
static void serial_choose(struct serial *s)
{
    struct bytes sample = {.used = 0};
    int is_held = deltafs_private_writer_is_holding(s->writer);

    if (is_held)
        deltafs_private_writer_sample_held(s->writer);
    if (deltafs_private_writer_has_pivots(s->writer) &&
        deltafs_private_writer_sample(s->writer, deltafs_private_writer_sampled(s->writer), &sample, error_ignored()) ==
            DELTAFS_OK)
        deltafs_private_writer_choose(s->writer, &sample);
    buffer_fini(&sample.buffer);
    if (is_held)
        deltafs_private_writer_place(s->writer);
    deltafs_private_writer_release(s->writer, serial_store, s);
}

static int serial_epoch_end(void *ctx, uint64_t label, int is_async, struct error *e)
{
    struct serial *s = ctx;

    if (deltafs_private_writer_check_label(s->writer, label, e) != DELTAFS_OK)
        return serial_refuse(s, label, e);
    int status = serial_epoch_wait(s, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    serial_choose(s);
    deltafs_private_writer_end(s->writer, label);
    s->pending = 0;
    return s->is_async || is_async ? DELTAFS_OK : serial_commit(s, NULL, e);
}

static int serial_place(void *ctx, struct error *e)
{
    struct serial *s = ctx;

    if (deltafs_private_writer_is_placed(s->writer) || !deltafs_private_writer_is_holding(s->writer))
        return DELTAFS_OK;
    int status = serial_epoch_wait(s, NULL, e);
    if (status == DELTAFS_OK)
        serial_choose(s);
    return status;
}

static int serial_set_attribute(void *ctx, const struct deltafs_attribute *a, int refused, struct error *e)
{
    struct serial *s = ctx;

    return refused != DELTAFS_OK ? refused : deltafs_private_writer_set_attribute(s->writer, a, e);
}

static int serial_close(void *ctx, struct error *e)
{
    struct serial *s = ctx;
    uint64_t tail_length;
    int late = serial_epoch_wait(s, NULL, e);
    struct error *later = error_after(late, e);
    uint64_t pending = s->pending;
    int status = deltafs_private_writer_check_lease(s->writer, later);

    if (status == DELTAFS_OK)
        status = deltafs_private_writer_finish(s->writer, &tail_length, later);
    if (status == DELTAFS_OK)
        status = deltafs_private_writer_commit_close(s->writer, tail_length, later);
    status = error_first(late, status);
    status = error_first(status, deltafs_private_writer_destroy(s->writer, error_after(status, e)));
    if (status == DELTAFS_OK && pending > 0)
        status = error_set(e, DELTAFS_ERR_UNCOMMITTED,
                           pending == 1 ? "%llu record was appended after the last epoch end; it is discarded"
                                        : "%llu records were appended after the last epoch end; they are discarded",
                           (unsigned long long)pending);
    free(s);
    return status;
}

static void serial_fail(void *ctx, const struct error *e)
{
    deltafs_private_writer_fail(((struct serial *)ctx)->writer, e);
}

static const struct dir_transport serial_transport = {.append = serial_append,
                                                      .fail = serial_fail,
                                                      .epoch_end = serial_epoch_end,
                                                      .epoch_wait = serial_epoch_wait,
                                                      .place = serial_place,
                                                      .set_attribute = serial_set_attribute,
                                                      .close = serial_close};

/* The one process of a directory may well use what it has. */
static uint32_t serial_threads(void)
{
    uint32_t cpus = thread_processors();

    return cpus < 2 ? THREADS_AUTO : cpus < SERIAL_THREADS_MOST ? cpus + 1 : SERIAL_THREADS_MOST;
}

/* The configuration of a directory that is to be made, or reopened: it refers to *facts, which are to be freed. */
static int serial_configure(struct writer_config *c, const char *path, const deltafs_options *o, int is_reopening,
                            struct writer_facts *facts, struct error *e)
{
    uint64_t partitions = deltafs_private_options_number(o, OPTION_PARTITIONS);
    int status = is_reopening ? deltafs_private_writer_inspect(c, path, o, facts, e)
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
        status = deltafs_private_dir_attach(&serial_transport, s, s->writer, c, out, e);
    if (status != DELTAFS_OK) {
        deltafs_private_writer_return_lease(s->writer, &lease);
        deltafs_private_writer_destroy(s->writer, error_ignored());
        deltafs_private_writer_remove_container(c, &lease);
    }
    return status;
}

int serial_open_directory(const char *path, const deltafs_options *o, int is_reopening, int may_drop, deltafs_dir **out,
                          struct error *e)
{
    struct writer_config c;
    struct writer_facts facts = {0};
    struct serial *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory(e, sizeof *s, "a writer");
    int status = serial_configure(&c, path, o, is_reopening, &facts, e);
    c.may_drop = may_drop;
    if (status == DELTAFS_OK)
        status = serial_open(s, &c, out, e);
    if (status != DELTAFS_OK)
        free(s);
    deltafs_private_writer_facts_fini(&facts);
    return status;
}
