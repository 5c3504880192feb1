/* deltafs get: the records of some keys. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tools/cmd.h"
#include "tools/print.h"
#include "tools/rows.h"

#define KEY_MAX 255 /* bytes of a key */

struct get {
    enum print_format format;
    struct deltafs_range range;
    int has_range, stats, is_hex;
    const char *keys_file;
    char **arguments; /* keys among them */
    int argument_count;
    int is_bytes; /* what the directory's keys are */
    /* The keys; of bytes, `bytes` and `sizes` say what they are. */
    uint64_t *numbers;
    char **bytes;
    size_t *sizes;
    size_t count, capacity;
};

static int get_grow(struct get *g)
{
    size_t capacity = g->capacity ? 2 * g->capacity : 64;
    uint64_t *numbers = realloc(g->numbers, capacity * sizeof *numbers);
    g->numbers = numbers ? numbers : g->numbers;
    char **bytes = realloc(g->bytes, capacity * sizeof *bytes);
    g->bytes = bytes ? bytes : g->bytes;
    size_t *sizes = realloc(g->sizes, capacity * sizeof *sizes);
    g->sizes = sizes ? sizes : g->sizes;

    if (!numbers || !bytes || !sizes)
        return text_fail(EXIT_TROUBLE, "get: no memory for %zu keys", capacity);
    g->capacity = capacity;
    return EXIT_OK;
}

static void get_fini(struct get *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->bytes[i]);
    free(g->numbers);
    free(g->bytes);
    free(g->sizes);
}

/* Two digits a byte, into `out`. Returns the bytes, or -1. */
static int get_decode_hex(const char *text, size_t size, char out[KEY_MAX])
{
    if (size % 2 != 0 || size / 2 > KEY_MAX)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (!isxdigit((unsigned char)text[i]))
            return -1;
        unsigned digit = (unsigned)(isdigit((unsigned char)text[i]) ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10);
        out[i / 2] = (char)(i % 2 == 0 ? digit << 4 : (unsigned char)out[i / 2] | digit);
    }
    return (int)(size / 2);
}

static int get_add_key(struct get *g, const char *text, size_t size)
{
    uint64_t number = 0;
    char bytes[KEY_MAX];

    if (g->is_hex) {
        int n = get_decode_hex(text, size, bytes);
        if (n < 0)
            return text_fail(EXIT_USAGE, "get: key '%s' is not hexadecimal: two digits for each byte, at most %d bytes",
                             text, KEY_MAX);
        text = bytes;
        size = (size_t)n;
    }
    if (g->is_bytes && (size < 1 || size > KEY_MAX))
        return text_fail(EXIT_USAGE, "get: a key of %zu bytes; it must have 1 to %d", size, KEY_MAX);
    if (!g->is_bytes && (strlen(text) != size || text_number(text, &number) != 0))
        return text_fail(EXIT_USAGE, "get: key '%s' is no number (decimal, or hexadecimal after 0x, below 2^64)", text);
    int code = g->count == g->capacity ? get_grow(g) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    char *copy = malloc(size + 1);
    if (!copy)
        return text_fail(EXIT_TROUBLE, "get: no memory for a key");
    memcpy(copy, text, size);
    copy[size] = '\0';
    g->numbers[g->count] = number;
    g->bytes[g->count] = copy;
    g->sizes[g->count++] = size;
    return EXIT_OK;
}

/* The keys of one line of text: numbers are separated by blanks; a key of bytes is the whole line. */
static int get_add_line(struct get *g, char *line, size_t size)
{
    int code = EXIT_OK;

    if (g->is_bytes && !g->is_hex)
        return size > 0 ? get_add_key(g, line, size) : EXIT_OK;
    for (size_t at = 0, end; at < size && code == EXIT_OK; at = end + 1) {
        for (end = at; end < size && !isspace((unsigned char)line[end]);)
            end++;
        line[end] = '\0';
        if (end > at)
            code = get_add_key(g, line + at, end - at);
    }
    return code;
}

/* Keys from a file, or standard input. */
static int get_read_keys(struct get *g)
{
    int is_stdin = strcmp(g->keys_file, "-") == 0, code = EXIT_OK;
    FILE *f = is_stdin ? stdin : fopen(g->keys_file, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    if (!f)
        return text_fail(EXIT_TROUBLE, "get: cannot open %s: %s", g->keys_file, strerror(errno));
    while (code == EXIT_OK && (n = getline(&line, &room, f)) != -1) {
        n -= n > 0 && line[n - 1] == '\n';
        line[n] = '\0';
        code = get_add_line(g, line, (size_t)n);
    }
    if (code == EXIT_OK && ferror(f))
        code = text_fail(EXIT_TROUBLE, "get: cannot read %s", g->keys_file);
    free(line);
    if (!is_stdin)
        fclose(f);
    return code;
}

/* The keys that are asked for, once it is known what the directory's are. */
static int get_collect_keys(struct get *g)
{
    int code = EXIT_OK;

    if (g->is_hex && !g->is_bytes)
        return text_fail(EXIT_USAGE,
                         "get: --hex is for keys of bytes; keys of this directory are numbers: put 0x before "
                         "each");
    for (int i = 0; i < g->argument_count && code == EXIT_OK; i++)
        code = get_add_key(g, g->arguments[i], strlen(g->arguments[i]));
    return code == EXIT_OK && g->keys_file ? get_read_keys(g) : code;
}

/* Options and arguments; returns -1 to go on, or the exit code. argv[optind] is the directory then. */
static int get_parse(struct get *g, int argc, char **argv)
{
    static const struct option options[] = {
        {"epochs", required_argument, NULL, 'e'}, {"format", required_argument, NULL, 'f'},
        {"hex", no_argument, NULL, 'x'},          {"keys", required_argument, NULL, 'k'},
        {"stats", no_argument, NULL, 's'},        {NULL, 0, NULL, 0}};
    int c, code = EXIT_OK;

    while (code == EXIT_OK && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'e') {
            g->has_range = 1;
            code = cmd_range(optarg, &g->range);
        } else if (c == 'f') {
            if (print_format_parse(optarg, &g->format) != 0)
                code = text_fail(EXIT_USAGE, "get: no format '%s'; there are table, csv, json, raw", optarg);
        } else if (c == 'k') {
            g->keys_file = optarg;
        } else if (c == 's') {
            g->stats = 1;
        } else if (c == 'x') {
            g->is_hex = 1;
        } else {
            return cmd_usage("get");
        }
    }
    if (code != EXIT_OK)
        return code;
    if (optind == argc || (optind + 1 == argc && !g->keys_file)) {
        text_fail(EXIT_USAGE, "get: %s missing", optind == argc ? "DIR and KEY are" : "KEY is");
        return cmd_usage("get");
    }
    g->arguments = argv + optind + 1;
    g->argument_count = argc - optind - 1;
    return -1;
}

static void get_print_stats(deltafs_dir *d, const struct timespec *start)
{
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    struct timespec end;

    deltafs_io_stat(d, &io);
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "stats: reads=%" PRIu64 " bytes_read=%" PRIu64 " seconds=%.6f\n", io.reads, io.bytes_read,
            (double)(end.tv_sec - start->tv_sec) + 1e-9 * (double)(end.tv_nsec - start->tv_nsec));
}

static void get_not_found(const struct get *g, size_t i, int code)
{
    const char *where = g->has_range ? " in these epochs" : "";
    char key[4 * KEY_MAX + 1];

    if (g->is_bytes) {
        text_show(g->bytes[i], g->sizes[i], key, sizeof key);
        text_fail(code, "get: key '%s' not found%s", key, where);
    } else {
        text_fail(code, "get: key %" PRIu64 " not found%s", g->numbers[i], where);
    }
}

static int label_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Say which epochs are missing from the answer for at least one key. */
static void get_print_missing(const struct get *g, deltafs_records **found)
{
    size_t all = 0, n = 0;

    for (size_t i = 0; i < g->count; i++)
        all += found[i] ? found[i]->missing_count : 0;
    uint64_t *label = malloc((all + 1) * sizeof *label);
    if (!label)
        return; /* the damage itself has been reported */
    for (size_t i = 0, at = 0; i < g->count; i++)
        for (size_t k = 0; found[i] && k < found[i]->missing_count; k++)
            label[at++] = found[i]->missing[k];
    qsort(label, all, sizeof *label, label_compare);
    for (size_t i = 0; i < all; i++)
        if (n == 0 || label[i] != label[n - 1])
            label[n++] = label[i];
    print_missing(label, n);
    free(label);
}

static int get_print(const struct get *g, deltafs_dir *d, deltafs_records **found, int status)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct printer p;
    int code = text_exit_code(status);

    if (deltafs_stat(d, &stat) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    if (print_begin(&p, g->format, stat.schema) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; found[i] && k < found[i]->count; k++)
            print_record(&p, &found[i]->record[k]);
    print_end(&p);
    for (size_t i = 0; i < g->count && code <= EXIT_NOT_FOUND; i++)
        if (!found[i])
            get_not_found(g, i, code);
    return code;
}

static int get_ask(const struct get *g, deltafs_dir *d, deltafs_records **found)
{
    const struct deltafs_range *range = g->has_range ? &g->range : NULL;

    if (g->is_bytes)
        return deltafs_get_many_bytes(d, g->count, (const void *const *)g->bytes, g->sizes, range, found);
    return deltafs_get_many(d, g->count, g->numbers, range, found);
}

/* Rows of files whose keys are indexed. */
static int get_rows(struct get *g, deltafs_fileindex *k, const struct timespec *start)
{
    int code = get_collect_keys(g);

    if (code == EXIT_OK)
        code = rows_get(k, g->format, g->numbers, g->count, g->has_range ? &g->range : NULL);
    if (g->stats && code <= EXIT_NOT_FOUND)
        rows_print_stats(k, start);
    deltafs_fileindex_close(k);
    return cmd_finish(code);
}

static int get_records(struct get *g, const char *path, const struct timespec *start)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d;
    deltafs_records **found = NULL;

    int code = cmd_open(path, &d);
    if (code != EXIT_OK)
        return code;
    if (deltafs_stat(d, &stat) != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    else
        g->is_bytes = strcmp(stat.keys, "bytes") == 0;
    if (code == EXIT_OK)
        code = get_collect_keys(g);
    if (code == EXIT_OK && !(found = calloc(g->count + 1, sizeof *found)))
        code = text_fail(EXIT_TROUBLE, "get: no memory for %zu keys", g->count);
    if (code == EXIT_OK) {
        int status = g->count > 0 ? get_ask(g, d, found) : DELTAFS_OK;
        if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
            text_fail(0, "%s", deltafs_errmsg(d));
        get_print_missing(g, found);
        if (g->stats)
            get_print_stats(d, start);
        code = get_print(g, d, found, status);
    }
    for (size_t i = 0; found && i < g->count; i++)
        deltafs_records_destroy(found[i]);
    free(found);
    deltafs_close(d);
    return cmd_finish(code);
}

static int get_run(struct get *g, const char *path)
{
    struct timespec start;
    deltafs_fileindex *k;

    clock_gettime(CLOCK_MONOTONIC, &start);
    int code = rows_open(text_path(path), &k);
    if (code != EXIT_OK)
        return code;
    return k ? get_rows(g, k, &start) : get_records(g, path, &start);
}

int cmd_get(int argc, char **argv)
{
    struct get g = {.format = PRINT_TABLE};
    int code = get_parse(&g, argc, argv);

    if (code < 0)
        code = get_run(&g, argv[optind]);
    get_fini(&g);
    return code;
}
