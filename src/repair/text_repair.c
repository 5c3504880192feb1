/* A manifest of which a line does not match its checksum. One byte that is wrong is found by the checksum itself: of
 * all that any one byte could be, only one makes it right, but for one line in some hundred thousand, and such a line
 * would have to agree with the logs, too, which is looked at before it is written. A newline that has become another
 * byte, and a byte that has become a newline, are such bytes. More than one is not guessed at. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/crc32c.h"
#include "io/io_format.h"
#include "repair/repair_parts.h"

#define SUFFIX     10     /* " ~" and eight digits */
#define LINE_LONG  4096   /* bytes of a line that is tried in all ways */
#define KEPT_MAX   100000 /* copies of what was replaced */
#define LINE_SHOWN 60     /* of a line in a message */
#define BYTE_FIRST ' '    /* what a line has is between these */
#define BYTE_LAST  '~'

struct mend {
    char *text;
    size_t size;
    const char *path;
    void (*tell)(void *arg, const char *message);
    void *arg;
};

/* The one byte in the text before the checksum that is wrong: whether there is just one, its place and what it was. */
static int text_repair_find_byte(const char *line, size_t n, size_t *place, char *byte)
{
    const char *suffix = line + n - SUFFIX;
    size_t length = n - SUFFIX;
    uint32_t wanted = (uint32_t)strtoul(suffix + 2, NULL, 16), before = 0;
    int found = 0;

    if (n > LINE_LONG)
        return 0;
    for (size_t i = 0; i < length; i++) {
        for (int c = BYTE_FIRST; c <= BYTE_LAST; c++) {
            char b = (char)c;
            uint32_t crc = crc32c(before, &b, 1);
            if (b == line[i] || crc32c(crc, line + i + 1, length - i - 1) != wanted)
                continue;
            found++;
            *place = i;
            *byte = b;
        }
        before = crc32c(before, line + i, 1);
    }
    return found == 1;
}

/* The same of its checksum, and of what stands before that. */
static int text_repair_find_digit(const char *line, size_t n, size_t *place, char *byte)
{
    char suffix[SUFFIX + 1];
    int wrong = 0;

    snprintf(suffix, sizeof suffix, " ~%08" PRIx32, crc32c(0, line, n - SUFFIX));
    for (size_t i = 0; i < SUFFIX; i++)
        if (line[n - SUFFIX + i] != suffix[i]) {
            wrong++;
            *place = n - SUFFIX + i;
            *byte = suffix[i];
        }
    return wrong == 1;
}

static int text_repair_has_suffix(const char *line, size_t n)
{
    const char *suffix = line + n - SUFFIX;

    return n > SUFFIX && suffix[0] == ' ' && suffix[1] == '~' && strspn(suffix + 2, "0123456789abcdef") >= 8;
}

/* A line that ends where `line` goes on: its newline is another byte. */
static int text_repair_find_newline(const char *line, size_t n, size_t *place)
{
    for (size_t i = SUFFIX + 1; i <= n && i <= LINE_LONG; i++)
        if (line[i - SUFFIX] == ' ' && line[i - SUFFIX + 1] == '~' && textlog_is_sealed(line, i)) {
            *place = i;
            return 1;
        }
    return 0;
}

/* A line of `n` bytes that goes on in the next one, up to `more`: the newline between was another byte. */
static int text_repair_find_join(char *line, size_t n, size_t more, char *byte)
{
    int found = 0;

    for (int c = BYTE_FIRST; c <= BYTE_LAST && more <= LINE_LONG; c++) {
        line[n] = (char)c;
        if (textlog_is_sealed(line, more)) {
            found++;
            *byte = (char)c;
        }
    }
    line[n] = '\n';
    return found == 1;
}

/* Put the byte right, and say so. */
static void text_repair_byte(struct mend *m, size_t at, size_t place, char byte)
{
    char message[1024], was[8];
    size_t end = at;

    snprintf(was, sizeof was, "0x%02x", (unsigned char)m->text[place]);
    m->text[place] = byte;
    while (end < m->size && m->text[end] != '\n' && end - at < LINE_SHOWN)
        end++;
    snprintf(
        message, sizeof message,
        "%s: damaged at offset %zu: a line does not match its checksum; its byte at offset %zu, %s, is made 0x%02x "
        "again, which does: '%.*s%s'",
        m->path, at, place, was, (unsigned char)byte, (int)(end - at), m->text + at,
        end - at == LINE_SHOWN ? "..." : "");
    m->tell(m->arg, message);
}

/* What a line that cannot be mended takes with it. */
static int text_repair_fail(const struct mend *m, size_t at, size_t n, struct error *e)
{
    size_t number = 1;
    const char *line = m->text + at, *what = "a fact that no log has";

    for (size_t i = 0; i < at; i++)
        number += m->text[i] == '\n';
    if (number == 1)
        what = "the directory's version and UUID";
    else if (number == 2)
        what = "the kind of keys, the partitions and the values' size";
    else if (strncmp(line, "schema", 4) == 0)
        what = "the schema";
    else if (strncmp(line, "Epoch", 4) == 0)
        what = "an epoch's label and commit";
    else if (strncmp(line, "close", 4) == 0 || strncmp(line, "open", 3) == 0)
        what = "that the directory was opened or closed";
    return error_damaged(
        e, m->path, at,
        "line %zu has more than one wrong byte, which are not guessed at: lost is %s; put a copy of the "
        "file back",
        number, n > 0 ? what : "a line");
}

/* The line at `at`, up to a newline at at + n, which does not match its checksum; *next: to be looked at again. */
static int text_repair_line(struct mend *m, size_t at, size_t n, struct error *e)
{
    char *line = m->text + at, byte = '\n', *newline;
    size_t place = 0, left = m->size - at;

    if (text_repair_find_newline(line, n, &place) && place < left)
        byte = '\n';
    else if (!(n >= SUFFIX && text_repair_find_digit(line, n, &place, &byte)) &&
             !(text_repair_has_suffix(line, n) && text_repair_find_byte(line, n, &place, &byte))) {
        newline = n + 1 < left ? memchr(line + n + 1, '\n', left - n - 1) : NULL;
        place = n;
        if (!newline || !text_repair_find_join(line, n, (size_t)(newline - line), &byte))
            return text_repair_fail(m, at, n, e);
    }
    text_repair_byte(m, at, at + place, byte);
    return DELTAFS_OK;
}

/* All lines but what is cut short at the end. */
static int text_repair_lines(struct mend *m, struct error *e)
{
    size_t at = 0, place;

    while (at < m->size) {
        char *line = m->text + at, *newline = memchr(line, '\n', m->size - at);
        size_t n = newline ? (size_t)(newline - line) : m->size - at;
        if (newline && textlog_is_sealed(line, n)) {
            at += n + 1;
            continue;
        }
        /* What a crash cut short stays as it is; a line that lacks just its newline, too. */
        if (newline ? at + n + 1 == m->size && textlog_begin_is_lost(line, at, n)
                    : !text_repair_find_newline(line, n, &place) || place == n)
            return DELTAFS_OK;
        int status = text_repair_line(m, at, n, e);
        if (status != DELTAFS_OK)
            return status;
    }
    return DELTAFS_OK;
}

static int text_repair_load(struct io *io, const char *folder, const char *name, char **path, char **text, size_t *n,
                            struct error *e)
{
    struct io_file file;
    struct error ignored;
    uint64_t size = 0;

    *text = NULL;
    *path = io_path(folder, "%s", name);
    int status = *path ? io_file_open(io, *path, O_RDONLY, &file, e) : error_no_memory(e, strlen(folder), "a path");
    if (status != DELTAFS_OK)
        return status;
    status = textlog_load(&file, text, &size, e);
    io_file_close(&file, &ignored);
    *n = (size_t)size;
    return status;
}

int text_repair_text(struct io *io, const char *folder, const char *name, void (*tell)(void *arg, const char *message),
                     void *arg, char **text, size_t *n, struct error *e)
{
    struct mend m = {.tell = tell, .arg = arg};
    char *path;
    int status = text_repair_load(io, folder, name, &path, &m.text, &m.size, e);

    m.path = path;
    if (status == DELTAFS_OK)
        status = text_repair_lines(&m, e);
    free(path);
    if (status != DELTAFS_OK) {
        free(m.text);
        return status;
    }
    *text = m.text;
    *n = m.size;
    return DELTAFS_OK;
}

int text_repair_cut(struct io *io, const char *folder, uint64_t number, char **text, size_t *n, struct error *e)
{
    static const char word[] = "Epoch ";
    char *path;
    int status = text_repair_load(io, folder, MANIFEST_NAME, &path, text, n, e);
    size_t at = 0;

    free(path);
    while (status == DELTAFS_OK && at < *n) {
        const char *line = *text + at, *newline = memchr(line, '\n', *n - at);
        if (*n - at > sizeof word && memcmp(line, word, sizeof word - 1) == 0 && number-- == 0)
            break;
        at = newline ? (size_t)(newline - *text) + 1 : *n;
    }
    *n = at;
    if (status != DELTAFS_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

char *text_repair_kept_name(struct io *io, const char *path)
{
    size_t room = strlen(path) + 32;
    char *kept = malloc(room);
    struct io_file file;
    struct error e, ignored;

    for (unsigned i = 1; kept && i < KEPT_MAX; i++) {
        snprintf(kept, room, i == 1 ? "%s" KEPT_SUFFIX : "%s" KEPT_SUFFIX ".%u", path, i);
        int status = io_file_open(io, kept, O_RDONLY, &file, &e);
        if (status == DELTAFS_ERR_NOT_FOUND)
            return kept;
        if (status == DELTAFS_OK)
            io_file_close(&file, &ignored);
    }
    free(kept);
    return NULL;
}

/* A file of this text, durably. */
static int text_repair_write(struct io *io, const char *path, const char *text, size_t n, struct error *e)
{
    struct io_file file;
    int status = io_file_open(io, path, O_RDWR | O_CREAT, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_truncate(&file, 0, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&file, 0, text, n, e);
    if (status == DELTAFS_OK)
        status = io_file_sync(&file, e);
    return io_file_finish(&file, status, e);
}

int text_repair_replace(struct io *io, const char *folder, const char *name, const char *text, size_t n,
                        const char *kept, struct error *e)
{
    char *path = NULL, *old = NULL, *aside = io_path(folder, "%s.new", name);
    size_t size;
    int status = aside ? text_repair_load(io, folder, name, &path, &old, &size, e)
                       : error_no_memory(e, strlen(folder), "a path");

    if (status == DELTAFS_OK)
        status = text_repair_write(io, kept, old, size, e);
    if (status == DELTAFS_OK)
        status = text_repair_write(io, aside, text, n, e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, folder, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, path, e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, folder, e);
    free(aside);
    free(path);
    free(old);
    return status;
}
