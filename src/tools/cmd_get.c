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

struct get {
    enum print_format format;
    struct deltafs_range range;
    int has_range, stats;
    const char *keys_file;
    uint64_t *keys;
    size_t count, capacity;
};

static int get_add_key(struct get *g, const char *text)
{
    uint64_t key;

    if (text_number(text, &key) != 0)
        return text_fail(EXIT_USAGE, "get: key '%s' is no number (decimal, or hexadecimal after 0x, below 2^64)", text);
    if (g->count == g->capacity) {
        size_t capacity = g->capacity ? 2 * g->capacity : 64;
        uint64_t *grown = realloc(g->keys, capacity * sizeof *grown);
        if (!grown)
            return text_fail(EXIT_TROUBLE, "get: no memory for %zu keys", capacity);
        g->keys = grown;
        g->capacity = capacity;
    }
    g->keys[g->count++] = key;
    return EXIT_OK;
}

/* The next word of a file, cut to `size` - 1 characters; one that is longer, or has a NUL in it, comes out as no
 * number. Returns 0, or -1 at the end. */
static int get_next_word(FILE *f, char *word, size_t size)
{
    size_t n = 0;
    int c;

    while ((c = fgetc(f)) != EOF && isspace(c))
        ;
    for (; c != EOF && !isspace(c); c = fgetc(f)) {
        if (n + 1 == size)
            word[0] = '+';
        else
            word[n++] = (char)(c == '\0' ? '?' : c);
    }
    word[n] = '\0';
    return n > 0 ? 0 : -1;
}

/* Keys from a file, or standard input, separated by blanks. */
static int get_read_keys(struct get *g)
{
    int is_stdin = strcmp(g->keys_file, "-") == 0, code = EXIT_OK;
    FILE *f = is_stdin ? stdin : fopen(g->keys_file, "r");
    char word[64];

    if (!f)
        return text_fail(EXIT_TROUBLE, "get: cannot open %s: %s", g->keys_file, strerror(errno));
    while (code == EXIT_OK && get_next_word(f, word, sizeof word) == 0)
        code = get_add_key(g, word);
    if (code == EXIT_OK && ferror(f))
        code = text_fail(EXIT_TROUBLE, "get: cannot read %s", g->keys_file);
    if (!is_stdin)
        fclose(f);
    return code;
}

/* Options and arguments; returns -1 to go on, or the exit code. argv[optind] is the directory then. */
static int get_parse(struct get *g, int argc, char **argv)
{
    static const struct option options[] = {{"epochs", required_argument, NULL, 'e'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"keys", required_argument, NULL, 'k'},
                                            {"stats", no_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
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
    for (int i = optind + 1; i < argc && code == EXIT_OK; i++)
        code = get_add_key(g, argv[i]);
    if (code == EXIT_OK && g->keys_file)
        code = get_read_keys(g);
    return code == EXIT_OK ? -1 : code;
}

static void get_print_stats(deltafs_dir *d, const struct timespec *start)
{
    struct deltafs_io_stat io;
    struct timespec end;

    deltafs_io_stat(d, &io);
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "stats: reads=%" PRIu64 " bytes_read=%" PRIu64 " seconds=%.6f\n", io.reads, io.bytes_read,
            (double)(end.tv_sec - start->tv_sec) + 1e-9 * (double)(end.tv_nsec - start->tv_nsec));
}

static int get_print(const struct get *g, deltafs_dir *d, deltafs_records **found, int status)
{
    struct deltafs_stat stat;
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
            text_fail(code, "get: key %" PRIu64 " not found%s", g->keys[i], g->has_range ? " in these epochs" : "");
    return code;
}

static int get_run(const struct get *g, const char *path)
{
    struct timespec start;
    deltafs_dir *d;
    deltafs_records **found = calloc(g->count + 1, sizeof *found);

    clock_gettime(CLOCK_MONOTONIC, &start);
    if (!found)
        return text_fail(EXIT_TROUBLE, "get: no memory for %zu keys", g->count);
    int code = cmd_open(path, &d);
    if (code == EXIT_OK) {
        int status = deltafs_get_many(d, g->count, g->keys, g->has_range ? &g->range : NULL, found);
        if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
            text_fail(0, "%s", deltafs_errmsg(d));
        if (g->stats)
            get_print_stats(d, &start);
        code = get_print(g, d, found, status);
        deltafs_close(d);
    }
    for (size_t i = 0; i < g->count; i++)
        deltafs_records_destroy(found[i]);
    free(found);
    return cmd_finish(code);
}

int cmd_get(int argc, char **argv)
{
    struct get g = {.format = PRINT_TABLE};
    int code = get_parse(&g, argc, argv);

    if (code < 0)
        code = get_run(&g, argv[optind]);
    free(g.keys);
    return code;
}
