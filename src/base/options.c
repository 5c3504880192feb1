/* The options: name, kind, default, range and text of each in one table, one parser for all the ways in (calls,
 * environment, MPI_Info, command line). A new option is a row here and a line in enum option_id. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "base/options.h"
#include "base/schema_text.h"

#define WORDS 4 /* of a choice, at most */

/* A choice of words, or a number, or any text. */
struct option_row {
    struct deltafs_option_info info;
    uint64_t low, high;       /* of a number; 0: it is none */
    const char *automatic;    /* the word for "as the library sees fit", or NULL */
    const char *words[WORDS]; /* of a choice */
};

static const struct option_row rows[OPTION_COUNT] = {
    [OPTION_BLOCK] = {.info = {"block", "bytes, 256 to 1M", "4K",
                               "approximate bytes of a data block, uncompressed; of columns 4 times that; 64 values "
                               "may take 4 times more"},
                      .low = 256,
                      .high = 1 << 20},
    [OPTION_CODEC] = {.info = {"codec", "none or snappy", "snappy", "how data blocks are compressed"},
                      .words = {[CODEC_NONE] = "none", [CODEC_SNAPPY] = "snappy"}},
    [OPTION_COMMIT] =
        {.info = {"commit", "wait or async", "wait",
                  "whether the end of an epoch waits for its commit, or leaves it to the next collective call"},
         .words = {[COMMIT_WAIT] = "wait", [COMMIT_ASYNC] = "async"}},
    [OPTION_EPOCH] = {.info = {"epoch", "a number, or auto", "auto",
                               "timestep of an indexed file's rows; auto: the last number in its name"},
                      .high = UINT64_MAX - 1,
                      .automatic = "auto"},
    [OPTION_EXTENTS] =
        {.info = {"extents", "parallel, broadcast or flatten", "parallel",
                  "how ranks read a logical file's extents: each reads a share, one reads all for the others, or as "
                  "parallel, and the close writes one file"},
         .words = {[EXTENTS_PARALLEL] = "parallel", [EXTENTS_BROADCAST] = "broadcast", [EXTENTS_FLATTEN] = "flatten"}},
    [OPTION_HDF5] = {.info = {"hdf5", "FILE", "",
                              "HDF5 library that indexes HDF5 files, also at a close; none: search for one"}},
    [OPTION_INDEX] = {.info = {"index", "DIR", "",
                               "index of a file's rows; none: in the file if it is a logical file, else beside it"}},
    [OPTION_INDEX_BY] = {.info = {"index_by", "NAME:EXPR;...", "",
                                  "indexes by value that are written with a directory: 'deltafs select' finds records "
                                  "by the value of EXPR; see deltafs-mpi(1), index --by"}},
    [OPTION_KEY] = {.info = {"key", "FIELD or DATASET", "",
                             "key of a file's rows, which are indexed by it: a field of the schema, or with a '/' a "
                             "dataset of an HDF5 file; none: no index"}},
    [OPTION_KEYS] = {.info = {"keys", "u64 or bytes", "u64", "what keys are: 64-bit numbers, or 1 to 255 bytes"},
                     .words = {[KEYS_U64] = "u64", [KEYS_BYTES] = "bytes"}},
    [OPTION_LAYOUT] = {.info = {"layout", "partitioned or local", "partitioned",
                                "where records are stored: with the partition of their key, or in a log of the rank "
                                "that appends them, which sends only their places"},
                       .words = {[LAYOUT_PARTITIONED] = "partitioned", [LAYOUT_LOCAL] = "local"}},
    [OPTION_LEASE] = {.info = {"lease", "seconds, 0 or more", "86400",
                               "how long after its last commit a job on another host counts as writing a directory"},
                      .high = UINT64_C(1) << 31},
    [OPTION_MEMORY] = {.info = {"memory", "bytes, 8M or more, or auto", "auto",
                                "bytes that a process may use for buffers and memtables; auto: 64M without MPI, "
                                "else 3% of the node's memory, divided by the job's ranks on it, 16M to 1G; "
                                "for a file of MPI-IO 16M of buffers"},
                       .low = 8 << 20,
                       .high = UINT64_C(1) << 42,
                       .automatic = "auto"},
    [OPTION_OLD_LABEL] =
        {.info = {"old_label", "discard, keep or skip", "discard",
                  "what happens to the records of an epoch whose label is not greater than the last one: they are "
                  "discarded, or kept for the next label, both with an error; or, if that label is committed already, "
                  "discarded without an error"},
         .words = {[OLD_LABEL_DISCARD] = "discard", [OLD_LABEL_KEEP] = "keep", [OLD_LABEL_SKIP] = "skip"}},
    [OPTION_PADDING] =
        {.info = {"padding", "a key, or none", "none",
                  "key of rows that are only padding, such as 0, and are not indexed; none: all rows are"},
         .high = UINT64_MAX - 1,
         .automatic = "none"},
    [OPTION_PARTITIONER] =
        {.info = {"partitioner", "hash or range", "hash",
                  "what decides the partition of a key: its hash, or ranges of keys of about as many records each, "
                  "taken from the epoch before; then a scan of a range of keys reads few partitions"},
         .words = {[PARTITIONER_HASH] = "hash", [PARTITIONER_RANGE] = "range"}},
    [OPTION_PARTITIONS] = {.info = {"partitions", "1 to 1048576, or auto", "auto",
                                    "slices of the key space, each with logs of its own; auto: the number of ranks"},
                           .low = 1,
                           .high = 1 << 20,
                           .automatic = "auto"},
    [OPTION_PROGRESS] = {.info = {"progress", "calls or thread", "calls",
                                  "what serves other ranks: the program's calls of DeltaFS, or also a thread, which "
                                  "needs MPI_THREAD_MULTIPLE"},
                         .words = {[PROGRESS_CALLS] = "calls", [PROGRESS_THREAD] = "thread"}},
    [OPTION_READ_CACHE] = {.info = {"read_cache", "bytes, 0 or more", "64M", "size of a reader's cache for the index"},
                           .high = UINT64_C(1) << 42},
    [OPTION_READ_THREADS] =
        {.info = {"read_threads", "0 to 64", "8",
                  "maximum of threads that a reader starts to read several places of slow storage at once, or to "
                  "select records"},
         .high = 64},
    [OPTION_ROUTE] =
        {.info = {"route", "auto, direct, 3hop or grid", "auto",
                  "how records go to their ranks: directly, through one rank for each other node, or along rows and "
                  "columns of nodes; auto: the fewest hops that memory allows"},
         .words = {[ROUTE_AUTO] = "auto", [ROUTE_DIRECT] = "direct", [ROUTE_3HOP] = "3hop", [ROUTE_GRID] = "grid"}},
    [OPTION_SCHEMA] =
        {.info =
             {"schema", "NAME:TYPE,...", "",
              "columns of a value, such as x:f4,y:f4,cell:i4; x:f4~1e-4 has an error bound; sets the value size too"}},
    [OPTION_SKIP] = {.info = {"skip", "bytes, 0 or more", "0", "bytes in a file before the first row that is indexed"},
                     .high = INT64_MAX},
    [OPTION_STATS] =
        {.info = {"stats", "FILE", "",
                  "file to which a job appends a line of JSON when it closes a directory: messages, waits, memory"}},
    [OPTION_SYNC] = {.info = {"sync", "none, commit or close", "commit",
                              "when data is forced to storage: never, before each commit, or at the close; deltafs(7) "
                              "says what is safe when"},
                     .words = {[SYNC_NONE] = "none", [SYNC_COMMIT] = "commit", [SYNC_CLOSE] = "close"}},
    [OPTION_THREADS] =
        {.info =
             {"threads", "0 to 64, or auto", "auto",
              "additional threads: they sort, encode and write a directory, or read and check a logical file; auto: 2 "
              "to 4 for a directory; for a logical file 1 if the process may run on two processors for each process of "
              "the job, else 0"},
         .high = 64,
         .automatic = "auto"},
    [OPTION_VALUE_SIZE] = {.info = {"value_size", "bytes, 0 to 1M, or any", "any",
                                    "size of every value; any: sizes may differ"},
                           .high = 1 << 20,
                           .automatic = "any"},
    [OPTION_VOLUMES] =
        {.info = {"volumes", "FOLDER:FOLDER...", "",
                  "absolute paths of folders over which new files are distributed; none: all files are in one place"}},
};

enum option_source { SOURCE_DEFAULT, SOURCE_ENVIRONMENT, SOURCE_CALLER };

struct deltafs_options {
    struct {
        char *text;
        uint64_t number;
        enum option_source source;
    } value[OPTION_COUNT];
    int is_index, is_repair;
    struct caller_partitioner partitioner;
};

const struct deltafs_option_info *deltafs_option_at(size_t i)
{
    return i < OPTION_COUNT ? &rows[i].info : NULL;
}

static int option_find(const char *name, int *row, struct error *e)
{
    char valid[512] = "";

    for (*row = 0; *row < OPTION_COUNT; ++*row)
        if (strcmp(rows[*row].info.name, name) == 0)
            return DELTAFS_OK;
    for (size_t i = 0, at = 0; i < OPTION_COUNT && at < sizeof valid; i++)
        at += (size_t)snprintf(valid + at, sizeof valid - at, "%s%s", i ? ", " : "", rows[i].info.name);
    return error_set(e, DELTAFS_ERR_OPTION, "no option '%s'; there are: %s", name, valid);
}

static int option_refuse(const struct option_row *row, const char *text, struct error *e)
{
    return error_set(e, DELTAFS_ERR_OPTION, "option %s: '%s' is not valid; it takes %s", row->info.name, text,
                     row->info.takes);
}

static int schema_has(const deltafs_schema *s, const char *name)
{
    size_t i = 0;

    while (i < deltafs_schema_count(s) && strcmp(deltafs_schema_field(s, i)->name, name) != 0)
        i++;
    return i < deltafs_schema_count(s);
}

/* A field that is called key or epoch is shown as value.key or value.epoch, which must not be another field. */
static int schema_check_names(const deltafs_schema *s, struct error *e)
{
    static const char *const shown[] = {"value.key", "value.epoch"};

    for (size_t i = 0; i < 2; i++) {
        const char *own = strchr(shown[i], '.') + 1;
        if (schema_has(s, own) && schema_has(s, shown[i]))
            return error_set(e, DELTAFS_ERR_SCHEMA,
                             "schema: the field '%s' is shown as '%s', which is another field; rename one of them", own,
                             shown[i]);
    }
    return DELTAFS_OK;
}

static int option_parse(const struct option_row *row, const char *text, uint64_t *number, struct error *e)
{
    deltafs_schema *schema;

    *number = 0;
    if (row->words[0]) {
        while (*number < WORDS && row->words[*number] && strcmp(row->words[*number], text) != 0)
            ++*number;
        return *number < WORDS && row->words[*number] ? DELTAFS_OK : option_refuse(row, text, e);
    }
    if (row->automatic && strcmp(text, row->automatic) == 0)
        *number = OPTION_AUTO;
    else if (row->high > 0)
        return number_parse_size(text, number) == 0 && *number >= row->low && *number <= row->high
                   ? DELTAFS_OK
                   : option_refuse(row, text, e);
    else if (row == &rows[OPTION_SCHEMA] && *text != '\0') {
        if (deltafs_schema_parse(text, &schema) != DELTAFS_OK)
            return deltafs_private_thread_error()->status;
        int status = schema_check_names(schema, e);
        *number = deltafs_schema_size(schema);
        deltafs_schema_destroy(schema);
        return status;
    } else
        *number = *text != '\0';
    return DELTAFS_OK;
}

static int option_set(deltafs_options *o, int i, const char *text, enum option_source source, struct error *e)
{
    uint64_t number;
    int status = option_parse(&rows[i], text, &number, e);

    if (status != DELTAFS_OK)
        return status;
    char *copy = NULL;
    if (i == OPTION_SCHEMA && *text != '\0')
        status = schema_text_plain(text, &copy, e); /* as it is stored */
    else if (!(copy = strdup(text)))
        status = error_no_memory(e, strlen(text) + 1, "an option");
    if (status != DELTAFS_OK)
        return status;
    free(o->value[i].text);
    o->value[i].text = copy;
    o->value[i].number = number;
    o->value[i].source = source;
    if (i == OPTION_PARTITIONER)
        o->partitioner = (struct caller_partitioner){NULL, NULL};
    return DELTAFS_OK;
}

int partitioner_is_name(const char *name)
{
    static const char valid[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    size_t n = strlen(name), word = 0;

    while (word < WORDS && rows[OPTION_PARTITIONER].words[word] &&
           strcmp(rows[OPTION_PARTITIONER].words[word], name) != 0)
        word++;
    return n > 0 && n < PARTITIONER_NAME_ROOM && strspn(name, valid) == n &&
           (word == WORDS || !rows[OPTION_PARTITIONER].words[word]);
}

static int set_partitioner(deltafs_options *o, const char *name, struct caller_partitioner p, struct error *e)
{
    char *copy = strdup(name);

    if (!copy)
        return error_no_memory(e, strlen(name) + 1, "an option");
    free(o->value[OPTION_PARTITIONER].text);
    o->value[OPTION_PARTITIONER].text = copy;
    o->value[OPTION_PARTITIONER].number = PARTITIONER_CALLER;
    o->value[OPTION_PARTITIONER].source = SOURCE_CALLER;
    o->partitioner = p;
    return DELTAFS_OK;
}

int deltafs_options_set_partitioner(deltafs_options *o, const char *name, deltafs_partition_fn fn, void *arg)
{
    struct error *e = deltafs_private_thread_error();

    if (!o || !name || !fn)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_options_set_partitioner: options, name and fn must be given");
    if (!partitioner_is_name(name))
        return error_set(e, DELTAFS_ERR_OPTION,
                         "deltafs_options_set_partitioner: '%s' is no name for a partitioner; it has 1 to %d letters, "
                         "digits, '_', '-' and '.', and is not 'hash' or 'range'",
                         name, PARTITIONER_NAME_ROOM - 1);
    return set_partitioner(o, name, (struct caller_partitioner){fn, arg}, e);
}

struct caller_partitioner deltafs_private_options_partitioner(const deltafs_options *o, const char *name)
{
    return strcmp(o->value[OPTION_PARTITIONER].text, name) == 0 ? o->partitioner
                                                                : (struct caller_partitioner){NULL, NULL};
}

int deltafs_options_set(deltafs_options *o, const char *name, const char *value)
{
    struct error *e = deltafs_private_thread_error();

    if (!o || !name || !value)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_options_set: options, name and value must be given");
    int i, status = option_find(name, &i, e);
    return status == DELTAFS_OK ? option_set(o, i, value, SOURCE_CALLER, e) : status;
}

int deltafs_options_get(const deltafs_options *o, const char *name, const char **value)
{
    struct error *e = deltafs_private_thread_error();

    if (!o || !name || !value)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_options_get: options, name and value must be given");
    int i, status = option_find(name, &i, e);
    if (status == DELTAFS_OK)
        *value = o->value[i].text;
    return status;
}

static void option_variable(int i, char variable[static 64])
{
    size_t n = (size_t)snprintf(variable, 64, "DELTAFS_%s", rows[i].info.name);

    for (size_t k = 0; k < n; k++)
        variable[k] = (char)toupper((unsigned char)variable[k]);
}

static int option_from_environment(deltafs_options *o, int i, struct error *e)
{
    char variable[64];

    option_variable(i, variable);
    const char *text = getenv(variable);
    if (!text)
        return DELTAFS_OK;
    int status = option_set(o, i, text, SOURCE_ENVIRONMENT, e);
    if (status == DELTAFS_OK)
        return status;
    return error_set(e, DELTAFS_ERR_OPTION, "environment variable %s: %s", variable, e->text);
}

int deltafs_options_create(deltafs_options **out)
{
    struct error *e = deltafs_private_thread_error();
    int status = DELTAFS_OK;

    if (!out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_options_create: out must be given");
    deltafs_options *o = calloc(1, sizeof *o);
    if (!o)
        return error_no_memory(e, sizeof *o, "options");
    for (int i = 0; i < OPTION_COUNT && status == DELTAFS_OK; i++) {
        status = option_set(o, i, rows[i].info.default_value, SOURCE_DEFAULT, e);
        if (status == DELTAFS_OK)
            status = option_from_environment(o, i, e);
    }
    if (status != DELTAFS_OK) {
        deltafs_options_destroy(o);
        return status;
    }
    *out = o;
    return DELTAFS_OK;
}

void deltafs_options_destroy(deltafs_options *o)
{
    if (!o)
        return;
    for (int i = 0; i < OPTION_COUNT; i++)
        free(o->value[i].text);
    free(o);
}

uint64_t deltafs_private_options_number(const deltafs_options *o, enum option_id id)
{
    return o->value[id].number;
}

const char *deltafs_private_options_text(const deltafs_options *o, enum option_id id)
{
    return o->value[id].text;
}

int deltafs_private_options_is_given(const deltafs_options *o, enum option_id id)
{
    return o->value[id].source != SOURCE_DEFAULT;
}

int deltafs_private_options_prefer(deltafs_options *o, enum option_id id, const char *text, struct error *e)
{
    return option_set(o, (int)id, text, SOURCE_DEFAULT, e);
}

int deltafs_private_options_reset(deltafs_options *o, enum option_id id, struct error *e)
{
    return option_set(o, (int)id, rows[id].info.default_value, SOURCE_DEFAULT, e);
}

int deltafs_private_options_copy(deltafs_options *to, const deltafs_options *from, struct error *e)
{
    int status = DELTAFS_OK;

    for (int i = 0; i < OPTION_COUNT && status == DELTAFS_OK; i++)
        status = i == OPTION_PARTITIONER && from->partitioner.fn
                     ? set_partitioner(to, from->value[i].text, from->partitioner, e)
                     : option_set(to, i, from->value[i].text, from->value[i].source, e);
    return status;
}

void deltafs_private_options_mark_repair(deltafs_options *o)
{
    o->is_repair = 1;
}

int deltafs_private_options_is_repair(const deltafs_options *o)
{
    return o->is_repair;
}

void deltafs_private_options_mark_index(deltafs_options *o)
{
    o->is_index = 1;
}

int deltafs_private_options_is_index(const deltafs_options *o)
{
    return o->is_index;
}

int deltafs_private_options_refuse(const deltafs_options *o, enum option_id id, const char *path, const char *is,
                                   struct error *e)
{
    const char *advice = id == OPTION_SCHEMA ? "append values of that schema, or use another directory"
                                             : "leave it out, then it is as it was";
    char variable[64], by[128] = "";

    option_variable((int)id, variable);
    if (o->value[id].source == SOURCE_ENVIRONMENT)
        snprintf(by, sizeof by, " by the environment variable %s", variable);
    return error_set(e, DELTAFS_ERR_OPTION, "option %s: '%s' is given%s, but %s was made with%s%s%s; %s",
                     rows[id].info.name, o->value[id].text, by, path, *is ? " '" : "out one", is, *is ? "'" : "",
                     advice);
}

struct error *deltafs_private_thread_error(void)
{
    static _Thread_local struct error e = {.text = "no error"};

    return &e;
}
