/* Text logs: files of lines, each with a checksum, appended and never changed. MANIFEST, SESSION, SOURCES and LEASE are
 * text logs. A line is "WORD NAME=VALUE ... ~CHECKSUM\n". A last line that a crash left incomplete does not count; any
 * other line that does not match its checksum is damage. In a chained log, each line's checksum continues that of the
 * line before it, so a line that is removed, moved or repeated is found. */
#ifndef DELTAFS_IO_TEXTLOG_H
#define DELTAFS_IO_TEXTLOG_H

#include "base/buffer.h"
#include "base/uuid.h"
#include "io/io.h"

/* Append a line at *size, which moves to its end. */
__attribute__((format(printf, 5, 6))) int textlog_append(struct io_file *file, uint64_t *size, int sync,
                                                         struct error *e, const char *format, ...);

/* The same in a chained log: *chain is the checksum of the line before, and becomes that of this line. */
__attribute__((format(printf, 6, 7))) int textlog_append_chained(struct io_file *file, uint64_t *size, uint32_t *chain,
                                                                 int sync, struct error *e, const char *format, ...);

/* A line that is written in pieces, so that one of any length takes no memory. After a failure the caller removes what
 * was written of it. */
struct textlog_line {
    struct io_file *file;
    struct error *error;
    int status;
    uint64_t at, end; /* offsets of the line, and of what is not written yet */
    uint32_t checksum;
    size_t used;
    char piece[4096];
};

void textlog_line_begin(struct textlog_line *l, struct io_file *file, uint64_t at, struct error *e);
void textlog_line_put(struct textlog_line *l, const char *text, size_t n);
/* The first failure of these calls; otherwise *size is moved to the line's end. */
int textlog_line_end(struct textlog_line *l, uint64_t *size, int sync);

/* One line, without its checksum, at `offset`. */
typedef int (*textlog_fn)(void *arg, char *line, const char *path, uint64_t offset, struct error *e);

/* Pass each line of a file to `fn`; *end gets the end of the last complete line. `advice` says what to do about a
 * damaged line, or is NULL. */
int textlog_read(struct io_file *file, const char *advice, textlog_fn fn, void *arg, uint64_t *end, struct error *e);

/* A word that lines may begin with, and what takes the fields behind it. */
struct textlog_word {
    const char *word; /* NULL ends a table; the first row is that of the first line, and of no other */
    int (*take)(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e);
};

/* Take no field. */
int textlog_skip(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e);

/* Pass the line's fields to the function of its word. A word that is not in the table is skipped if it begins with a
 * small letter, and DELTAFS_ERR_VERSION if not. */
int textlog_take(const struct textlog_word *words, void *arg, char *line, const char *path, uint64_t offset,
                 struct error *e);

/* The first line of every MANIFEST, "Deltafs version=1 uuid=UUID". */
int textlog_append_id(struct io_file *file, uint64_t *size, const char *uuid_text, struct error *e);
int textlog_take_id(const char *fields, const char *path, uint64_t offset, uint8_t uuid[16],
                    char uuid_text[UUID_TEXT_SIZE], struct error *e);

/* A text log that is being read, in pieces: memory depends on the longest line, not on the size that the file claims,
 * which may be a hole. */
struct textlog {
    struct io_file *file; /* NULL: the text is in memory */
    const char *path;
    const char *advice; /* what to do about a damaged line, or NULL */
    uint64_t size;
    uint64_t at;     /* offset of the current line */
    uint64_t number; /* its number, from 1 */
    int is_chained;  /* the lines that follow are; may be set while the first line is taken */
    uint32_t chain;  /* checksum of the line before; at the end, of the last one */
    struct buffer read;
    size_t start, end; /* the current line, and what was read behind it, in `read` */
};

/* Begin to read, with the first piece; `read` is the caller's to free. */
int textlog_begin(struct textlog *t, struct io_file *file, const char *advice, struct error *e);
/* Pass all lines to `fn`; t->at gets the end of the last complete line. */
int textlog_parse(struct textlog *t, textlog_fn fn, void *arg, struct error *e);
/* Read all of a file into memory that the caller frees. */
int textlog_load(struct io_file *file, char **text, uint64_t *size, struct error *e);

/* The text of *n bytes, up to the next blank, of the field NAME= in a line; NULL if there is no such field. */
const char *textlog_field(const char *fields, const char *name, size_t *n);
/* The number, or the text, of a field. Returns 0, or -1. */
int textlog_number(const char *fields, const char *name, uint64_t *out);
int textlog_text(const char *fields, const char *name, char *value, size_t room);

#define TEXTLOG_LINE_MAX (16u << 20) /* bytes */

/* Whether a line of `n` bytes, without its newline, ends in its checksum. */
int textlog_is_sealed(const char *line, size_t n);
/* Whether a crash lost the begin of the last line, of `n` bytes at `offset`: the rest of its sector is zero, and only
 * the next sector was written. */
int textlog_begin_is_lost(const char *line, uint64_t offset, size_t n);

#endif
