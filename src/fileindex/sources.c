#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/compose.h"
#include "base/number.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/sources.h"

#define SOURCES_VERSION 3               /* 2: lines are not chained, and none says that a source begins; */
                                        /* 1: nor do tables say how many rows a group has */
#define NAME_ROOM    (3 * PATH_MAX + 1) /* a path, each byte of which may be coded by three */
#define ELEMENT_MAX  (1u << 24)         /* bytes, of a dataset */
#define CONSTANT_MAX 1024               /* bytes */
#define SOURCES_ADVICE                                                                                                 \
    "nothing is found by this index while it is so: remove the index, and index its files again "                      \
    "(deltafs-mpi index)"

/* ---- Names: bytes that would end a field are coded as %HH ---- */

static int is_plain(char c)
{
    return (unsigned char)c > ' ' && c != '%' && c != 0x7f;
}

static void name_print(struct compose *f, const char *name)
{
    for (size_t n; *name; name += n) {
        for (n = 0; is_plain(name[n]);)
            n++;
        if (n > 0)
            compose(f, "%.*s", (int)n, name);
        else
            compose(f, "%%%02x", (unsigned char)name[n++]);
    }
}

/* In place. Returns 0, or -1. */
static int name_decode(char *name)
{
    char *to = name;

    for (const char *p = name; *p; p++, to++) {
        const char hex[3] = {p[1], p[1] ? p[2] : '\0', '\0'};
        char c = *p;
        if (c == '%') {
            if (strspn(hex, "0123456789abcdef") != 2 || (c = (char)strtoul(hex, NULL, 16)) == '\0')
                return -1;
            p += 2;
        }
        *to = c;
    }
    *to = '\0';
    return 0;
}

/* A new text: the name in a field of a line, which is that of `what`. */
static int name_take(const char *fields, const char *field, const char *what, const char **out, const char *path,
                     uint64_t offset, struct error *e)
{
    char name[NAME_ROOM];

    *out = NULL;
    if (textlog_text(fields, field, name, sizeof name) != 0 || name_decode(name) != 0)
        return error_damaged(e, path, offset, "the name of %s is malformed", what);
    *out = strdup(name);
    return *out ? DELTAFS_OK : error_no_memory(e, strlen(name), what);
}

/* ---- Freeing ---- */

void table_fini(struct deltafs_table *t)
{
    for (size_t i = 0; i < t->column_count; i++) {
        free((char *)(uintptr_t)t->column[i].name);
        free((struct deltafs_piece *)(uintptr_t)t->column[i].piece);
        free((char *)(uintptr_t)t->column[i].dataset);
        free((void *)(uintptr_t)t->column[i].constant);
    }
    free((struct deltafs_column *)(uintptr_t)t->column);
    free((char *)(uintptr_t)t->name);
}

/* Drop the first `n` tables. */
static void source_drop(struct source_entry *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        table_fini(&s->table[i].table);
        free(s->table[i].schema);
    }
    s->table_count -= n;
    if (s->table_count > 0)
        memmove(s->table, s->table + n, s->table_count * sizeof *s->table);
}

void source_fini(struct source_entry *s)
{
    source_drop(s, s->table_count);
    free(s->table);
    free(s->path);
    *s = (struct source_entry){0};
}

void sources_fini(struct sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        source_fini(&s->source[i]);
    free(s->source);
    free(s->named);
    *s = (struct sources){0};
}

/* ---- Writing ---- */

/* Readers that do not know datasets and constants find no stride there, and refuse the line. */
static void format_column(struct compose *f, const struct deltafs_column *c)
{
    compose(f, "Column name=");
    name_print(f, c->name);
    compose(f, " type=%c%" PRIu32 " order=%s", c->kind, c->size, c->is_big_endian ? "big" : "little");
    if (c->constant) {
        compose(f, " constant=");
        for (uint32_t i = 0; i < c->size; i++)
            compose(f, "%02x", ((const uint8_t *)c->constant)[i]);
    } else if (c->dataset) {
        compose(f, " element=%" PRIu64 " offset=%" PRIu64 " dataset=", c->stride, c->offset);
        name_print(f, c->dataset);
    } else {
        compose(f, " stride=%" PRIu64, c->stride);
        if (c->piece_count == 0)
            compose(f, " offset=%" PRIu64, c->offset);
    }
    compose(f, "\n");
}

static void format_table(struct compose *f, const struct source_table *t)
{
    const struct deltafs_table *d = &t->table;

    compose(f, "Table sequence=%" PRIu64 " label=%" PRIu64 " rows=%" PRIu64 " key=%zu columns=%zu", t->sequence,
            d->label, d->rows, d->key, d->column_count);
    if (t->group > 0)
        compose(f, " group=%" PRIu32, t->group);
    if (t->has_padding)
        compose(f, " padding=%" PRIu64, t->padding);
    compose(f, " name=");
    name_print(f, d->name);
    compose(f, "\n");
    for (size_t i = 0; i < d->column_count; i++) {
        const struct deltafs_column *c = &d->column[i];
        format_column(f, c);
        for (size_t k = 0; k < c->piece_count; k++)
            compose(f, "Piece first=%" PRIu64 " rows=%" PRIu64 " offset=%" PRIu64 "\n", c->piece[k].first,
                    c->piece[k].rows, c->piece[k].offset);
    }
}

static void format_path(struct compose *f, const char *path)
{
    compose(f, " path=");
    name_print(f, path);
    compose(f, "\n");
}

static void format_end(struct compose *f, const struct source_entry *s)
{
    const struct source_identity *id = &s->identity;

    for (size_t i = 0; i < s->table_count; i++) {
        const struct source_table *t = &s->table[i];
        if (!t->has_hash)
            continue;
        compose(f, "keys sequence=%" PRIu64 " hash=%" PRIu64, t->sequence, t->hash);
        if (t->has_padding)
            compose(f, " records=%" PRIu64, t->records);
        compose(f, "\n");
    }
    if (s->table_count == 0)
        compose(f, "Forget");
    else
        compose(f, "Source tables=%zu size=%" PRIu64, s->table_count, id->size);
    if (s->table_count > 0 && id->kind == 'f')
        compose(f, " kind=logical uuid=%s session=%" PRIu64 " order=%" PRIu64, id->uuid_text, id->session, id->order);
    else if (s->table_count > 0)
        compose(f, " kind=plain mtime=%" PRIu64, id->mtime);
    format_path(f, s->path);
}

static void format_source(struct compose *f, const struct source_entry *s, unsigned lines)
{
    if (lines & SOURCE_BEGIN) {
        compose(f, "Begin");
        format_path(f, s->path);
    }
    for (size_t i = 0; i < s->table_count && (lines & SOURCE_TABLES); i++)
        format_table(f, &s->table[i]);
    if (lines & SOURCE_END)
        format_end(f, s);
}

int sources_format(const struct source_entry *s, size_t n, unsigned lines, char **text, struct error *e)
{
    struct compose c = {0};
    size_t size;

    for (size_t i = 0; i < n; i++)
        format_source(&c, &s[i], lines);
    return compose_end(&c, "a file's lines", text, &size, e);
}

int sources_create(struct io *io, const char *path, const char *uuid_text, int sync, struct error *e)
{
    struct io_file file;
    uint64_t size = 0;
    int status = io_file_open(io, path, O_RDWR | O_CREAT | O_EXCL, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = textlog_append(&file, &size, sync, e, "Sources version=%d uuid=%s", SOURCES_VERSION, uuid_text);
    status = io_file_finish(&file, status, e);
    /* Without its first line it is damaged; if it is missing, another attempt makes it. */
    if (status != DELTAFS_OK)
        io_unlink(io, path, error_ignored());
    return status == DELTAFS_OK && sync ? io_sync_parent(io, path, e) : status;
}

static int append_line(struct io_file *file, const struct sources *s, uint64_t *end, uint32_t *chain, const char *line,
                       struct error *e)
{
    return s->version > 2 ? textlog_append_chained(file, end, chain, 0, e, "%s", line)
                          : textlog_append(file, end, 0, e, "%s", line);
}

int sources_append(struct io *io, const char *path, struct sources *s, char *text, int sync, struct error *e)
{
    struct io_file file;
    uint64_t end = s->size, now;
    uint32_t chain = s->chain;
    char *next;
    int status = io_file_open(io, path, O_RDWR, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_size(&file, &now, e);
    /* An incomplete last line, which a crash left. */
    if (status == DELTAFS_OK && now > end)
        status = io_file_truncate(&file, end, e);
    for (; status == DELTAFS_OK && (next = strchr(text, '\n')); text = next + 1) {
        *next = '\0';
        status = append_line(&file, s, &end, &chain, text, e);
    }
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&file, e);
    status = io_file_finish(&file, status, e);
    if (status == DELTAFS_OK) {
        s->size = end;
        s->chain = chain;
    } else if (io_file_open(io, path, O_RDWR, &file, error_ignored()) == DELTAFS_OK) {
        /* What could not be appended as a whole shall not count. */
        io_file_truncate(&file, s->size, error_ignored());
        io_file_close(&file, error_ignored());
    }
    return status;
}

/* ---- Reading ---- */

/* Room for one more element behind `count`. */
static int grow(void *array, size_t *capacity, size_t count, size_t size, struct error *e)
{
    return memory_extend(NULL, array, count, capacity, size, "the sources", e);
}

/* The source whose lines are being read. */
struct parser {
    struct source_entry source;
    size_t capacity;
    uint64_t last;
    int is_done;          /* its last line was read */
    struct sources *all;  /* of a whole file; or NULL */
    struct textlog *text; /* that file */
};

static struct source_table *parser_table(struct parser *p)
{
    return p->source.table_count > 0 ? &p->source.table[p->source.table_count - 1] : NULL;
}

static int is_group(uint64_t group)
{
    return group >= 1 && group <= FILEINDEX_GROUP && (group & (group - 1)) == 0;
}

static int parse_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    struct source_table t = {0};
    uint64_t key, columns, group = 0;

    if (textlog_number(fields, "sequence", &t.sequence) != 0 || textlog_number(fields, "label", &t.table.label) != 0 ||
        textlog_number(fields, "rows", &t.table.rows) != 0 || textlog_number(fields, "key", &key) != 0 ||
        textlog_number(fields, "columns", &columns) != 0 ||
        (p->all && p->all->version > 1 && (textlog_number(fields, "group", &group) != 0 || !is_group(group))))
        return error_damaged(e, path, offset, "a table's line is malformed");
    t.records = t.table.rows;
    t.has_padding = textlog_number(fields, "padding", &t.padding) == 0;
    int status = grow(&p->source.table, &p->capacity, p->source.table_count, sizeof t, e);
    if (status == DELTAFS_OK && p->all)
        status = grow(&p->all->named, &p->all->named_capacity, p->all->named_count, sizeof *p->all->named, e);
    if (status != DELTAFS_OK)
        return status;
    if (p->all)
        p->all->named[p->all->named_count++] = t.sequence;
    t.group = (uint32_t)group;
    t.table.key = (size_t)key;
    t.columns = (size_t)columns;
    status = name_take(fields, "name", "a table", &t.table.name, path, offset, e);
    p->source.table[p->source.table_count++] = t;
    p->last = t.sequence > p->last ? t.sequence : p->last;
    return status;
}

static int parse_type(const char *fields, struct deltafs_column *c)
{
    char type[16], order[16];
    uint64_t size;

    if (textlog_text(fields, "type", type, sizeof type) != 0 || type[0] == '\0' || number_parse(type + 1, &size) != 0 ||
        size > UINT32_MAX || textlog_text(fields, "order", order, sizeof order) != 0)
        return -1;
    c->kind = type[0];
    c->size = (uint32_t)size;
    c->is_big_endian = strcmp(order, "big") == 0;
    return c->is_big_endian || strcmp(order, "little") == 0 ? 0 : -1;
}

static int parse_constant(const char *text, struct deltafs_column *c, struct error *e)
{
    uint8_t *constant = malloc(c->size);

    c->constant = constant;
    if (!constant)
        return error_no_memory(e, c->size, "a constant");
    for (uint32_t i = 0; i < c->size; i++) {
        const char hex[3] = {text[2 * i], text[2 * i + 1], '\0'};
        constant[i] = (uint8_t)strtoul(hex, NULL, 16);
    }
    return DELTAFS_OK;
}

/* Where a column's values are; after an error it owns nothing. */
static int parse_place(const char *fields, struct deltafs_column *c, const char *path, uint64_t offset, struct error *e)
{
    char hex[2 * CONSTANT_MAX + 1];

    if (textlog_number(fields, "stride", &c->stride) == 0)
        return DELTAFS_OK;
    if (textlog_number(fields, "element", &c->stride) == 0)
        return name_take(fields, "dataset", "a dataset", &c->dataset, path, offset, e);
    if (textlog_text(fields, "constant", hex, sizeof hex) != 0 || c->size > CONSTANT_MAX ||
        strspn(hex, "0123456789abcdef") != 2 * c->size || strlen(hex) != 2 * c->size)
        return error_damaged(e, path, offset, "a column's line is malformed");
    return parse_constant(hex, c, e);
}

static int parse_column(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    struct source_table *t = parser_table(p);
    struct deltafs_column c = {0};

    if (!t || parse_type(fields, &c) != 0)
        return error_damaged(e, path, offset, "a column's line is malformed");
    textlog_number(fields, "offset", &c.offset); /* else there are pieces */
    int status = grow(&t->table.column, &t->column_capacity, t->table.column_count, sizeof c, e);
    if (status == DELTAFS_OK)
        status = parse_place(fields, &c, path, offset, e);
    if (status != DELTAFS_OK)
        return status;
    status = name_take(fields, "name", "a column", &c.name, path, offset, e);
    ((struct deltafs_column *)(uintptr_t)t->table.column)[t->table.column_count++] = c;
    t->piece_capacity = 0;
    return status;
}

static int parse_piece(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    struct source_table *t = parser_table(p);
    struct deltafs_piece piece;

    if (!t || t->table.column_count == 0 || textlog_number(fields, "first", &piece.first) != 0 ||
        textlog_number(fields, "rows", &piece.rows) != 0 || textlog_number(fields, "offset", &piece.offset) != 0)
        return error_damaged(e, path, offset, "a piece's line is malformed");
    struct deltafs_column *c = (struct deltafs_column *)(uintptr_t)&t->table.column[t->table.column_count - 1];
    int status = grow(&c->piece, &t->piece_capacity, c->piece_count, sizeof piece, e);
    if (status == DELTAFS_OK)
        ((struct deltafs_piece *)(uintptr_t)c->piece)[c->piece_count++] = piece;
    return status;
}

/* Behind the tables, since it is known when all keys have been read. */
static int parse_keys(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    uint64_t sequence, hash;

    if (textlog_number(fields, "sequence", &sequence) != 0 || textlog_number(fields, "hash", &hash) != 0)
        return error_damaged(e, path, offset, "the line of a table's keys is malformed");
    for (size_t i = 0; i < p->source.table_count; i++) {
        struct source_table *t = &p->source.table[i];
        if (t->sequence != sequence)
            continue;
        t->has_hash = 1;
        t->hash = hash;
        if (t->has_padding && (textlog_number(fields, "records", &t->records) != 0 || t->records > t->table.rows))
            return error_damaged(e, path, offset, "the line of a table's keys is malformed");
    }
    return DELTAFS_OK;
}

/* Whether `rows` rows of a column, one each `stride` bytes from `offset` on, are all within `size` bytes. */
static int is_within(const struct deltafs_column *c, uint64_t rows, uint64_t offset, uint64_t size)
{
    if (rows == 0)
        return 1;
    if (offset > size || c->size > size - offset)
        return 0;
    return c->stride == 0 || (rows - 1) <= (size - offset - c->size) / c->stride;
}

static const char *check_column(const struct deltafs_column *c, uint64_t rows, uint64_t size)
{
    uint64_t next = 0;

    if (c->constant)
        return c->dataset || c->piece_count > 0 ? "has a constant, and also places"
               : c->size > CONSTANT_MAX         ? "has a constant that is too long"
                                                : NULL;
    if (c->dataset && c->stride > ELEMENT_MAX)
        return "has a dataset with elements that are too long";
    if (c->dataset)
        return c->piece_count > 0                                         ? "has a dataset, and also pieces"
               : c->offset > c->stride || c->size > c->stride - c->offset ? "is not within the elements of its dataset"
                                                                          : NULL;
    if (c->stride < c->size)
        return "has values that overlap";
    if (c->piece_count == 0)
        return is_within(c, rows, c->offset, size) ? NULL : "is not all within the file";
    for (size_t i = 0; i < c->piece_count; i++) {
        const struct deltafs_piece *p = &c->piece[i];
        if (p->first != next || p->rows == 0 || p->rows > rows - next)
            return "has pieces that do not follow one another";
        if (!is_within(c, p->rows, p->offset, size))
            return "is not all within the file";
        next += p->rows;
    }
    return next == rows ? NULL : "has pieces that are not all of the table's rows";
}

/* The values' schema, which says whether the columns' names and types make one. */
static int table_make_schema(struct source_table *t, struct error *e)
{
    const struct deltafs_table *d = &t->table;
    deltafs_schema *schema;
    struct compose c = {0};
    size_t n;

    for (size_t i = 0, printed = 0; i < d->column_count; i++)
        if (i != d->key)
            compose(&c, "%s%s:%c%" PRIu32, printed++ ? "," : "", d->column[i].name, d->column[i].kind,
                    d->column[i].size);
    if (compose_end(&c, "a schema", &t->schema, &n, e) != DELTAFS_OK)
        return e->status;
    if (error_of_call(deltafs_schema_parse(t->schema, &schema), e) != DELTAFS_OK)
        return e->status;
    t->size = (uint32_t)deltafs_schema_size(schema);
    size_t fields = deltafs_schema_count(schema);
    deltafs_schema_destroy(schema);
    /* A name may have been taken for more than one. */
    return fields == d->column_count - 1 ? DELTAFS_OK
                                         : error_set(e, DELTAFS_ERR_INVALID,
                                                     "table '%s': a column's name has ',' "
                                                     "or ':' in it",
                                                     d->name);
}

/* At most `most` rows, whose keys span at most `slice` bytes, unless that makes more numbers than a value can tell. */
static uint32_t group_of(const struct deltafs_table *t, uint32_t most, uint64_t slice)
{
    uint64_t stride = t->column[t->key].stride;
    uint32_t group = most;

    while (group > 1 && stride > slice / group && t->rows / (group / 2) < UINT32_MAX)
        group /= 2;
    return group;
}

/* Everything that a reader takes for granted of a table. */
static int table_check(struct source_table *t, uint64_t size, struct error *e)
{
    const struct deltafs_table *d = &t->table;

    if (d->column_count < 2 || d->key >= d->column_count || t->columns != d->column_count)
        return error_set(e, DELTAFS_ERR_INVALID, "table '%s' has no key, or no other column", d->name);
    const struct deltafs_column *key = &d->column[d->key];
    if ((key->kind != 'i' && key->kind != 'u') ||
        (key->size != 1 && key->size != 2 && key->size != 4 && key->size != 8))
        return error_set(e, DELTAFS_ERR_INVALID,
                         "table '%s': the key's column '%s' is of the type %c%" PRIu32 ", which is no integer", d->name,
                         key->name, key->kind, key->size);
    if (key->constant)
        return error_set(e, DELTAFS_ERR_INVALID, "table '%s': the key's column '%s' is a constant", d->name, key->name);
    if (d->rows > FILEINDEX_ROW_MAX - FILEINDEX_GROUP_1 || d->rows > (uint64_t)source_table_group(t) << 32)
        return error_set(e, DELTAFS_ERR_INVALID, "table '%s' has %" PRIu64 " rows; at most 2^38 are possible", d->name,
                         d->rows);
    for (size_t i = 0; i < d->column_count; i++) {
        const char *wrong = check_column(&d->column[i], d->rows, size);
        if (wrong)
            return error_set(e, DELTAFS_ERR_INVALID, "table '%s': the column '%s' %s", d->name, d->column[i].name,
                             wrong);
    }
    /* The keys of a group are read at once. */
    if (t->group > group_of(d, FILEINDEX_GROUP, FILEINDEX_SLICE))
        return error_set(e, DELTAFS_ERR_INVALID, "table '%s' has too many rows in a group, %" PRIu32, d->name,
                         t->group);
    return t->schema ? DELTAFS_OK : table_make_schema(t, e);
}

static int parse_identity(struct source_identity *id, const char *fields)
{
    char kind[16];

    if (textlog_number(fields, "size", &id->size) != 0 || textlog_text(fields, "kind", kind, sizeof kind) != 0)
        return -1;
    if (strcmp(kind, "plain") == 0) {
        id->kind = '-';
        return textlog_number(fields, "mtime", &id->mtime);
    }
    id->kind = 'f';
    return strcmp(kind, "logical") == 0 && textlog_number(fields, "session", &id->session) == 0 &&
                   textlog_number(fields, "order", &id->order) == 0 &&
                   textlog_text(fields, "uuid", id->uuid_text, sizeof id->uuid_text) == 0
               ? 0
               : -1;
}

/* A path in an index leads below the index's folder, or is one from the root. */
static int is_path(const char *path)
{
    if (path[0] == '/' || strcmp(path, ".") == 0)
        return 1;
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return 0;
    }
    return 1;
}

/* The path in a source's last line. */
static int parse_path(struct parser *p, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    const char *name;
    int status = name_take(fields, "path", "a source", &name, path, offset, e);

    p->source.path = (char *)(uintptr_t)name;
    return status == DELTAFS_OK && !is_path(name) ? error_damaged(e, path, offset, "a source's path is malformed")
                                                  : status;
}

/* The lines before it are of a source that was begun, too, but never came to its end. */
static int parse_begin(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;

    source_drop(&p->source, p->source.table_count);
    p->source.is_begun = p->is_done = 1;
    return parse_path(p, fields, path, offset, e);
}

static int parse_forget(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    int status = parse_path(p, fields, path, offset, e);

    source_drop(&p->source, p->source.table_count);
    p->is_done = status == DELTAFS_OK;
    return status;
}

static int parse_source(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    struct source_entry *s = &p->source;
    uint64_t tables;

    if (textlog_number(fields, "tables", &tables) != 0 || tables < 1 || tables > s->table_count ||
        parse_identity(&s->identity, fields) != 0)
        return error_damaged(e, path, offset, "a source's line is malformed");
    int status = parse_path(p, fields, path, offset, e);
    if (status != DELTAFS_OK)
        return status;
    source_drop(s, s->table_count - (size_t)tables); /* the first are of a source whose last line never came */
    for (size_t i = 0; i < s->table_count && status == DELTAFS_OK; i++)
        status = table_check(&s->table[i], s->identity.size, e);
    p->is_done = status == DELTAFS_OK;
    if (status == DELTAFS_OK || status == DELTAFS_ERR_MEMORY)
        return status;
    return p->all ? error_damaged(e, path, offset, "%s", e->text)
                  : error_set(e, DELTAFS_ERR_INVALID, "%s: %s", path, e->text);
}

static int parse_head(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    struct sources *s = p->all;

    if (textlog_number(fields, "version", &s->version) != 0 ||
        textlog_text(fields, "uuid", s->uuid_text, sizeof s->uuid_text) != 0)
        return error_damaged(e, path, offset, "the first line is malformed");
    if (s->version < 1 || s->version > SOURCES_VERSION)
        return error_set(e, DELTAFS_ERR_VERSION, "%s: version %" PRIu64 " is not known to DeltaFS %s; use a newer one",
                         path, s->version, deltafs_version());
    p->text->is_chained = s->version > 2;
    return DELTAFS_OK;
}

static const struct textlog_word words[] = {{"Sources", parse_head},  {"Begin", parse_begin},   {"Table", parse_table},
                                            {"Column", parse_column}, {"Piece", parse_piece},   {"keys", parse_keys},
                                            {"Source", parse_source}, {"Forget", parse_forget}, {NULL, NULL}};

int source_parse(char *text, const char *path, struct source_entry *out, struct error *e)
{
    struct parser p = {0};
    char *next;
    int status = DELTAFS_OK;

    for (; status == DELTAFS_OK && !p.is_done && (next = strchr(text, '\n')); text = next + 1) {
        *next = '\0';
        status = textlog_take(words, &p, text, path, 1, e); /* not the first line */
    }
    if (status == DELTAFS_OK && !p.is_done)
        status = error_set(e, DELTAFS_ERR_INVALID, "%s: no table", path);
    if (status == DELTAFS_OK)
        *out = p.source;
    else
        source_fini(&p.source);
    return status;
}

int sources_check_uuid(const struct sources *s, const char *path, const char *uuid_text, struct error *e)
{
    return strcmp(s->uuid_text, uuid_text) == 0
               ? DELTAFS_OK
               : error_damaged(e, path, 0,
                               "it is another index's, of the UUID %s, or the index was replaced just now: try again",
                               s->uuid_text);
}

/* The highest sequence of its tables, or `last` if that is higher. */
static uint64_t sources_last(const struct source_entry *s, uint64_t last)
{
    for (size_t i = 0; i < s->table_count; i++)
        last = s->table[i].sequence > last ? s->table[i].sequence : last;
    return last;
}

static int sources_parse(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    struct parser *p = arg;
    struct sources *all = p->all;
    int status = textlog_take(words, p, line, path, offset, e);

    if (status != DELTAFS_OK || !p->is_done)
        return status;
    status = grow(&all->source, &all->capacity, all->count, sizeof *all->source, e);
    if (status != DELTAFS_OK)
        return status;
    all->last_whole = sources_last(&p->source, all->last_whole);
    p->source.number = all->count;
    all->source[all->count++] = p->source;
    *p = (struct parser){.last = p->last, .all = all, .text = p->text};
    return DELTAFS_OK;
}

/* By path, the latest of the same path first. */
static int compare_sources(const void *a, const void *b)
{
    const struct source_entry *s = a, *t = b;
    int order = strcmp(s->path, t->path);

    if (order != 0)
        return order;
    return s->number > t->number ? -1 : s->number < t->number;
}

/* Of each path only the latest, and that only if it has tables. One that was only begun replaces none that has. */
static void sources_drop_replaced(struct sources *s)
{
    size_t latest = 0, kept = 0;
    int is_open = 0; /* the latest of this path was only begun */

    if (s->count > 1)
        qsort(s->source, s->count, sizeof *s->source, compare_sources);
    for (size_t i = 0; i < s->count; i++) {
        int is_same = latest > 0 && strcmp(s->source[i].path, s->source[latest - 1].path) == 0,
            is_begun = s->source[i].is_begun, is_taken = !is_same || (is_open && s->source[i].table_count > 0);
        if (is_same)
            source_fini(&s->source[is_taken ? latest - 1 : i]);
        if (is_taken)
            s->source[is_same ? latest - 1 : latest++] = s->source[i];
        is_open = is_begun && (!is_same || is_open);
    }
    for (size_t i = 0; i < latest; i++)
        if (s->source[i].table_count == 0 && !s->source[i].is_begun)
            source_fini(&s->source[i]);
        else
            s->source[kept++] = s->source[i];
    s->count = kept;
}

int sources_read(struct io *io, const char *path, struct sources *out, struct error *e)
{
    struct sources s = {0};
    struct textlog t;
    struct parser p = {.all = &s, .text = &t};
    struct io_file file;
    int status = io_file_open(io, path, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = textlog_begin(&t, &file, SOURCES_ADVICE, e);
    if (status == DELTAFS_OK)
        status = textlog_parse(&t, sources_parse, &p, e);
    if (status == DELTAFS_OK && t.at == 0)
        status = error_damaged(e, path, 0, "it has no complete line; " SOURCES_ADVICE);
    buffer_fini(&t.read);
    io_file_close(&file, error_ignored());
    source_fini(&p.source);
    s.size = t.at;
    s.chain = t.chain;
    s.last = p.last;
    if (status != DELTAFS_OK) {
        sources_fini(&s);
        return status;
    }
    sources_drop_replaced(&s);
    /* A file whose keys had not changed when it was indexed again has kept its epochs. */
    if (s.named_count > 1)
        qsort(s.named, s.named_count, sizeof *s.named, compare_u64);
    *out = s;
    return DELTAFS_OK;
}

const struct source_entry *sources_find(const struct sources *s, const char *path)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->source[i].path, path) == 0)
            return &s->source[i];
    return NULL;
}

int sources_add(struct sources *s, struct source_entry *source, struct error *e)
{
    struct source_entry *old = (struct source_entry *)(uintptr_t)sources_find(s, source->path);
    int is_forgotten = source->table_count == 0,
        status = old || is_forgotten ? DELTAFS_OK : grow(&s->source, &s->capacity, s->count, sizeof *s->source, e);

    if (status != DELTAFS_OK)
        return status;
    s->last = sources_last(source, s->last);
    s->last_whole = sources_last(source, s->last_whole);
    if (old)
        source_fini(old);
    if (is_forgotten) {
        source_fini(source);
        if (old)
            *old = s->source[--s->count];
        return DELTAFS_OK;
    }
    if (!old)
        old = &s->source[s->count++];
    *old = *source;
    *source = (struct source_entry){0};
    return DELTAFS_OK;
}

int sources_name_all(const struct sources *s, const struct manifest *m, uint64_t *lost)
{
    size_t at = 0;

    for (uint64_t i = 0; s->version > 2 && i < m->epoch_count; i++) {
        *lost = m->epoch[i].label;
        while (at < s->named_count && s->named[at] < *lost)
            at++;
        if (at == s->named_count || s->named[at] != *lost)
            return 0;
    }
    return 1;
}

int source_table_is_lost(const struct source_table *t, const struct manifest *m)
{
    uint64_t low = 0, high = m->epoch_count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (m->epoch[middle].label < t->sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low == m->epoch_count || m->epoch[low].label != t->sequence || m->epoch[low].records != t->records;
}

uint32_t source_table_group(const struct source_table *t)
{
    return t->group > 0 ? t->group : group_of(&t->table, FILEINDEX_GROUP_1, FILEINDEX_SLICE_1);
}

void source_table_choose_group(struct source_table *t, uint64_t version)
{
    t->group = version > 1 ? group_of(&t->table, FILEINDEX_GROUP, FILEINDEX_SLICE) : 0;
}

/* The piece that has the row; NULL: the column has none. */
static const struct deltafs_piece *column_piece(const struct deltafs_column *c, uint64_t row)
{
    size_t low = 0, high = c->piece_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->piece[middle].first <= row)
            low = middle;
        else
            high = middle;
    }
    return high == 0 ? NULL : &c->piece[low];
}

uint64_t column_place(const struct deltafs_column *c, uint64_t row)
{
    const struct deltafs_piece *p = column_piece(c, row);

    return p ? p->offset + (row - p->first) * c->stride : c->offset + row * c->stride;
}

uint64_t column_run(const struct deltafs_column *c, uint64_t from, uint64_t end)
{
    const struct deltafs_piece *p = column_piece(c, from);
    uint64_t behind = p ? p->first + p->rows : end;

    return (behind < end ? behind : end) - from;
}
