#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/crc32c.h"
#include "base/number.h"
#include "io/io_format.h"
#include "io/textlog.h"

#define PIECE           (1u << 20)   /* bytes read at once */
#define LOAD_MAX        (256u << 20) /* bytes that repair loads at once */
#define CHECKSUM_SUFFIX 11           /* " ~", eight digits, newline */

/* `seed`: the checksum that this line's continues. Returns that of the line in *checksum. */
static int line_append(struct io_file *file, uint64_t *size, uint32_t seed, uint32_t *checksum, int sync,
                       struct error *e, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    size_t n = (size_t)vsnprintf(NULL, 0, format, again), room = n + CHECKSUM_SUFFIX + 1;
    va_end(again);
    if (room > TEXTLOG_LINE_MAX)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: a line of %zu bytes; at most %u are possible", file->path, n,
                         TEXTLOG_LINE_MAX - CHECKSUM_SUFFIX - 1);
    char *line = malloc(room);
    if (!line)
        return error_no_memory(e, room, "a line of a text log");
    vsnprintf(line, room, format, args);
    *checksum = crc32c(seed, line, n);
    snprintf(line + n, room - n, " ~%08" PRIx32 "\n", *checksum);
    int status = io_file_write(file, *size, line, n + CHECKSUM_SUFFIX, e);
    free(line);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(file, e);
    if (status == DELTAFS_OK)
        *size += n + CHECKSUM_SUFFIX;
    return status;
}

int textlog_append(struct io_file *file, uint64_t *size, int sync, struct error *e, const char *format, ...)
{
    uint32_t checksum;
    va_list args;

    va_start(args, format);
    int status = line_append(file, size, 0, &checksum, sync, e, format, args);
    va_end(args);
    return status;
}

int textlog_append_chained(struct io_file *file, uint64_t *size, uint32_t *chain, int sync, struct error *e,
                           const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int status = line_append(file, size, *chain, chain, sync, e, format, args);
    va_end(args);
    return status;
}

/* ---- Lines in pieces ---- */

void textlog_line_begin(struct textlog_line *l, struct io_file *file, uint64_t at, struct error *e)
{
    l->file = file;
    l->error = e;
    l->status = DELTAFS_OK;
    l->at = l->end = at;
    l->checksum = 0;
    l->used = 0;
}

/* Write what was put so far. */
static void line_flush(struct textlog_line *l)
{
    if (l->status == DELTAFS_OK)
        l->status = io_file_write(l->file, l->end, l->piece, l->used, l->error);
    l->end += l->used;
    l->used = 0;
}

void textlog_line_put(struct textlog_line *l, const char *text, size_t n)
{
    l->checksum = crc32c(l->checksum, text, n);
    for (size_t some; n > 0; n -= some, text += some) {
        some = n < sizeof l->piece - l->used ? n : sizeof l->piece - l->used;
        memcpy(l->piece + l->used, text, some);
        l->used += some;
        if (l->used == sizeof l->piece)
            line_flush(l);
    }
    if (l->status == DELTAFS_OK && l->end + l->used - l->at > TEXTLOG_LINE_MAX - CHECKSUM_SUFFIX)
        l->status = error_set(l->error, DELTAFS_ERR_INVALID, "%s: a line can have at most %u bytes", l->file->path,
                              TEXTLOG_LINE_MAX);
}

int textlog_line_end(struct textlog_line *l, uint64_t *size, int sync)
{
    char suffix[CHECKSUM_SUFFIX + 1];
    uint32_t checksum = l->checksum;

    snprintf(suffix, sizeof suffix, " ~%08" PRIx32 "\n", checksum);
    if (l->status == DELTAFS_OK)
        textlog_line_put(l, suffix, CHECKSUM_SUFFIX);
    line_flush(l);
    if (l->status == DELTAFS_OK && sync)
        l->status = io_file_sync(l->file, l->error);
    if (l->status == DELTAFS_OK)
        *size = l->end;
    return l->status;
}

/* ---- Fields ---- */

const char *textlog_field(const char *fields, const char *name, size_t *n)
{
    size_t size = strlen(name);

    for (const char *p = fields; p && *p; p = strchr(p, ' ')) {
        p += *p == ' ';
        if (strncmp(p, name, size) == 0 && p[size] == '=') {
            *n = strcspn(p + size + 1, " ");
            return p + size + 1;
        }
    }
    return NULL;
}

int textlog_text(const char *fields, const char *name, char *value, size_t room)
{
    size_t n;
    const char *text = textlog_field(fields, name, &n);

    if (!text || n >= room)
        return -1;
    memcpy(value, text, n);
    value[n] = '\0';
    return 0;
}

int textlog_number(const char *fields, const char *name, uint64_t *out)
{
    char value[32];

    return textlog_text(fields, name, value, sizeof value) == 0 ? number_parse(value, out) : -1;
}

/* Whether it ends in its checksum, which continues `seed`; *checksum gets what it is. */
static int line_is_sealed(const char *line, size_t n, uint32_t seed, uint32_t *checksum)
{
    char digits[9];

    if (n < CHECKSUM_SUFFIX - 1 || memchr(line, '\0', n))
        return 0;
    const char *suffix = line + n - (CHECKSUM_SUFFIX - 1);
    *checksum = crc32c(seed, line, (size_t)(suffix - line));
    snprintf(digits, sizeof digits, "%08" PRIx32, *checksum);
    return memcmp(suffix, " ~", 2) == 0 && memcmp(suffix + 2, digits, 8) == 0;
}

int textlog_is_sealed(const char *line, size_t n)
{
    uint32_t checksum;

    return line_is_sealed(line, n, 0, &checksum);
}

/* Whether the last `n` bytes, which no newline ends, are a whole line whose newline is another byte. An incomplete line
 * by a crash ends before that, or in zeros. */
static int newline_is_damaged(const char *line, size_t n, uint32_t seed)
{
    uint32_t checksum;

    return n > 0 && line[n - 1] != '\0' && line_is_sealed(line, n - 1, seed, &checksum);
}

int textlog_begin_is_lost(const char *line, uint64_t offset, size_t n)
{
    size_t before = FORMAT_SECTOR - offset % FORMAT_SECTOR, zeros = 0;

    while (zeros < before && zeros < n && line[zeros] == '\0')
        zeros++;
    return zeros == before;
}

static int text_read_on(struct textlog *t, struct error *e)
{
    size_t held = t->end - t->start;
    uint64_t left = t->size - t->at - held;
    size_t n = left < PIECE ? (size_t)left : PIECE;

    if (t->start > 0 && held > 0)
        memmove(t->read.bytes, t->read.bytes + t->start, held);
    t->start = 0;
    t->end = held;
    int status = buffer_reserve(&t->read, held + n, "a text log", e);
    if (status == DELTAFS_OK && n > 0)
        status = io_file_read(t->file, t->at + held, t->read.bytes + held, n, e);
    if (status == DELTAFS_OK)
        t->end += n;
    return status;
}

/* The line at hand, of *n bytes without its newline; *is_ended: it has one, as all but the last must. */
static int text_line(struct textlog *t, char **line, size_t *n, int *is_ended, struct error *e)
{
    size_t seen = 0;

    for (;;) {
        size_t held = t->end - t->start;
        char *begin = (char *)t->read.bytes + t->start, *newline = memchr(begin + seen, '\n', held - seen);
        seen = held;
        *is_ended = newline != NULL;
        if (newline || t->at + seen == t->size) {
            *line = begin;
            *n = newline ? (size_t)(newline - begin) : seen;
            return DELTAFS_OK;
        }
        if (seen >= TEXTLOG_LINE_MAX)
            return error_damaged(e, t->path, t->at, "line %" PRIu64 " has more than %u bytes, which none has",
                                 t->number, TEXTLOG_LINE_MAX);
        int status = text_read_on(t, e);
        if (status != DELTAFS_OK)
            return status;
    }
}

/* Whatever a damaged line said, an epoch may hang on it: without it nothing can be said to be all that there is. */
static int text_is_damaged(const struct textlog *t, uint64_t offset, const char *what, struct error *e)
{
    return error_damaged(e, t->path, offset, "line %" PRIu64 " %s%s%s", t->number, what, t->advice ? "; " : "",
                         t->advice ? t->advice : "");
}

int textlog_parse(struct textlog *t, textlog_fn fn, void *arg, struct error *e)
{
    int is_ended = 0, status = DELTAFS_OK;
    size_t n = 0;
    char *line = NULL;

    for (t->number = 1; t->at < t->size && status == DELTAFS_OK; t->number++) {
        status = text_line(t, &line, &n, &is_ended, e);
        if (status != DELTAFS_OK)
            return status;
        if (!is_ended)
            return newline_is_damaged(line, n, t->is_chained ? t->chain : 0)
                       ? text_is_damaged(t, t->size - 1, "does not end in a newline", e)
                       : DELTAFS_OK;
        if (t->at + n + 1 == t->size && textlog_begin_is_lost(line, t->at, n))
            return DELTAFS_OK;
        if (!line_is_sealed(line, n, t->is_chained ? t->chain : 0, &t->chain))
            return text_is_damaged(t, t->at,
                                   t->is_chained ? "does not match its checksum, or a line before it is missing"
                                                 : "does not match its checksum",
                                   e);
        line[n - (CHECKSUM_SUFFIX - 1)] = '\0';
        status = fn(arg, line, t->path, t->at, e);
        t->at += n + 1;
        t->start += n + 1;
    }
    return status;
}

int textlog_read(struct io_file *file, const char *advice, textlog_fn fn, void *arg, uint64_t *end, struct error *e)
{
    struct textlog t;
    int status = textlog_begin(&t, file, advice, e);

    if (status == DELTAFS_OK)
        status = textlog_parse(&t, fn, arg, e);
    buffer_fini(&t.read);
    if (status == DELTAFS_OK)
        *end = t.at;
    return status;
}

int textlog_begin(struct textlog *t, struct io_file *file, const char *advice, struct error *e)
{
    *t = (struct textlog){.file = file, .path = file->path, .advice = advice};
    int status = io_file_size(file, &t->size, e);

    return status == DELTAFS_OK ? text_read_on(t, e) : status;
}

int textlog_load(struct io_file *file, char **text, uint64_t *size, struct error *e)
{
    int status = io_file_size(file, size, e);

    if (status != DELTAFS_OK)
        return status;
    if (*size > LOAD_MAX)
        return error_set(e, DELTAFS_ERR_MEMORY, "%s: has %" PRIu64 " bytes; repair reads at most %u", file->path, *size,
                         LOAD_MAX);
    *text = malloc(*size + 1);
    return *text ? io_file_read(file, 0, *text, *size, e) : error_no_memory(e, *size + 1, "a text log");
}

int textlog_skip(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    (void)arg;
    (void)fields;
    (void)path;
    (void)offset;
    (void)e;
    return DELTAFS_OK;
}

int textlog_take(const struct textlog_word *words, void *arg, char *line, const char *path, uint64_t offset,
                 struct error *e)
{
    size_t n = strcspn(line, " ");
    const char *fields = line[n] ? line + n + 1 : line + n;
    const struct textlog_word *w = words;

    line[n] = '\0';
    while (w->word && strcmp(line, w->word) != 0)
        w++;
    if ((w == words) != (offset == 0))
        return error_damaged(e, path, offset, "a line '%.20s' does not belong here", line);
    if (w->word)
        return w->take(arg, fields, path, offset, e);
    return line[0] < 'A' || line[0] > 'Z'
               ? DELTAFS_OK
               : error_set(e, DELTAFS_ERR_VERSION,
                           "%s: the line '%.20s' at offset %" PRIu64 " is not known to DeltaFS %s; use a newer DeltaFS",
                           path, line, offset, deltafs_version());
}

int textlog_append_id(struct io_file *file, uint64_t *size, const char *uuid_text, struct error *e)
{
    return textlog_append(file, size, 0, e, "Deltafs version=%u uuid=%s", FORMAT_VERSION, uuid_text);
}

int textlog_take_id(const char *fields, const char *path, uint64_t offset, uint8_t uuid[16],
                    char uuid_text[UUID_TEXT_SIZE], struct error *e)
{
    uint64_t version;

    if (textlog_number(fields, "version", &version) != 0 || version > UINT32_MAX)
        return error_damaged(e, path, offset, "the version is malformed");
    if (version != FORMAT_VERSION)
        return error_set(e, DELTAFS_ERR_VERSION,
                         "%s: format version %" PRIu64 " is not known to DeltaFS %s, which reads version %d; "
                         "use a newer DeltaFS",
                         path, version, deltafs_version(), FORMAT_VERSION);
    if (textlog_text(fields, "uuid", uuid_text, UUID_TEXT_SIZE) != 0 || uuid_parse(uuid_text, uuid) != 0)
        return error_damaged(e, path, offset, "the UUID is malformed");
    return DELTAFS_OK;
}
