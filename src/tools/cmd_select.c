/* deltafs select: the records that fulfil a condition, or those with the largest values. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_query.h>
#include "tools/caret.h"
#include "tools/cmd.h"
#include "tools/key_list.h"
#include "tools/number_text.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/select_source.h"
#include "tools/target.h"

enum { KEYS, AND, NOT, SETS };

struct select_format {
    enum print_format format;
    int is_keys;
};

struct select {
    const char *where, *by, *fields;
    struct command_number top;
    struct command_range epochs;
    struct select_format format;
    const char *file[SETS];
    int is_hex, explains;
};

static const char *select_parse_format(const char *text, void *out)
{
    struct select_format *f = out;

    f->is_keys = strcmp(text, "keys") == 0;
    if (!f->is_keys && (print_parse_format(text, &f->format) || f->format == PRINT_RAW))
        return "is no format; give table, csv, json or keys";
    return NULL;
}

/* The message of the library; returns the exit code. */
static int select_fail(const struct select *s, int status, const char *message)
{
    int code = text_fail(text_exit_code(status), "select: %s", message);

    if (text_is_silent)
        return code;
    caret_show("where", s->where, message);
    caret_show("by", s->by, message);
    caret_show("fields", s->fields, message);
    return code;
}

/* ---- Printing keys ---- */

struct found_key {
    uint64_t number;
    char *bytes; /* NULL if keys are numbers */
    size_t size;
    uint64_t row; /* the first that has it */
};

/* Each key once, however many records it has. */
struct found {
    struct found_key *key;
    size_t count, capacity;
    uint64_t rows;
};

static int found_compare(const struct found_key *x, const struct found_key *y)
{
    size_t size = x->size < y->size ? x->size : y->size;
    int order = size > 0 ? memcmp(x->bytes, y->bytes, size) : (x->number > y->number) - (x->number < y->number);

    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static int found_compare_rows(const void *a, const void *b)
{
    const struct found_key *x = a, *y = b;

    return (x->row > y->row) - (x->row < y->row);
}

static int found_compare_keys(const void *a, const void *b)
{
    int order = found_compare(a, b);

    return order != 0 ? order : found_compare_rows(a, b);
}

static void found_sort(struct found *f)
{
    size_t n = 0, sorted = 1;

    while (sorted < f->count && found_compare_keys(&f->key[sorted - 1], &f->key[sorted]) < 0)
        sorted++;
    if (sorted < f->count)
        qsort(f->key, f->count, sizeof *f->key, found_compare_keys);
    for (size_t i = 0; i < f->count; i++) {
        if (n > 0 && found_compare(&f->key[i], &f->key[n - 1]) == 0)
            free(f->key[i].bytes);
        else
            f->key[n++] = f->key[i];
    }
    f->count = n;
}

/* Make room for one more. */
static int found_grow(struct found *f)
{
    found_sort(f);
    if (f->count < f->capacity / 2)
        return EXIT_OK;
    size_t capacity = f->capacity > 0 ? 2 * f->capacity : 4096;
    struct found_key *key = realloc(f->key, capacity * sizeof *key);
    if (!key)
        return text_fail(EXIT_TROUBLE, "select: no memory for %zu keys", capacity);
    f->key = key;
    f->capacity = capacity;
    return EXIT_OK;
}

static int found_add(struct found *f, const struct deltafs_record *record)
{
    struct found_key key = {.number = record->key, .size = record->key_size, .row = f->rows++};
    int code = f->count == f->capacity ? found_grow(f) : EXIT_OK;

    if (code != EXIT_OK)
        return code;
    if (record->key_bytes) {
        key.bytes = malloc(record->key_size);
        if (!key.bytes)
            return text_fail(EXIT_TROUBLE, "select: no memory for a key");
        memcpy(key.bytes, record->key_bytes, record->key_size);
    }
    f->key[f->count++] = key;
    return EXIT_OK;
}

/* In the order of keys, or of rows. */
static int found_print(struct found *f, int is_of_rows, int is_hex)
{
    found_sort(f);
    if (is_of_rows && f->count > 0)
        qsort(f->key, f->count, sizeof *f->key, found_compare_rows);
    for (size_t i = 0; i < f->count; i++) {
        const struct found_key *k = &f->key[i];
        char text[NUMBER_TEXT_ROOM];
        if (!k->bytes)
            fwrite(text, 1, number_text_unsigned(k->number, text), stdout);
        else if (is_hex)
            report_hex(stdout, k->bytes, k->size);
        else if (memchr(k->bytes, '\n', k->size))
            return text_fail(EXIT_TROUBLE, "select: a key has the end of a line in it; add --hex");
        else
            fwrite(k->bytes, 1, k->size, stdout);
        putchar('\n');
    }
    return EXIT_OK;
}

static void found_fini(struct found *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->key[i].bytes);
    free(f->key);
}

/* ---- Rows ---- */

/* What is selected from: one of them. */
struct select_input {
    deltafs_fileindex *index;
    deltafs_dir *dir;
};

struct selecting {
    deltafs_select *rows;
    uint64_t records; /* of the epochs */
};

static uint64_t selecting_done(void *arg)
{
    const struct selecting *w = arg;
    double share = 0;

    deltafs_select_progress(w->rows, &share);
    return (uint64_t)(share * (double)w->records);
}

/* Records of a directory, or rows of files. */
static uint64_t select_count(const struct select *s, const struct select_input *in)
{
    const struct deltafs_range all = {0, UINT64_MAX}, *range = s->epochs.is_given ? &s->epochs.range : &all;
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct deltafs_table_stat table = {.struct_size = sizeof table};
    uint64_t records = 0;

    for (size_t i = 0; in->index && deltafs_fileindex_table(in->index, i, &table) == DELTAFS_OK; i++)
        if (table.label >= range->first && table.label <= range->last)
            records += table.rows;
    for (uint64_t i = 0; in->dir && deltafs_epoch_stat(in->dir, i, &epoch) == DELTAFS_OK; i++)
        if (epoch.label >= range->first && epoch.label <= range->last)
            records += epoch.records;
    return records;
}

struct batch {
    const struct deltafs_record *record;
    size_t n;
    int status;
    const char *message;
};

static void batch_next(struct batch *b, struct select_source *rows)
{
    b->status = select_source_next(rows, &b->record, &b->n, &b->message);
}

/* Print all rows from the batch on, or collect their keys; *count gets their number. */
static int select_rows(const struct select *s, struct select_source *rows, struct batch *b, struct printer *p,
                       struct found *found, uint64_t *count)
{
    int code = EXIT_OK;

    for (; code == EXIT_OK && b->status == DELTAFS_OK && b->n > 0 && !ferror(stdout); batch_next(b, rows)) {
        for (size_t i = 0; s->format.is_keys && i < b->n && code == EXIT_OK; i++)
            code = found_add(found, &b->record[i]);
        if (!s->format.is_keys)
            print_records(p, b->record, b->n);
        *count += b->n;
    }
    return code;
}

/* The bar is not shown beside rows on a terminal. */
static int select_print(const struct select *s, struct select_source *rows, const char *schema, struct progress *bar)
{
    struct printer p;
    struct found found = {0};
    struct batch b;
    uint64_t count = 0;

    batch_next(&b, rows);
    if (!s->format.is_keys && isatty(STDOUT_FILENO))
        progress_end(bar);
    if (!s->format.is_keys && print_begin(&p, s->format.format, schema, NULL) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    int code = select_rows(s, rows, &b, &p, &found, &count);
    progress_end(bar);
    int is_whole = code == EXIT_OK && b.status != DELTAFS_ERR_MEMORY && b.status != DELTAFS_ERR_INVALID;
    if (code == EXIT_OK && b.status != DELTAFS_OK)
        code = select_fail(s, b.status, b.message);
    if (!s->format.is_keys) {
        print_end(&p);
    } else if (is_whole) { /* but for what is damaged */
        int printed = found_print(&found, s->by != NULL, s->is_hex);
        code = code == EXIT_OK ? printed : code;
    }
    found_fini(&found);
    return code == EXIT_OK && count == 0 ? text_fail(EXIT_NOT_FOUND, "select: no records") : code;
}

/* ---- The command ---- */

static int select_check(const struct select *s)
{
    return s->fields && *s->fields == '\0'
               ? text_fail(EXIT_USAGE, "select: --fields names no column; --format keys prints keys alone")
               : EXIT_OK;
}

static int is_stdin(const char *file)
{
    return file && strcmp(file, "-") == 0;
}

/* Standard input in *in, if keys come from there. */
static int select_open_stdin(const struct select *s, FILE **in)
{
    int readers = 0;

    for (int i = 0; i < SETS; i++)
        readers += is_stdin(s->file[i]);
    if (readers > 1)
        return text_fail(EXIT_USAGE, "select: only one of --keys, --and and --not can read standard input");
    return readers > 0 ? select_read_stdin(in) : EXIT_OK;
}

/* Read the files of keys; `given` gets those that there are. */
static int select_read_keys(const struct select *s, FILE *in, int is_bytes, struct key_list *list,
                            struct deltafs_key_list *given)
{
    int code = EXIT_OK;

    for (int i = 0; i < SETS && code == EXIT_OK; i++) {
        list[i] = (struct key_list){.command = "select", .is_bytes = is_bytes, .is_hex = s->is_hex};
        code = key_list_check_hex(&list[i]);
        if (code == EXIT_OK && is_stdin(s->file[i]))
            code = key_list_read_stream(&list[i], in, "standard input");
        else if (code == EXIT_OK && s->file[i])
            code = key_list_read(&list[i], s->file[i]);
        given[i] = (struct deltafs_key_list){.count = list[i].count,
                                             .number = list[i].number,
                                             .bytes = (const void *const *)list[i].bytes,
                                             .size = list[i].size};
    }
    return code;
}

/* Give all rows to the rank that prints, or print those of all ranks. */
static int select_merge(const struct select *s, const struct select_input *in, const struct deltafs_select_options *o,
                        deltafs_select *rows)
{
    struct selecting selecting = {.rows = rows};
    struct progress bar;

    if (!select_prints(rows))
        return EXIT_OK;
    selecting.records = select_count(s, in);
    progress_begin(&bar, selecting.records, 1);
    progress_watch(&bar, selecting_done, &selecting);
    struct select_source *source = select_source_open(o, rows);
    int code = select_print(s, source, deltafs_select_schema(rows), &bar);
    progress_end(&bar);
    select_source_close(source);
    return code;
}

static int select_from(const struct select *s, FILE *keys, const struct select_input *in)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_select_options o = {
        .struct_size = sizeof o, .where = s->where, .by = s->by, .top = s->top.value, .fields = s->fields};
    struct key_list list[SETS] = {{0}};
    struct deltafs_key_list given[SETS];
    deltafs_select *rows = NULL;
    int code = EXIT_OK;

    if (in->dir && deltafs_stat(in->dir, &stat) != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(in->dir));
    if (code == EXIT_OK)
        code = select_read_keys(s, keys, in->dir && strcmp(stat.keys, "bytes") == 0, list, given);
    if (code == EXIT_OK) {
        if (s->format.is_keys && !s->fields)
            o.fields = "";
        o.range = s->epochs.is_given ? &s->epochs.range : NULL;
        o.keys = s->file[KEYS] ? &given[KEYS] : NULL;
        o.and_keys = s->file[AND] ? &given[AND] : NULL;
        o.not_keys = s->file[NOT] ? &given[NOT] : NULL;
        select_divide(&o);
        int status =
            in->dir ? deltafs_select_open(in->dir, &o, &rows) : deltafs_select_open_fileindex(in->index, &o, &rows);
        code = status == DELTAFS_OK ? EXIT_OK : select_fail(s, status, deltafs_errmsg(NULL));
        if (code == EXIT_OK && s->explains && o.part == 0)
            fprintf(stderr, "index: %s\n", deltafs_select_index(rows) ? deltafs_select_index(rows) : "none");
    }
    code = select_agree(code);
    if (code == EXIT_OK)
        code = select_merge(s, in, &o, rows);
    deltafs_select_close(rows);
    for (int i = 0; i < SETS; i++)
        key_list_fini(&list[i]);
    return code;
}

static int select_run(const struct command_call *c)
{
    struct select_input in = {NULL, NULL};
    FILE *keys = NULL;
    int code = select_check(c->values);

    if (code != EXIT_OK)
        return code;
    code = select_agree(target_open_rows(text_path(c->operand[0]), &in.index, &in.dir));
    if (code == EXIT_OK)
        code = select_open_stdin(c->values, &keys);
    if (code == EXIT_OK)
        code = select_from(c->values, keys, &in);
    if (keys)
        fclose(keys);
    deltafs_fileindex_close(in.index);
    deltafs_close(in.dir);
    return code;
}

static const struct command_option options[] = {
    {"where", 0, "EXPR", "only records that fulfil a condition, such as 'ux**2 + uy**2 > 1'", cmd_parse_text,
     offsetof(struct select, where)},
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct select, epochs)},
    {"top", 0, "N", "with --by: only N records, those with the largest values", cmd_parse_number,
     offsetof(struct select, top)},
    {"by", 0, "EXPR", "the value that --top compares", cmd_parse_text, offsetof(struct select, by)},
    {"fields", 0, "F,...", "only these columns, also computed ones, and attributes that are one number", cmd_parse_text,
     offsetof(struct select, fields)},
    {"format", 0, "F", "a table for people (default), csv, json, or the keys alone, each once", select_parse_format,
     offsetof(struct select, format)},
    {"keys", 0, "FILE",
     "only records of the keys in a file (- is standard input): separated by blanks, or\n"
     "                         one key of bytes on each line",
     cmd_parse_text, offsetof(struct select, file[KEYS])},
    {"and", 0, "FILE", "only keys that are in this file, too", cmd_parse_text, offsetof(struct select, file[AND])},
    {"not", 0, "FILE", "only keys that are not in this file", cmd_parse_text, offsetof(struct select, file[NOT])},
    {"explain", 0, NULL, "say on stderr which index by value is used: 'index: NAME', or 'index: none'", NULL,
     offsetof(struct select, explains)},
    {"hex", 0, NULL, "keys of bytes are in hexadecimal, in these files and with --format keys", NULL,
     offsetof(struct select, is_hex)},
    {0}};

const struct command cmd_select = {.name = "select",
                                   .usage = "DIR [OPTION...]",
                                   .text =
                                       "Print the records that fulfil a condition, by epoch and key, or those with\n"
                                       "    the largest values. DIR may be an index, or a file that is indexed, too.",
                                   .missing = "one DIR must be given",
                                   .least = 1,
                                   .most = 1,
                                   .size = sizeof(struct select),
                                   .option = options,
                                   .run = select_run};
