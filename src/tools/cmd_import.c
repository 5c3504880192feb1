/* deltafs-mpi import: dumps that exist already become a directory.
 *
 * All files are inspected first (each by one rank), so that an incomplete file is found before anything is written.
 * Then their epochs are written in the order of their labels; the ranks share each epoch's records evenly. A file that
 * fails to be read on one rank cancels the epoch on all.
 *
 * Into a directory that is there, which --append allows, go the epochs behind its last one. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd_mpi.h"
#include "tools/import.h"
#include "tools/progress.h"
#include "tools/text.h"

/* Long options of the library's table come behind our own, numbered from here. */
#define OPTION_TABLE 1000

struct import {
    int rank, ranks;
    const struct import_format *format;
    void *state;
    struct import_options options;
    const char *output;
    int is_quiet, is_appending;
    deltafs_options *table;
    char **files;
    int file_count;
    struct import_file *file; /* of each */
    int *order;               /* sorted by label, then part */
};

/* The first rank that has a message prints it; all return its code. `code` 0: none here. Collective. */
static int import_agree(const struct import *im, int code, const char *message)
{
    int v[2] = {code != 0 ? im->rank : im->ranks, 0}, first;

    MPI_Allreduce(&v[0], &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == im->ranks)
        return 0;
    if (first == im->rank)
        text_fail(code, "import: %s", message);
    MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
    return code;
}

/* Print on rank 0 what every rank knows; returns `code`. */
static int import_fail(const struct import *im, int code, const char *message)
{
    return im->rank == 0 ? text_fail(code, "import: %s", message) : code;
}

/* ---- Arguments ---- */

static int import_number(const struct import *im, const char *name, const char *text, uint64_t *out)
{
    char message[INPUT_MESSAGE_MAX];

    if (text_number(text, out) == 0)
        return 0;
    snprintf(message, sizeof message, "--%s: '%s' is no number", name, text);
    return import_fail(im, EXIT_USAGE, message);
}

static int import_format_of(struct import *im, const char *name)
{
    static const struct import_format *const formats[] = {&import_vpic, &import_raw};
    char message[INPUT_MESSAGE_MAX];

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i]->name, name) == 0) {
            im->format = formats[i];
            return 0;
        }
    snprintf(message, sizeof message, "no format '%s'; there are vpic and raw", name);
    return import_fail(im, EXIT_USAGE, message);
}

/* Options of the table that the files' format decides on, or that mean something else here. */
static int is_import_own(const char *name)
{
    static const char *const own[] = {"epoch", "index", "key", "schema", "skip", "value_size"};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i], name) == 0)
            return 1;
    return 0;
}

/* Our options, then those of the library's table, '-' standing for '_'. Returns a new array, or NULL. */
static struct option *import_long_options(void)
{
    static const struct option own[] = {
        {"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},
        {"schema", required_argument, NULL, 's'}, {"key", required_argument, NULL, 'k'},
        {"skip", required_argument, NULL, 'b'},   {"epoch", required_argument, NULL, 'e'},
        {"quiet", no_argument, NULL, 'q'},        {"append", no_argument, NULL, 'a'}};
    size_t n = sizeof own / sizeof own[0], count = 0;
    const struct deltafs_option_info *info;

    while (deltafs_option_at(count))
        count++;
    struct option *all = calloc(n + count + 1, sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, own, sizeof own);
    for (size_t i = 0; (info = deltafs_option_at(i)); i++)
        if (!is_import_own(info->name))
            all[n++] = (struct option){info->name, required_argument, NULL, OPTION_TABLE + (int)i};
    return all;
}

static int import_option(struct import *im, int c)
{
    switch (c) {
    case 'f':
        return import_format_of(im, optarg);
    case 'o':
        im->output = text_path(optarg);
        return 0;
    case 's':
        im->options.schema = optarg;
        return 0;
    case 'k':
        im->options.key = optarg;
        return 0;
    case 'b':
        return import_number(im, "skip", optarg, &im->options.skip);
    case 'e':
        im->options.has_epoch = 1;
        return import_number(im, "epoch", optarg, &im->options.epoch);
    case 'q':
        im->is_quiet = 1;
        return 0;
    case 'a':
        im->is_appending = 1;
        return 0;
    default:
        if (c < OPTION_TABLE)
            return EXIT_USAGE;
        if (deltafs_options_set(im->table, deltafs_option_at((size_t)(c - OPTION_TABLE))->name, optarg) != DELTAFS_OK)
            return import_fail(im, EXIT_USAGE, deltafs_errmsg(NULL));
        return 0;
    }
}

static int import_parse(struct import *im, int argc, char **argv)
{
    char message[INPUT_MESSAGE_MAX];
    struct option *options = import_long_options();
    int c, code = 0;

    if (!options)
        return import_fail(im, EXIT_TROUBLE, "no memory");
    opterr = im->rank == 0;
    while (code == 0 && (c = getopt_long(argc, argv, "o:qa", options, NULL)) != -1)
        code = import_option(im, c);
    free(options);
    im->files = argv + optind;
    im->file_count = argc - optind;
    if (code == 0 && !im->format)
        code = import_fail(im, EXIT_USAGE, "--format is missing; give vpic or raw");
    if (code == 0 && !im->output)
        code = import_fail(im, EXIT_USAGE, "-o DIR is missing");
    if (code == 0 && im->file_count == 0)
        code = import_fail(im, EXIT_USAGE, "no input files given");
    if (code == 0 && im->format->begin(&im->options, &im->state, message) != 0)
        code = import_fail(im, EXIT_USAGE, message);
    if (code == EXIT_USAGE && im->rank == 0)
        fputs("Try 'deltafs-mpi help'.\n", stderr);
    return code;
}

/* ---- Inspecting ---- */

static int import_inspect_one(struct import *im, int i, char message[INPUT_MESSAGE_MAX])
{
    struct input in;

    if (input_open(&in, im->files[i], message) != 0)
        return -1;
    int failed = im->format->inspect(im->state, &in, &im->file[i], message);
    input_close(&in);
    return failed;
}

static const struct import_file *order_file; /* qsort has no argument to pass on */

static int order_compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    const struct import_file *f = &order_file[x], *g = &order_file[y];

    if (f->label != g->label)
        return f->label < g->label ? -1 : 1;
    if (f->part != g->part)
        return f->part < g->part ? -1 : 1;
    return (x > y) - (x < y);
}

/* What is wrong with file `g` beside the one before it in the order, and the first of all; or NULL. */
static const char *import_check_pair(const struct import_file *first, const struct import_file *before,
                                     const struct import_file *g)
{
    if (g->kind != first->kind)
        return "is of another species than the first file; import each species into a directory of its own";
    if (before && g->parts > 0 && g->label == before->label && g->part == before->part)
        return "is of the same step and rank as another file; give each once";
    return NULL;
}

/* Whether the files make a whole: an error if two are the same part or of different kinds, and a warning if parts are
 * missing. */
static int import_check_set(const struct import *im)
{
    char message[INPUT_MESSAGE_MAX];
    const struct import_file *first = &im->file[im->order[0]], *before = NULL;
    uint64_t parts = 0;

    for (int i = 0; i < im->file_count; i++) {
        const struct import_file *g = &im->file[im->order[i]];
        const char *wrong = import_check_pair(first, before, g);
        if (wrong) {
            snprintf(message, sizeof message, "%s: %s", im->files[im->order[i]], wrong);
            return import_fail(im, EXIT_TROUBLE, message);
        }
        before = g;
        parts++;
        if (i + 1 < im->file_count && im->file[im->order[i + 1]].label == g->label)
            continue;
        if (parts < g->parts && im->rank == 0)
            text_fail(0,
                      "import: warning: of step %" PRIu64 " there are files of %" PRIu64 " ranks, not of all %" PRIu64
                      "; the particles of the others will be missing",
                      g->label, parts, g->parts);
        parts = 0;
    }
    return 0;
}

/* Collective. */
static int import_inspect(struct import *im)
{
    char message[INPUT_MESSAGE_MAX] = "no memory for the list of files";
    size_t n = (size_t)im->file_count;
    int failed = 0;

    im->file = calloc(n, sizeof *im->file);
    im->order = malloc(n * sizeof *im->order);
    if (!im->file || !im->order)
        failed = 1;
    for (int i = im->rank; i < im->file_count && !failed; i += im->ranks)
        failed = import_inspect_one(im, i, message) != 0;
    int code = import_agree(im, failed ? EXIT_TROUBLE : 0, message);
    if (code != 0)
        return code;
    /* Each file was inspected by one rank, and is all zero on the others. */
    MPI_Allreduce(MPI_IN_PLACE, im->file, (int)(n * (sizeof *im->file / sizeof(uint64_t))), MPI_UINT64_T, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int i = 0; i < im->file_count; i++)
        im->order[i] = i;
    order_file = im->file;
    qsort(im->order, n, sizeof *im->order, order_compare);
    return import_check_set(im);
}

/* ---- Importing ---- */

/* Append records `from` to `to` of the file. */
static int import_file(struct import *im, int file, uint64_t from, uint64_t to, deltafs_dir *d, struct progress *bar,
                       char message[INPUT_MESSAGE_MAX])
{
    struct input in;
    size_t chunk = import_chunk(im->format->record(im->state));
    int failed = 0;

    if (input_open(&in, im->files[file], message) != 0)
        return -1;
    while (from < to && !failed) {
        size_t n = to - from < chunk ? (size_t)(to - from) : chunk;
        failed = im->format->append(im->state, &in, from, n, d, message);
        from += n;
        progress_add(bar, n);
    }
    input_close(&in);
    return failed;
}

/* This rank's share of the files order[first .. end), which are of one epoch. */
static void import_share(struct import *im, int first, int end, deltafs_dir *d, struct progress *bar)
{
    char message[INPUT_MESSAGE_MAX];
    uint64_t total = 0, at = 0, rank = (uint64_t)im->rank, ranks = (uint64_t)im->ranks;

    for (int k = first; k < end; k++)
        total += im->file[im->order[k]].records;
    uint64_t share = total / ranks, rest = total % ranks;
    uint64_t from = rank * share + (rank < rest ? rank : rest), to = from + share + (rank < rest);
    for (int k = first; k < end; k++) {
        uint64_t n = im->file[im->order[k]].records, a = from > at ? from - at : 0, b = to > at ? to - at : 0;
        if (b > n)
            b = n;
        if (a < b && import_file(im, im->order[k], a, b, d, bar, message) != 0) {
            deltafs_epoch_cancel(d, message);
            return;
        }
        at += n;
    }
}

/* The first of the files, in order, that is of an epoch behind those that the directory has. */
static int import_first(const struct import *im, deltafs_dir *d)
{
    uint64_t last;
    int first = 0;

    if (deltafs_last_label(d, &last) != DELTAFS_OK)
        return 0;
    while (first < im->file_count && im->file[im->order[first]].label <= last)
        first++;
    if (first > 0 && im->rank == 0 && !im->is_quiet)
        text_fail(0, "import: %s already has epochs up to label %" PRIu64 ": %d of %d file%s skipped", im->output, last,
                  first, im->file_count, im->file_count == 1 ? " is" : "s are");
    return first;
}

/* Collective: the epochs of the files from order[first] on. */
static int import_epochs(struct import *im, deltafs_dir *d, int first, int *epochs)
{
    struct progress bar;
    uint64_t total = 0;
    int end, code = 0;

    for (int i = first; i < im->file_count; i++)
        total += im->file[im->order[i]].records;
    progress_begin(&bar, total / (uint64_t)im->ranks, im->rank == 0 && !im->is_quiet);
    *epochs = 0;
    for (; first < im->file_count && code == 0; first = end) {
        uint64_t label = im->file[im->order[first]].label;
        for (end = first + 1; end < im->file_count && im->file[im->order[end]].label == label;)
            end++;
        import_share(im, first, end, d, &bar);
        if (deltafs_epoch_end(d, label) != DELTAFS_OK) {
            progress_end(&bar);
            code = import_fail(im, EXIT_TROUBLE, deltafs_errmsg(d));
            if (im->rank == 0)
                text_fail(code,
                          "import: %s has all epochs before label %" PRIu64
                          "; that one and the later ones are missing: "
                          "import the same files again with --append to continue",
                          im->output, label);
        } else {
            ++*epochs;
        }
    }
    progress_end(&bar);
    return code;
}

/* Whether a file is of an epoch that an existing directory does not have, though it has later ones: then `message` says
 * so. What keeps the directory from being opened is not looked at here. */
static int import_is_late(const struct import *im, char message[INPUT_MESSAGE_MAX])
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    deltafs_dir *d;
    uint64_t last, next = 0;
    int i = 0;

    if (deltafs_open(im->output, NULL, &d) != DELTAFS_OK)
        return 0;
    int has_last = deltafs_last_label(d, &last) == DELTAFS_OK;
    for (; has_last && i < im->file_count && im->file[im->order[i]].label <= last; i++) {
        uint64_t label = im->file[im->order[i]].label;
        while ((next == 0 || epoch.label < label) && deltafs_epoch_stat(d, next, &epoch) == DELTAFS_OK)
            next++;
        if (epoch.label == label)
            continue;
        snprintf(message, INPUT_MESSAGE_MAX,
                 "%s: label %" PRIu64 " is not in %s, and must come after the last label there, %" PRIu64,
                 im->files[im->order[i]], label, im->output, last);
        deltafs_close(d);
        return 1;
    }
    deltafs_close(d);
    return 0;
}

/* Collective: make the directory, or open it to append to it. */
static int import_open(const struct import *im, deltafs_dir **d)
{
    int status = DELTAFS_ERR_NOT_FOUND;

    if (im->is_appending)
        status = deltafs_mpi_reopen(MPI_COMM_WORLD, im->output, im->table, d);
    return status == DELTAFS_ERR_NOT_FOUND ? deltafs_mpi_create(MPI_COMM_WORLD, im->output, im->table, d) : status;
}

/* Collective. */
static int import_run(struct import *im)
{
    struct timespec start, end;
    deltafs_dir *d;
    uint64_t records = 0;
    int epochs, first, code = import_inspect(im);

    if (code != 0)
        return code;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (deltafs_options_set(im->table, "schema", im->format->schema(im->state)) != DELTAFS_OK)
        return import_fail(im, EXIT_USAGE, deltafs_errmsg(NULL));
    if (im->is_appending) {
        char message[INPUT_MESSAGE_MAX];
        code = import_agree(im, im->rank == 0 && import_is_late(im, message) ? EXIT_TROUBLE : 0, message);
        if (code != 0)
            return code;
    }
    int status = import_open(im, &d);
    if (status != DELTAFS_OK)
        return import_fail(im, status == DELTAFS_ERR_NOT_FOUND ? EXIT_TROUBLE : text_exit_code(status),
                           deltafs_errmsg(NULL));
    first = import_first(im, d);
    code = import_epochs(im, d, first, &epochs);
    status = deltafs_close(d);
    if (status != DELTAFS_OK && code == 0)
        code = import_fail(im, EXIT_TROUBLE, deltafs_errmsg(NULL));
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (int i = first; i < im->file_count; i++)
        records += im->file[im->order[i]].records;
    int files = im->file_count - first;
    if (code == 0 && im->rank == 0 && !im->is_quiet)
        printf("%s: %" PRIu64 " record%s in %d epoch%s from %d file%s by %d rank%s, %.1f s\n", im->output, records,
               text_plural(records), epochs, text_plural((uint64_t)epochs), files, text_plural((uint64_t)files),
               im->ranks, text_plural((uint64_t)im->ranks),
               (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    return code;
}

int cmd_import(int argc, char **argv)
{
    struct import im = {0};

    MPI_Comm_rank(MPI_COMM_WORLD, &im.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &im.ranks);
    /* The environment may be wrong on one rank alone. */
    int code =
        import_agree(&im, deltafs_options_create(&im.table) != DELTAFS_OK ? EXIT_USAGE : 0, deltafs_errmsg(NULL));
    if (code == 0) {
        code = import_parse(&im, argc, argv);
        /* Memory may be short on one rank alone. */
        MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (code == 0)
        code = import_run(&im);
    if (im.format && im.state)
        im.format->end(im.state);
    deltafs_options_destroy(im.table);
    free(im.file);
    free(im.order);
    return code;
}
