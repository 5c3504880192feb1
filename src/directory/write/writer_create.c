/* What a writer does before it opens: its configuration from the options, and the container's making. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "directory/format/directory_format.h"
#include "directory/write/writer.h"
#include "directory/format/block.h"
#include "directory/format/value_log.h"
#include "io/volume.h"

#define ROUNDED          (16 << 10) /* bytes of values that are rounded together, if one has not more */
#define STRIPS_STRETCH   4          /* blocks in strips are longer than asked for by this factor, */
#define STRIPS_BLOCK_MAX (1u << 20) /* and at most this, unless more is asked for */

/* What follows from the kind of keys, the caller's values, and where they are stored. */
static void configure_sizes(struct writer_config *c)
{
    c->value_size = c->place == LAYOUT_LOCAL ? POSITION_SIZE : c->keys == KEYS_BYTES ? -1 : c->caller_size;
    c->reserved = deltafs_private_writer_blob(c);
}

/* Strips that are longer pack better, and a reader of a few columns has fewer of them to find. */
static void configure_block(struct writer_config *c, const deltafs_options *o)
{
    c->block = deltafs_private_options_number(o, OPTION_BLOCK);
    if (c->strips.count > 0)
        c->block = c->block < STRIPS_BLOCK_MAX / STRIPS_STRETCH ? c->block * STRIPS_STRETCH : STRIPS_BLOCK_MAX;
}

/* The caller's partitioner of this name, if the options have it. */
static void configure_caller(struct writer_config *c, const deltafs_options *o, const char *name)
{
    snprintf(c->partitioner_name, sizeof c->partitioner_name, "%s", name);
    c->caller = deltafs_private_options_partitioner(o, name);
}

int deltafs_private_writer_configure(struct writer_config *c, const char *path, const deltafs_options *o,
                                     struct error *e)
{
    uint64_t value_size = deltafs_private_options_number(o, OPTION_VALUE_SIZE);
    uint64_t schema_size = deltafs_private_options_number(o, OPTION_SCHEMA);

    *c = (struct writer_config){
        .path = path,
        .partitions = 1,
        .value_size = value_size == OPTION_AUTO ? -1 : (int64_t)value_size,
        .schema = deltafs_private_options_text(o, OPTION_SCHEMA),
        .volumes = deltafs_private_options_text(o, OPTION_VOLUMES),
        .codec = (enum option_codec)deltafs_private_options_number(o, OPTION_CODEC),
        .sync = (enum option_sync)deltafs_private_options_number(o, OPTION_SYNC),
        .memory = deltafs_private_options_number(o, OPTION_MEMORY),
        .old_label = (enum option_old_label)deltafs_private_options_number(o, OPTION_OLD_LABEL),
        .is_async = deltafs_private_options_number(o, OPTION_COMMIT) == COMMIT_ASYNC,
        .lease = deltafs_private_options_number(o, OPTION_LEASE),
        .is_index = deltafs_private_options_is_index(o),
    };
    if (!c->is_index) /* which is for single keys */
        c->partitioner = (enum option_partitioner)deltafs_private_options_number(o, OPTION_PARTITIONER);
    if (c->partitioner == PARTITIONER_CALLER)
        configure_caller(c, o, deltafs_private_options_text(o, OPTION_PARTITIONER));
    uint64_t threads = deltafs_private_options_number(o, OPTION_THREADS);
    c->threads = threads == OPTION_AUTO ? THREADS_AUTO : (uint32_t)threads;
    c->keys = (enum option_keys)deltafs_private_options_number(o, OPTION_KEYS);
    c->caller_size = c->schema[0] == '\0' ? c->value_size : (int64_t)schema_size;
    if (c->value_size >= 0 && c->schema[0] != '\0' && (uint64_t)c->value_size != schema_size)
        return error_set(e, DELTAFS_ERR_SCHEMA,
                         "the schema '%s' is of %llu bytes, the option value_size says %lld; leave value_size out",
                         c->schema, (unsigned long long)schema_size, (long long)c->value_size);
    c->place = (enum option_layout)deltafs_private_options_number(o, OPTION_LAYOUT);
    configure_sizes(c);
    struct volumes v;
    int status = volumes_parse(&v, c->volumes, e);
    volumes_fini(&v);
    /* Whoever looks up keys of an index needs all of a value. */
    int has_strips = c->codec == CODEC_SNAPPY && c->keys == KEYS_U64 && c->place == LAYOUT_PARTITIONED && !c->is_index;
    if (status == DELTAFS_OK && has_strips)
        status = strips_make(&c->strips, c->schema, e);
    configure_block(c, o);
    return status;
}

int deltafs_private_writer_configure_like(struct writer_config *c, const struct manifest *m, const char *path,
                                          const deltafs_options *o, struct error *e)
{
    struct error why;
    int status = deltafs_private_writer_configure(c, path, o, &why);

    /* What the options say of values counts no more than what they say of keys. */
    if (status != DELTAFS_OK && status != DELTAFS_ERR_SCHEMA) {
        *e = why;
        return status;
    }
    c->keys = m->keys;
    c->partitioner = m->partitioner;
    configure_caller(c, o, m->partitioner_name);
    c->partitions = m->partitions;
    c->caller_size = m->value_size;
    c->place = LAYOUT_PARTITIONED;
    c->schema = m->schema;
    c->is_index = 0;
    c->is_async = 0;
    configure_sizes(c);
    c->strips = m->strips;
    if (m->is_local && m->keys == KEYS_U64 && c->codec == CODEC_SNAPPY)
        status = strips_make(&c->strips, c->schema, e);
    else
        status = DELTAFS_OK;
    configure_block(c, o);
    return status;
}

int deltafs_private_writer_share(struct writer_config *c, uint32_t writers, struct error *e)
{
    if (c->place != LAYOUT_LOCAL)
        return DELTAFS_OK;
    if (writers > LOCAL_WRITERS_MAX || writers > UINT32_MAX - c->job.first)
        return error_set(e, DELTAFS_ERR_INVALID,
                         "%s: %u ranks more would have logs of their own (layout=local); a job can have %u, and all "
                         "jobs %u, which had %u so far",
                         c->path, writers, LOCAL_WRITERS_MAX, UINT32_MAX, c->job.first);
    c->job.epochs = c->epochs;
    c->job.writers = writers;
    values_describe(&c->job, values_stored_size(c->keys, c->caller_size), c->block);
    return DELTAFS_OK;
}

size_t deltafs_private_writer_blob(const struct writer_config *c)
{
    if (c->keys != KEYS_BYTES) /* values that are rounded */
        return !strchr(c->schema, '~') ? 0 : c->caller_size > ROUNDED ? (size_t)c->caller_size : ROUNDED;
    return c->caller_size < 0 ? BLOCK_VALUE_MAX : 1 + KEY_BYTES_MAX + (size_t)c->caller_size;
}

/* Those of the option that get a bucket. */
static int make_volumes(const struct writer_config *c, const struct volume_part *all, struct volumes *v,
                        struct error *e)
{
    int status = volumes_parse(v, c->volumes, e);

    if (status == DELTAFS_OK)
        volumes_choose(v, all, c->partitions < BUCKET_COUNT ? c->partitions : BUCKET_COUNT);
    return status;
}

static int make_buckets(struct io *io, const struct writer_config *c, const char *uuid_text, struct error *e)
{
    struct volumes v;
    const struct volume_part all = {io, c->path, uuid_text, ""};
    int status = make_volumes(c, &all, &v, e);

    if (status != DELTAFS_OK)
        return status;
    status = volumes_make(&v, &all, e);
    for (uint32_t b = 0; b < BUCKET_COUNT && b < c->partitions && status == DELTAFS_OK; b++)
        status = volumes_make_bucket(&v, &all, b, e);
    if (status == DELTAFS_OK && c->sync != SYNC_NONE)
        status = volumes_sync(&v, &all, e);
    if (status != DELTAFS_OK)
        volumes_unmake(&v, &all); /* those without a bucket: the others go with their last one, which takes no memory */
    volumes_fini(&v);
    return status;
}

/* There is something at the path. Whoever restarts a job must not be led to delete what it committed before. */
static int make_exists(struct io *io, const char *path, struct error *e)
{
    struct manifest m = {0};

    if (manifest_read(io, path, &m, error_ignored()) == DELTAFS_OK)
        error_set(e, DELTAFS_ERR_EXISTS,
                  "%s: exists already and holds %llu committed epoch%s; reopen it to append to it (deltafs-mpi import "
                  "--append), "
                  "or choose another name",
                  path, (unsigned long long)m.epoch_count, m.epoch_count == 1 ? "" : "s");
    else
        error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already; choose another name", path);
    manifest_fini(&m);
    return DELTAFS_ERR_EXISTS;
}

/* Which directories cannot be partitioned by ranges of keys. */
static int create_check(const struct writer_config *c, struct error *e)
{
    if (c->partitioner == PARTITIONER_HASH)
        return DELTAFS_OK;
    if (c->keys == KEYS_BYTES)
        return error_set(
            e, DELTAFS_ERR_OPTION,
            "%s: option partitioner: only keys that are numbers can be placed so, and keys=bytes are in the order of "
            "their hashes; leave partitioner out",
            c->path);
    return c->partitioner == PARTITIONER_CALLER || c->partitions <= PARTITIONS_RANGE_MAX
               ? DELTAFS_OK
               : error_set(e, DELTAFS_ERR_OPTION, "%s: option partitioner: %u ranges of keys; at most %u are possible",
                           c->path, c->partitions, PARTITIONS_RANGE_MAX);
}

int deltafs_private_writer_create_container(struct writer_config *c, struct lease *lease, struct error *e)
{
    struct io io = io_default();
    struct manifest_pivots pivots = {0, (uint64_t *)(uintptr_t)c->pivots};
    struct manifest m = {.keys = c->keys,
                         .partitions = c->partitions,
                         .value_size = c->caller_size,
                         .partitioner = c->partitioner,
                         .pivots = &pivots,
                         .pivots_count = c->pivots != NULL,
                         .schema = (char *)(uintptr_t)c->schema,
                         .strips = c->strips,
                         .compacted = c->compacted,
                         .job = &c->job,
                         .is_index = c->is_index,
                         .is_local = c->place == LAYOUT_LOCAL};
    snprintf(m.partitioner_name, sizeof m.partitioner_name, "%s", c->partitioner_name);
    int status = create_check(c, e);

    if (status == DELTAFS_OK)
        status = uuid_create(c->uuid, e);
    if (status == DELTAFS_OK)
        status = io_mkdir(&io, c->path, e);
    if (status == DELTAFS_ERR_EXISTS)
        return make_exists(&io, c->path, e);
    if (status != DELTAFS_OK)
        return path_explain_missing(c->path, e);
    uuid_to_text(c->uuid, m.uuid_text);
    status = make_buckets(&io, c, m.uuid_text, e);
    if (status == DELTAFS_OK)
        status = lease_take(lease, &io, c->path, c->lease, 0, e);
    if (status == DELTAFS_OK)
        status = manifest_create(&io, c->path, &m, c->sync != SYNC_NONE, e);
    if (status == DELTAFS_OK && c->sync != SYNC_NONE)
        status = io_sync_parent(&io, c->path, e);
    if (status != DELTAFS_OK)
        deltafs_private_writer_remove_container(c, lease);
    return status;
}

/* Whether the schema that is given says what the directory's own says, in whatever words; it need not repeat the error
 * bounds. Both can be parsed. */
static int compare_schemas(const char *given, const char *own, int *is_same, struct error *e)
{
    deltafs_schema *x = NULL, *y = NULL;
    int status = deltafs_schema_parse(given, &x);

    if (status == DELTAFS_OK)
        status = deltafs_schema_parse(own, &y);
    *is_same = status == DELTAFS_OK && deltafs_schema_count(x) == deltafs_schema_count(y);
    for (size_t i = 0; *is_same && i < deltafs_schema_count(x); i++) {
        const struct deltafs_field *f = deltafs_schema_field(x, i), *g = deltafs_schema_field(y, i);
        *is_same = strcmp(f->name, g->name) == 0 && f->kind == g->kind && f->size == g->size &&
                   f->offset == g->offset && (f->bound == 0 || f->bound == g->bound);
    }
    deltafs_schema_destroy(x);
    deltafs_schema_destroy(y);
    return status == DELTAFS_ERR_MEMORY ? error_no_memory(e, strlen(given), "a schema") : DELTAFS_OK;
}

/* The same of what places its keys. */
static int inspect_partitioner(const struct manifest *m, const char *path, const deltafs_options *o, struct error *e)
{
    int is_given = !m->is_index && deltafs_private_options_is_given(o, OPTION_PARTITIONER);
    uint64_t given = deltafs_private_options_number(o, OPTION_PARTITIONER);

    if (m->partitioner != PARTITIONER_CALLER)
        return !is_given || given == (uint64_t)m->partitioner
                   ? DELTAFS_OK
                   : deltafs_private_options_refuse(o, OPTION_PARTITIONER, path,
                                                    m->partitioner == PARTITIONER_RANGE ? "range" : "hash", e);
    if (deltafs_private_options_is_repair(o) || deltafs_private_options_partitioner(o, m->partitioner_name).fn)
        return DELTAFS_OK;
    return error_set(
        e, DELTAFS_ERR_OPTION,
        "%s: its keys are placed by the function '%s' of the program that created it, and %s%s%s is given; "
        "only a program that has '%s' can write to it (deltafs_options_set_partitioner)",
        path, m->partitioner_name, given == PARTITIONER_CALLER ? "'" : "none",
        given == PARTITIONER_CALLER ? deltafs_private_options_text(o, OPTION_PARTITIONER) : "",
        given == PARTITIONER_CALLER ? "'" : "", m->partitioner_name);
}

/* That the container's own facts are not asked to be other than they are. */
static int inspect_options(const struct manifest *m, const char *path, const deltafs_options *o, struct error *e)
{
    uint64_t partitions = deltafs_private_options_number(o, OPTION_PARTITIONS);
    uint64_t size = deltafs_private_options_number(o, OPTION_VALUE_SIZE);
    const char *schema = deltafs_private_options_text(o, OPTION_SCHEMA);
    char is[32] = "any";

    if (m->is_index && !deltafs_private_options_is_index(o))
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                         "%s: is an index of files, not a directory of records; 'deltafs-mpi index' adds files to it",
                         path);
    if (partitions != OPTION_AUTO && partitions != m->partitions) {
        snprintf(is, sizeof is, "%u", m->partitions);
        return deltafs_private_options_refuse(o, OPTION_PARTITIONS, path, is, e);
    }
    if (deltafs_private_options_is_given(o, OPTION_KEYS) &&
        deltafs_private_options_number(o, OPTION_KEYS) != (uint64_t)m->keys)
        return deltafs_private_options_refuse(o, OPTION_KEYS, path, m->keys == KEYS_BYTES ? "bytes" : "u64", e);
    uint64_t place = m->is_local ? LAYOUT_LOCAL : LAYOUT_PARTITIONED;
    if (deltafs_private_options_is_given(o, OPTION_LAYOUT) && deltafs_private_options_number(o, OPTION_LAYOUT) != place)
        return deltafs_private_options_refuse(o, OPTION_LAYOUT, path, place == LAYOUT_LOCAL ? "local" : "partitioned",
                                              e);
    int status = inspect_partitioner(m, path, o, e);
    if (status != DELTAFS_OK)
        return status;
    int is_same = 1;
    status = schema[0] ? compare_schemas(schema, m->schema, &is_same, e) : DELTAFS_OK;
    if (status != DELTAFS_OK || !is_same)
        return status != DELTAFS_OK ? status : deltafs_private_options_refuse(o, OPTION_SCHEMA, path, m->schema, e);
    if (size == OPTION_AUTO || (m->value_size >= 0 && size == (uint64_t)m->value_size))
        return DELTAFS_OK;
    if (m->value_size >= 0)
        snprintf(is, sizeof is, "%lld", (long long)m->value_size);
    return deltafs_private_options_refuse(o, OPTION_VALUE_SIZE, path, is, e);
}

/* The facts of the manifest, which gives its schema away, and its last pivots. */
static void inspect_manifest(struct writer_config *c, struct manifest *m, struct writer_facts *facts)
{
    c->is_reopened = 1;
    c->was_closed = m->is_closed;
    c->keys = m->keys;
    c->partitions = m->partitions;
    c->caller_size = m->value_size;
    c->place = m->is_local ? LAYOUT_LOCAL : LAYOUT_PARTITIONED;
    c->job.first = manifest_writers(m);
    c->schema = m->schema;
    c->strips = m->strips;
    configure_sizes(c);
    c->epochs = (uint32_t)m->epoch_count;
    c->last_label = m->epoch_count > 0 ? m->epoch[m->epoch_count - 1].label : 0;
    c->manifest_size = m->size;
    memcpy(c->uuid, m->uuid, sizeof c->uuid);
    c->partitioner = m->partitioner;
    facts->schema = m->schema;
    m->schema = NULL;
    if (m->pivots_count > 0) {
        struct manifest_pivots *last = &m->pivots[m->pivots_count - 1];
        c->pivots = facts->pivots = last->key;
        last->key = NULL;
    }
}

void deltafs_private_writer_facts_fini(struct writer_facts *facts)
{
    free(facts->schema);
    free(facts->pivots);
    *facts = (struct writer_facts){0};
}

int deltafs_private_writer_inspect(struct writer_config *c, const char *path, const deltafs_options *o,
                                   struct writer_facts *facts, struct error *e)
{
    struct io io = io_default();
    struct manifest m = {0};
    int status = deltafs_private_writer_configure(c, path, o, e);

    if (status == DELTAFS_OK)
        status = manifest_read(&io, path, &m, e);
    if (status == DELTAFS_OK)
        status = inspect_options(&m, path, o, e);
    if (status == DELTAFS_OK) {
        inspect_manifest(c, &m, facts);
        configure_caller(c, o, m.partitioner_name);
        configure_block(c, o);
    }
    manifest_fini(&m);
    return status;
}

int deltafs_private_writer_take(const struct writer_config *c, struct lease *lease, struct error *e)
{
    struct io io = io_default();
    struct manifest m = {0};
    int status = lease_take(lease, &io, c->path, c->lease, 1, e);

    if (status == DELTAFS_OK)
        status = manifest_read(&io, c->path, &m, e);
    if (status == DELTAFS_OK && (memcmp(m.uuid, c->uuid, sizeof m.uuid) != 0 || m.size != c->manifest_size))
        status = error_set(e, DELTAFS_ERR_BUSY, "%s: another job has written it just now; try again", c->path);
    if (status == DELTAFS_OK)
        status = manifest_check_buckets(&io, c->path, &m, e);
    manifest_fini(&m);
    if (status != DELTAFS_OK)
        deltafs_private_writer_remove_container(c, lease);
    return status;
}

/* Give a lease back that no writer has. Where nothing has been truncated yet, what the former holder noted stays, for
 * repair. */
static void unmake_lease(const struct writer_config *c, struct lease *lease)
{
    struct io io = io_default();

    lease->file.io = &io;
    if (c->is_reopened && lease->has_note && lease->note.number >= c->epochs)
        io_file_close(&lease->file, error_ignored());
    else
        lease_drop(lease, error_ignored());
    *lease = (struct lease){.file.fd = -1};
}

/* What this process has just made is its own, whatever OWNER says: so this takes no memory. */
static void unmake_logs(struct io *io, const struct writer_config *c)
{
    char path[PATH_ROOM], uuid_text[UUID_TEXT_SIZE];
    const struct volume_part all = {io, c->path, uuid_text, ""};

    for (uint32_t p = 0; p < c->partitions; p++) {
        io->ops->unlink(io->ctx, io_path_in(path, c->path, LOG_NAME_DATA, p % BUCKET_COUNT, p));
        io->ops->unlink(io->ctx, io_path_in(path, c->path, LOG_NAME_INDEX, p % BUCKET_COUNT, p));
    }
    uuid_to_text(c->uuid, uuid_text);
    for (uint32_t b = 0; b < BUCKET_COUNT && b < c->partitions; b++) {
        io->ops->unlink(io->ctx, io_path_in(path, c->path, BUCKET_NAME "/" OWNER_NAME, b));
        volume_remove_bucket(&all, b, error_ignored());
    }
}

void deltafs_private_writer_remove_container(const struct writer_config *c, struct lease *lease)
{
    struct io io = io_default();
    char path[PATH_ROOM];

    if (!c->is_reopened) {
        io.ops->unlink(io.ctx, io_path_in(path, c->path, MANIFEST_COPY_NAME));
        io.ops->unlink(io.ctx, io_path_in(path, c->path, MANIFEST_NAME));
        unmake_logs(&io, c);
    }
    /* Not before: with the lease free another job could have begun to write what is taken away here. */
    unmake_lease(c, lease);
    if (!c->is_reopened) {
        io.ops->unlink(io.ctx, io_path_in(path, c->path, LEASE_NAME)); /* where it could not be given back */
        io.ops->rmdir(io.ctx, c->path);
    }
}
