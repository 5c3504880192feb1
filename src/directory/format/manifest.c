#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "base/schema_text.h"
#include "directory/format/directory_format.h"
#include "directory/format/manifest.h"
#include "io/volume.h"

#define COPY_PIECE (64u << 10) /* bytes copied at once */
#define LINE_PIECE 4096        /* of the first lines: only that of a schema can be longer */

static const char *const partitioner_words[] = {
    [PARTITIONER_HASH] = "xxh3", [PARTITIONER_RANGE] = "range", [PARTITIONER_CALLER] = "caller"};

/* ---- Writing ---- */

/* Error bounds have a line of their own, which a reader need not know. */
static int put_schema(struct io_file *file, uint64_t *size, const char *schema, struct error *e)
{
    char *plain, *bounds;
    int status = schema_text_split(schema, &plain, &bounds, e);

    if (status == DELTAFS_OK)
        status = textlog_append(file, size, 0, e, "schema %s", plain);
    if (status == DELTAFS_OK && bounds)
        status = textlog_append(file, size, 0, e, "bounds %s", bounds);
    free(plain);
    free(bounds);
    return status;
}

static int manifest_write_head(struct io_file *file, uint64_t *size, const struct manifest *m, struct error *e)
{
    char value[32] = "any", bytes[STRIPS_TEXT], name[PARTITIONER_NAME_ROOM + 8] = "";
    int status = textlog_append_id(file, size, m->uuid_text, e);

    if (m->value_size >= 0)
        snprintf(value, sizeof value, "%" PRId64, m->value_size);
    if (m->partitioner == PARTITIONER_CALLER)
        snprintf(name, sizeof name, " name=%s", m->partitioner_name);
    if (status == DELTAFS_OK)
        status = textlog_append(
            file, size, 0, e, "Directory keys=%s partitioner=%s partitions=%" PRIu32 " value_size=%s%s%s%s",
            m->keys == KEYS_BYTES ? "bytes" : "u64", partitioner_words[m->partitioner], m->partitions, value,
            m->is_local ? " place=local" : "", m->is_index ? " kind=index" : "", name);
    if (status == DELTAFS_OK && m->schema[0] != '\0')
        status = put_schema(file, size, m->schema, e);
    strips_print(&m->strips, bytes);
    if (status == DELTAFS_OK && m->strips.count > 0)
        status = textlog_append(file, size, 0, e, "Strips bytes=%s", bytes);
    if (status == DELTAFS_OK && m->compacted > 0)
        status = textlog_append(file, size, 0, e, "Compacted epochs=%" PRIu32, m->compacted);
    if (status == DELTAFS_OK && m->is_local)
        status = manifest_append_job(file, size, m->job, 0, e);
    return status == DELTAFS_OK && m->pivots_count > 0
               ? manifest_append_pivots(file, size, m->pivots[0].key, m->partitions - 1, 0, e)
               : status;
}

static int manifest_write(struct io *io, const char *aside, const struct manifest *m, int sync, struct error *e)
{
    struct io_file file;
    uint64_t size = 0;
    int status = io_file_open(io, aside, O_RDWR | O_CREAT | O_EXCL, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = manifest_write_head(&file, &size, m, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&file, e);
    return io_file_finish(&file, status, e);
}

int manifest_create(struct io *io, const char *folder, const struct manifest *m, int sync, struct error *e)
{
    char aside[PATH_ROOM], path[PATH_ROOM];
    int status = manifest_write(io, io_path_in(aside, folder, MANIFEST_NEW_NAME), m, sync, e);

    if (status == DELTAFS_OK)
        status = io_rename(io, aside, io_path_in(path, folder, MANIFEST_NAME), e);
    if (status != DELTAFS_OK)
        io->ops->unlink(io->ctx, aside);
    return status == DELTAFS_OK && sync ? io_sync_folder(io, folder, e) : status;
}

int manifest_append_epoch(struct io_file *file, uint64_t *size, uint64_t number, const struct manifest_epoch *epoch,
                          int sync, struct error *e)
{
    char covers[32] = "";

    if (epoch->covers > 0)
        snprintf(covers, sizeof covers, " covers=%" PRIu32, epoch->covers);
    return textlog_append(file, size, sync, e,
                          "Epoch number=%" PRIu64 " label=%" PRIu64 " records=%" PRIu64 " raw=%" PRIu64
                          " stored=%" PRIu64 "%s",
                          number, epoch->label, epoch->records, epoch->bytes_raw, epoch->bytes_stored, covers);
}

int manifest_append_pivots(struct io_file *file, uint64_t *size, const uint64_t *pivots, uint32_t n, int sync,
                           struct error *e)
{
    static const char head[] = "Pivots keys=";
    struct textlog_line l;
    uint64_t last = 0;
    char text[24];

    textlog_line_begin(&l, file, *size, e);
    textlog_line_put(&l, head, sizeof head - 1);
    for (uint32_t i = 0; i < n; last = pivots[i++]) {
        int length = snprintf(text, sizeof text, "%s%" PRIx64, i > 0 ? "," : "", pivots[i] - last);
        textlog_line_put(&l, text, (size_t)length);
    }
    return textlog_line_end(&l, size, sync);
}

int manifest_append_open(struct io_file *file, uint64_t *size, uint64_t epochs, int sync, struct error *e)
{
    return textlog_append(file, size, sync, e, "open epochs=%" PRIu64, epochs);
}

int manifest_append_job(struct io_file *file, uint64_t *size, const struct manifest_job *job, int sync, struct error *e)
{
    return textlog_append(file, size, sync, e,
                          "Local epochs=%" PRIu64 " first=%" PRIu32 " writers=%" PRIu32 " bits=%u read=%" PRIu64,
                          job->epochs, job->first, job->writers, job->bits, job->read);
}

int manifest_append_close(struct io_file *file, uint64_t *size, uint64_t epochs, uint64_t tail_length, int sync,
                          struct error *e)
{
    return textlog_append(file, size, sync, e, "close epochs=%" PRIu64 " tail=%" PRIu64, epochs, tail_length);
}

/* Write `from` to `size` of the manifest to its open copy. */
static int manifest_copy_bytes(struct io_file *manifest, struct io_file *copy, uint64_t from, uint64_t size,
                               struct error *e)
{
    uint8_t bytes[COPY_PIECE];
    int status = DELTAFS_OK;

    while (from < size && status == DELTAFS_OK) {
        size_t n = size - from < sizeof bytes ? (size_t)(size - from) : sizeof bytes;
        status = io_file_read(manifest, from, bytes, n, e);
        if (status == DELTAFS_OK)
            status = io_file_write(copy, from, bytes, n, e);
        from += n;
    }
    return status;
}

int manifest_copy(struct io_file *manifest, uint64_t *copied, uint64_t size, int sync, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file copy;

    snprintf(path, sizeof path, "%.*s" MANIFEST_COPY_NAME, (int)(strlen(manifest->path) - strlen(MANIFEST_NAME)),
             manifest->path);
    int status = io_file_open(manifest->io, path, *copied > 0 ? O_RDWR : O_RDWR | O_CREAT, &copy, e);
    if (status != DELTAFS_OK)
        return status;
    status = manifest_copy_bytes(manifest, &copy, *copied, size, e);
    if (status == DELTAFS_OK && *copied == 0)
        status = io_file_truncate(&copy, size, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&copy, e);
    status = io_file_finish(&copy, status, e);
    if (status == DELTAFS_OK && sync)
        status = io_sync_parent(manifest->io, path, e);
    if (status == DELTAFS_OK)
        *copied = size;
    return status;
}

/* ---- Reading ---- */

static int parse_version(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;

    return textlog_take_id(fields, path, offset, m->uuid, m->uuid_text, e);
}

static int parse_directory(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    char keys[32], partitioner[32], value[32], place[32], kind[32];
    uint64_t partitions, size;

    if (textlog_text(fields, "keys", keys, sizeof keys) != 0 ||
        textlog_text(fields, "partitioner", partitioner, sizeof partitioner) != 0 ||
        textlog_text(fields, "value_size", value, sizeof value) != 0 ||
        textlog_number(fields, "partitions", &partitions) != 0 || partitions < 1 || partitions > 1 << 20)
        return error_damaged(e, path, offset, "the directory's line is malformed");
    enum option_partitioner by = PARTITIONER_HASH;
    while (by <= PARTITIONER_CALLER && strcmp(partitioner, partitioner_words[by]) != 0)
        by++;
    if ((strcmp(keys, "u64") != 0 && strcmp(keys, "bytes") != 0) || by > PARTITIONER_CALLER)
        return error_set(e, DELTAFS_ERR_VERSION,
                         "%s: keys '%s' placed by '%s' are not known to DeltaFS %s; use a newer DeltaFS", path, keys,
                         partitioner, deltafs_version());
    m->is_index = textlog_text(fields, "kind", kind, sizeof kind) == 0 && strcmp(kind, "index") == 0;
    m->is_local = textlog_text(fields, "place", place, sizeof place) == 0;
    if (m->is_local && strcmp(place, "local") != 0)
        return error_set(e, DELTAFS_ERR_VERSION,
                         "%s: records placed as '%s' are not known to DeltaFS %s; use a newer DeltaFS", path, place,
                         deltafs_version());
    m->keys = strcmp(keys, "bytes") == 0 ? KEYS_BYTES : KEYS_U64;
    m->partitioner = by;
    if ((by != PARTITIONER_HASH && (m->keys == KEYS_BYTES || m->is_index)) ||
        (by == PARTITIONER_RANGE && partitions > PARTITIONS_RANGE_MAX) ||
        (by == PARTITIONER_CALLER &&
         (textlog_text(fields, "name", m->partitioner_name, sizeof m->partitioner_name) != 0 ||
          !partitioner_is_name(m->partitioner_name))))
        return error_damaged(e, path, offset, "the directory's line is malformed");
    m->partitions = (uint32_t)partitions;
    m->value_size = -1;
    if (strcmp(value, "any") != 0) {
        if (number_parse(value, &size) != 0 || size > 1 << 20)
            return error_damaged(e, path, offset, "the value size is malformed");
        m->value_size = (int64_t)size;
    }
    return DELTAFS_OK;
}

static int parse_file(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    size_t n = strlen(path), end = strlen("/" MANIFEST_NAME);

    (void)arg;
    (void)fields;
    (void)offset;
    n -= n > end && strcmp(path + n - end, "/" MANIFEST_NAME) == 0 ? end : 0;
    return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%.*s: is a logical file of DeltaFS, not a directory", (int)n, path);
}

static int parse_strips(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    char bytes[STRIPS_TEXT];

    if (m->strips.count > 0 || m->epoch_count > 0 || m->is_local || m->keys == KEYS_BYTES || m->value_size < 0 ||
        textlog_text(fields, "bytes", bytes, sizeof bytes) != 0 || strips_parse(&m->strips, bytes, m->value_size) != 0)
        return error_damaged(e, path, offset, "the line of the strips is malformed");
    return DELTAFS_OK;
}

static int parse_compacted(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    uint64_t epochs;

    if (m->compacted > 0 || m->epoch_count > 0 || m->partitions == 0 || m->is_local || m->is_index ||
        textlog_number(fields, "epochs", &epochs) != 0 || epochs < 1 || epochs >= UINT32_MAX)
        return error_damaged(e, path, offset, "the line of the compacted epochs is malformed");
    m->compacted = (uint32_t)epochs;
    return DELTAFS_OK;
}

static int parse_schema(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    deltafs_schema *schema;
    int status = m->schema || m->partitions == 0 ? DELTAFS_ERR_SCHEMA : deltafs_schema_parse(fields, &schema);

    if (status == DELTAFS_ERR_MEMORY)
        return error_no_memory(e, strlen(fields), "a schema");
    if (status != DELTAFS_OK)
        return error_damaged(e, path, offset, "the schema is malformed");
    int fits = m->value_size >= 0 && (uint64_t)m->value_size == deltafs_schema_size(schema);
    deltafs_schema_destroy(schema);
    if (!fits)
        return error_damaged(e, path, offset, "the schema is not of the value size");
    m->schema = strdup(fields);
    return m->schema ? DELTAFS_OK : error_no_memory(e, strlen(fields), "a schema");
}

static int parse_bounds(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    deltafs_schema *schema;
    char *whole = NULL;
    int is_wrong = !m->schema || m->has_bounds;
    int status = is_wrong ? DELTAFS_ERR_SCHEMA : schema_text_join(m->schema, fields, &whole, e);

    if (status == DELTAFS_OK)
        status = deltafs_schema_parse(whole, &schema);
    if (status != DELTAFS_OK) {
        free(whole);
        return status == DELTAFS_ERR_MEMORY ? error_no_memory(e, strlen(fields), "a schema")
                                            : error_damaged(e, path, offset, "the error bounds are malformed");
    }
    deltafs_schema_destroy(schema);
    free(m->schema);
    m->schema = whole;
    m->has_bounds = 1;
    return DELTAFS_OK;
}

/* The last epoch covers others. */
static void note_covered(struct manifest *m)
{
    uint64_t last = m->epoch_count - 1, i = last - m->epoch[last].covers;

    while (i < last) {
        uint32_t *by = &m->epoch[i].covered_by;
        i = *by > 0 ? *by : i + 1;
        *by = *by > 0 ? *by : (uint32_t)last;
    }
}

static int parse_epoch(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    struct manifest_epoch epoch = {.covers = 0};
    uint64_t number, covers = 0;
    char text[32];

    if (textlog_number(fields, "number", &number) != 0 || textlog_number(fields, "label", &epoch.label) != 0 ||
        textlog_number(fields, "records", &epoch.records) != 0 ||
        textlog_number(fields, "raw", &epoch.bytes_raw) != 0 ||
        textlog_number(fields, "stored", &epoch.bytes_stored) != 0)
        return error_damaged(e, path, offset, "an epoch's line is malformed");
    if (number != m->epoch_count || number >= UINT32_MAX || (number > 0 && epoch.label <= m->epoch[number - 1].label))
        return error_damaged(e, path, offset, "epoch number %" PRIu64 " is out of order: a line is missing", number);
    if (textlog_text(fields, "covers", text, sizeof text) == 0 &&
        (number_parse(text, &covers) != 0 || covers < 1 || covers > number))
        return error_damaged(e, path, offset, "epoch number %" PRIu64 " covers epochs that are not there", number);
    epoch.covers = (uint32_t)covers;
    if (m->is_local && (m->job_count == 0 || m->lacks_job))
        return error_damaged(e, path, offset, "there is no line of the job that wrote epoch number %" PRIu64, number);
    int status = memory_extend(NULL, &m->epoch, m->epoch_count, &m->epoch_capacity, sizeof *m->epoch, "the epochs", e);
    if (status == DELTAFS_OK)
        m->epoch[m->epoch_count++] = epoch;
    if (status == DELTAFS_OK)
        note_covered(m);
    m->is_closed = 0;
    return status;
}

static int parse_local(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    struct manifest_job job = {.epochs = m->epoch_count, .first = manifest_writers(m)};
    uint64_t epochs, first, writers, bits;

    if (!m->is_local || textlog_number(fields, "epochs", &epochs) != 0 ||
        textlog_number(fields, "first", &first) != 0 || textlog_number(fields, "writers", &writers) != 0 ||
        textlog_number(fields, "bits", &bits) != 0 || textlog_number(fields, "read", &job.read) != 0 ||
        epochs != job.epochs || first != job.first || writers < 1 || writers > LOCAL_WRITERS_MAX ||
        writers > UINT32_MAX - first || bits > POSITION_BITS_MAX)
        return error_damaged(e, path, offset, "the line of a job whose records stay with their writers is malformed");
    job.writers = (uint32_t)writers;
    job.bits = (unsigned)bits;
    struct manifest_job *grown = realloc(m->job, (m->job_count + (size_t)1) * sizeof *grown);
    if (!grown)
        return error_no_memory(e, (m->job_count + (size_t)1) * sizeof *grown, "the jobs");
    m->job = grown;
    m->job[m->job_count++] = job;
    m->is_closed = m->lacks_job = 0;
    return DELTAFS_OK;
}

/* A hexadecimal number at *text, which moves behind it. Returns 0, or -1 if there is none of 64 bits. */
static int parse_hex(const char **text, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit, *begin = *text;

    for (*out = 0; **text != '\0' && (digit = strchr(digits, **text)) != NULL; ++*text)
        *out = *out << 4 | (uint64_t)(digit - digits);
    return *text > begin && *text - begin <= 16 ? 0 : -1;
}

/* The pivots in `text` of `n` bytes, each as what it adds to the one before. Returns 0, or -1 if that is not what it
 * is.
 */
static int parse_keys(const char *text, size_t n, uint64_t *key, uint32_t count)
{
    const char *end = text + n;
    uint64_t last = 0, more;

    for (uint32_t i = 0; i < count; last = key[i++]) {
        if ((i > 0 && *text++ != ',') || parse_hex(&text, &more) != 0 || more > UINT64_MAX - last)
            return -1;
        key[i] = last + more;
    }
    return text == end ? 0 : -1;
}

static int parse_pivots(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    uint32_t count = m->partitions - 1;
    size_t n, known = m->pivots_count;
    const char *keys = textlog_field(fields, "keys", &n);

    if (m->partitioner != PARTITIONER_RANGE || count == 0 || !keys ||
        (m->epoch_count > 0 && m->epoch_count < m->compacted))
        return error_damaged(e, path, offset, "a line of pivots does not belong here");
    int status = memory_extend(NULL, &m->pivots, known, &m->pivots_capacity, sizeof *m->pivots, "pivots", e);
    if (status != DELTAFS_OK)
        return status;
    uint64_t *key = malloc(count * sizeof *key);
    if (!key)
        return error_no_memory(e, count * sizeof *key, "pivots");
    /* Pivots that no epoch was placed by are replaced. */
    if (known > 0 && m->pivots[known - 1].epochs == m->epoch_count)
        free(m->pivots[--m->pivots_count].key);
    m->pivots[m->pivots_count++] = (struct manifest_pivots){m->epoch_count, key};
    return parse_keys(keys, n, key, count) == 0 ? DELTAFS_OK
                                                : error_damaged(e, path, offset, "a line of pivots is malformed");
}

static int parse_open(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    uint64_t epochs;

    if (textlog_number(fields, "epochs", &epochs) != 0 || epochs != m->epoch_count)
        return error_damaged(e, path, offset, "the line of a reopening is malformed");
    m->is_closed = 0;
    m->lacks_job = 1;
    return DELTAFS_OK;
}

static int parse_close(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;
    uint64_t epochs;

    if (textlog_number(fields, "epochs", &epochs) != 0 || epochs != m->epoch_count ||
        textlog_number(fields, "tail", &m->tail_length) != 0)
        return error_damaged(e, path, offset, "the closing line is malformed");
    m->is_closed = m->was_closed = 1;
    if (m->job_count > 0 && !m->lacks_job)
        m->job[m->job_count - 1].is_closed = 1;
    return DELTAFS_OK;
}

static int parse_attribute(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct manifest *m = arg;

    return attributes_parse(&m->attributes, fields, path, offset, e);
}

static int manifest_take(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {{"Deltafs", parse_version},
                                                {"Directory", parse_directory},
                                                {"File", parse_file},
                                                {"schema", parse_schema},
                                                {"bounds", parse_bounds},
                                                {"Strips", parse_strips},
                                                {"Compacted", parse_compacted},
                                                {"Local", parse_local},
                                                {"Pivots", parse_pivots},
                                                {"Epoch", parse_epoch},
                                                {"open", parse_open},
                                                {"close", parse_close},
                                                {ATTRIBUTE_WORD, parse_attribute},
                                                {NULL, NULL}};
    const struct manifest *m = arg;
    int is_kind = strncmp(line, "Directory", 9) == 0 || strncmp(line, "File", 4) == 0;

    if (offset > 0 && is_kind == (m->partitions != 0))
        return error_damaged(e, path, offset, "a line '%.20s' does not belong here", line);
    return textlog_take(words, arg, line, path, offset, e);
}

/* The text's first piece has been read. */
static int manifest_parse_text(struct manifest *m, struct textlog *t, struct error *e)
{
    if (t->end < 8 || memcmp(t->read.bytes, "Deltafs ", 8) != 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                         "%s: not the manifest of a DeltaFS directory; if it was one, restore a backup", t->path);
    int status = textlog_parse(t, manifest_take, m, e);
    m->size = t->at;
    if (status != DELTAFS_OK)
        return status;
    if (m->partitions == 0)
        return error_damaged(e, t->path, t->at, "the manifest ends before the directory's line");
    if (m->is_local && m->job_count == 0)
        return error_damaged(e, t->path, t->at, "the manifest ends before the line of the job that made the directory");
    return m->schema || (m->schema = strdup("")) ? DELTAFS_OK : error_no_memory(e, 1, "a schema");
}

int manifest_parse(struct manifest *m, char *text, size_t n, const char *path, struct error *e)
{
    struct textlog t = {.path = path, .size = n, .read = {.bytes = (uint8_t *)text, .capacity = n}, .end = n};

    return manifest_parse_text(m, &t, e);
}

int manifest_read_file(struct io_file *file, struct manifest *m, struct error *e)
{
    struct textlog t = {.file = NULL};
    uint64_t now = 0;
    int status;

    /* Whoever reopens the container truncates an incomplete line: then the file's new end counts. */
    do {
        manifest_fini(m);
        buffer_fini(&t.read);
        status = textlog_begin(&t, file, NULL, e);
        if (status == DELTAFS_OK)
            status = manifest_parse_text(m, &t, e);
    } while (status == DELTAFS_ERR_DAMAGED && io_file_size(file, &now, error_ignored()) == DELTAFS_OK && now < t.size);
    buffer_fini(&t.read);
    return status;
}

struct label_search {
    uint64_t label;
    int is_there;
};

static int find_label(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    struct label_search *s = arg;
    uint64_t label;

    (void)path;
    (void)offset;
    (void)e;
    if (strncmp(line, "Epoch ", 6) == 0 && textlog_number(line, "label", &label) == 0)
        s->is_there |= label == s->label;
    return DELTAFS_OK;
}

int manifest_find_label(struct io_file *file, uint64_t label, int *is_there, struct error *e)
{
    struct label_search s = {.label = label};
    uint64_t end;
    int status = textlog_read(file, NULL, find_label, &s, &end, e);

    *is_there = s.is_there;
    return status;
}

/* Whether `n` bytes of the copy, from the last that the manifest has on, go on in another line or have a complete one.
 */
static int copy_has_more(const char *bytes, size_t n)
{
    const char *newline = memchr(bytes + 1, '\n', n - 1);

    return bytes[0] != '\n' || (newline && textlog_is_sealed(bytes + 1, (size_t)(newline - bytes) - 1));
}

/* Whether `n` bytes of the copy at the manifest's end, and before, show that it goes on. */
static int copy_is_longer(struct io_file *copy, const struct manifest *m, size_t n, char *bytes)
{
    char head[LINE_PIECE];
    size_t begin = m->size < sizeof head ? (size_t)m->size : sizeof head;

    return io_file_read(copy, 0, head, begin, error_ignored()) == DELTAFS_OK &&
           memmem(head, begin, m->uuid_text, strlen(m->uuid_text)) &&
           io_file_read(copy, m->size - 1, bytes, n, error_ignored()) == DELTAFS_OK && copy_has_more(bytes, n);
}

/* *lacks gets whether the copy is longer and has more lines. A copy of another directory, and one that cannot be read,
 * are no evidence: a reader needs the manifest only. */
static int manifest_lacks_line(struct io *io, const char *folder, const struct manifest *m, int *lacks, struct error *e)
{
    char path[PATH_ROOM], *bytes = NULL;
    struct io_file copy;
    uint64_t size = 0;
    int status;

    *lacks = 0;
    status = io_file_open(io, io_path_in(path, folder, MANIFEST_COPY_NAME), O_RDONLY, &copy, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_MEMORY ? status : DELTAFS_OK;
    if (io_file_size(&copy, &size, error_ignored()) == DELTAFS_OK && size > m->size) {
        size_t n = size - m->size < TEXTLOG_LINE_MAX ? (size_t)(size - m->size) + 1 : TEXTLOG_LINE_MAX;
        bytes = malloc(n);
        if (bytes)
            *lacks = copy_is_longer(&copy, m, n, bytes);
        else
            status = error_no_memory(e, n, "the copy of the manifest");
    }
    free(bytes);
    io_file_close(&copy, error_ignored());
    return status;
}

static int manifest_can_open(struct io *io, const char *path, int flags)
{
    struct io_file file;
    int status = io_file_open(io, path, O_RDONLY | flags, &file, error_ignored());

    if (status == DELTAFS_OK)
        io_file_close(&file, error_ignored());
    return status == DELTAFS_OK;
}

/* There is none: tell what is missing from what is no container, or of which only a half was made. */
static int manifest_is_missing(struct io *io, const char *folder, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file file;
    int status = io_file_open(io, folder, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    io_file_close(&file, error_ignored());
    if (manifest_can_open(io, io_path_in(path, folder, MANIFEST_COPY_NAME), 0))
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: has no %s, but its copy", folder, MANIFEST_NAME);
    if (manifest_can_open(io, io_path_in(path, folder, "00"), O_DIRECTORY))
        return error_set(
            e, DELTAFS_ERR_NOT_DELTAFS,
            "%s: has no %s, although it has the folder 00 of a DeltaFS directory: the file is lost (restore "
            "a copy), or the directory's creation was interrupted (it has no records: remove it)",
            folder, MANIFEST_NAME);
    if (manifest_can_open(io, folder, O_DIRECTORY))
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: a folder, not a DeltaFS directory: it has no %s", folder,
                         MANIFEST_NAME);
    return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: a plain file, neither a DeltaFS directory nor a logical file",
                     folder);
}

static const char manifest_advice[] = "put the manifest itself, or a copy of it, in its place";

int manifest_open(struct io *io, const char *folder, int flags, struct io_file *file, struct error *e)
{
    char path[PATH_ROOM];
    int status = io_file_open(io, io_path_in(path, folder, MANIFEST_NAME), flags, file, e);

    return status == DELTAFS_OK ? status : io_explain(path, flags != O_RDONLY, manifest_advice, e);
}

/* Read a manifest that is open. Where its copy has more, a writer may just have appended to both: that is not damage.
 */
static int manifest_read_whole(struct io_file *file, const char *folder, struct manifest *m, struct error *e)
{
    unsigned waited = 0;
    uint64_t size;
    int status, lacks;

    do {
        size = m->size;
        lacks = 0;
        status = manifest_read_file(file, m, e);
        if (status == DELTAFS_OK)
            status = manifest_lacks_line(file->io, folder, m, &lacks, e);
    } while (lacks && (m->size != size || io_file_wait(file, &waited)));
    if (!lacks)
        return status;
    return error_damaged(e, file->path, m->size, "a line is lost that is in %s.copy", file->path);
}

int manifest_read_to_repair(struct io *io, const char *folder, struct manifest *m, struct error *e)
{
    struct io_file file;
    int status = manifest_open(io, folder, O_RDONLY, &file, e);

    *m = (struct manifest){0};
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? manifest_is_missing(io, folder, e) : status;
    status = manifest_read_whole(&file, folder, m, e);
    if (status != DELTAFS_OK)
        io_explain(file.path, 0, manifest_advice, e);
    io_file_close(&file, error_ignored()); /* opened for reading: nothing can be lost */
    if (status != DELTAFS_OK)
        manifest_fini(m);
    return status;
}

int manifest_check_compacted(const struct manifest *m, const char *folder, struct error *e)
{
    if (m->compacted == 0 || (m->epoch_count >= m->compacted && m->was_closed))
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_DAMAGED,
                     "%s/" MANIFEST_NAME ": its compaction did not end: it has %" PRIu64 " of %" PRIu32
                     " epochs, and %s closing line; remove it (deltafs rm), and compact the source again",
                     folder, m->epoch_count, m->compacted, m->was_closed ? "a" : "no");
}

int manifest_read(struct io *io, const char *folder, struct manifest *m, struct error *e)
{
    int status = manifest_read_to_repair(io, folder, m, e);
    char path[PATH_ROOM];

    if (status == DELTAFS_ERR_DAMAGED)
        error_set(e, status,
                  "%s; nothing can be read while it is so: 'deltafs repair %s' says whether its copy can restore it",
                  e->text, folder);
    else if (status == DELTAFS_ERR_NOT_DELTAFS &&
             manifest_can_open(io, io_path_in(path, folder, MANIFEST_COPY_NAME), 0))
        error_set(e, status, "%s; see 'deltafs repair %s'", e->text, folder);
    if (status != DELTAFS_OK || manifest_check_compacted(m, folder, e) == DELTAFS_OK)
        return status;
    manifest_fini(m);
    return e->status;
}

void manifest_read_head(struct io *io, const char *folder, struct manifest *m)
{
    char head[LINE_PIECE];
    struct io_file file;
    uint64_t size = 0;

    if (manifest_open(io, folder, O_RDONLY, &file, error_ignored()) != DELTAFS_OK)
        return;
    int status = io_file_size(&file, &size, error_ignored());
    size_t n = size < sizeof head ? (size_t)size : sizeof head;
    if (status == DELTAFS_OK && io_file_read(&file, 0, head, n, error_ignored()) == DELTAFS_OK)
        manifest_parse(m, head, n, file.path, error_ignored());
    io_file_close(&file, error_ignored());
}

int manifest_check_sources(struct io *io, const char *folder, const struct manifest *m, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file file;

    if (!m->is_index || m->epoch_count == 0)
        return DELTAFS_OK;
    int status = io_file_open(io, io_path_in(path, folder, SOURCES_NAME), O_RDONLY, &file, e);
    if (status == DELTAFS_OK)
        io_file_close(&file, error_ignored());
    return status != DELTAFS_ERR_NOT_FOUND ? status
                                           : error_damaged(e, path, 0,
                                                           "the file is missing that says which files are indexed; "
                                                           "remove the index, and index its files again "
                                                           "(deltafs-mpi index)");
}

void manifest_fini(struct manifest *m)
{
    free(m->schema);
    free(m->epoch);
    for (size_t i = 0; i < m->pivots_count; i++)
        free(m->pivots[i].key);
    free(m->pivots);
    free(m->job);
    attributes_fini(&m->attributes);
    *m = (struct manifest){0};
}

uint64_t manifest_uncovered(const struct manifest *m, uint64_t epoch, uint64_t end)
{
    while (epoch < end && m->epoch[epoch].covered_by > 0 && m->epoch[epoch].covered_by < end)
        epoch = m->epoch[epoch].covered_by;
    return epoch;
}

const struct manifest_job *manifest_job_of(const struct manifest *m, uint64_t epoch)
{
    uint32_t low = 0, high = m->job_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (m->job[middle].epochs <= epoch)
            low = middle;
        else
            high = middle;
    }
    return m->job + low;
}

struct partitioner manifest_partitioner(const struct manifest *m, uint64_t epoch, uint64_t *end)
{
    struct partitioner by = {.partitions = m->partitions,
                             .fn = m->caller.fn,
                             .arg = m->caller.arg,
                             .is_unknown = m->partitioner == PARTITIONER_CALLER && !m->caller.fn};
    size_t low = 0, high = m->pivots_count;

    epoch = epoch < m->compacted ? 0 : epoch;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->pivots[middle].epochs <= epoch)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0)
        by.pivots = m->pivots[low - 1].key;
    if (end)
        *end = low < m->pivots_count ? m->pivots[low].epochs : UINT64_MAX;
    return by;
}

uint32_t manifest_writers(const struct manifest *m)
{
    return m->job_count > 0 ? m->job[m->job_count - 1].first + m->job[m->job_count - 1].writers : 0;
}

int64_t manifest_stored_size(const struct manifest *m)
{
    return m->is_local ? POSITION_SIZE : m->keys == KEYS_BYTES ? -1 : m->value_size;
}

int manifest_check_buckets(struct io *io, const char *folder, const struct manifest *m, struct error *e)
{
    const struct volume_part all = {io, folder, m->uuid_text, ""};

    return volume_check_buckets(&all, m->partitions < BUCKET_COUNT ? m->partitions : BUCKET_COUNT, e);
}
