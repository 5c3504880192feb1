/* deltafs-mpi index: find the keys of rows in files that exist already, which stay as they are. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <fcntl.h>
#include <deltafs/deltafs_mpi.h>
#include "hdf5/h5rows.h"
#include "tools/cmd_mpi.h"
#include "tools/input.h"
#include "tools/text.h"

/* Long options of the library's table come behind our own, numbered from here. */
#define OPTION_TABLE 1000

struct index_job {
    int rank, ranks;
    int is_quiet, is_again, is_forget, is_described;
    deltafs_options *options;
    const char *index; /* NULL: one for each file, in it or beside it */
    deltafs_indexer *indexer;
    struct h5lib hdf5; /* rank 0, once an HDF5 file was seen */
    uint64_t rows, indexed, unchanged;
};

/* The tables of a file, on rank 0. */
static void tables_free(struct h5rows *t, int is_hdf5)
{
    if (is_hdf5) {
        h5rows_fini(t);
        return;
    }
    for (size_t i = 0; i < t->count; i++)
        deltafs_table_destroy(t->table[i]);
    free(t->table);
}

static const char *index_option(const struct index_job *ix, const char *name)
{
    const char *value = "";

    deltafs_options_get(ix->options, name, &value);
    return value;
}

/* Rank 0's exit code to all. Collective. */
static int index_agree(int code)
{
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return code;
}

static int index_fail(const struct index_job *ix, int code, const char *message)
{
    return ix->rank == 0 ? text_fail(code, "index: %s", message) : code;
}

/* ---- Arguments ---- */

/* Our options, then those of the library's table. Returns a new array, or NULL. */
static struct option *index_long_options(void)
{
    static const struct option own[] = {{"output", required_argument, NULL, 'o'},
                                        {"label", required_argument, NULL, 'l'},
                                        {"again", no_argument, NULL, 'a'},
                                        {"forget", no_argument, NULL, 'f'},
                                        {"quiet", no_argument, NULL, 'q'}};
    size_t n = sizeof own / sizeof own[0], count = 0;
    const struct deltafs_option_info *info;

    while (deltafs_option_at(count))
        count++;
    struct option *all = calloc(n + count + 1, sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, own, sizeof own);
    for (size_t i = 0; (info = deltafs_option_at(i)); i++)
        all[n++] = (struct option){info->name, required_argument, NULL, OPTION_TABLE + (int)i};
    return all;
}

static int index_set(struct index_job *ix, const char *name, const char *value)
{
    return deltafs_options_set(ix->options, name, value) == DELTAFS_OK
               ? EXIT_OK
               : index_fail(ix, EXIT_USAGE, deltafs_errmsg(NULL));
}

static int index_take(struct index_job *ix, int c)
{
    switch (c) {
    case 'o':
        return index_set(ix, "index", text_path(optarg));
    case 'l':
        ix->is_described = 1;
        return index_set(ix, "epoch", optarg);
    case 'a':
        ix->is_again = 1;
        return EXIT_OK;
    case 'f':
        ix->is_forget = 1;
        return EXIT_OK;
    case 'q':
        ix->is_quiet = 1;
        return EXIT_OK;
    default:
        return c < OPTION_TABLE ? EXIT_USAGE
                                : index_set(ix, deltafs_option_at((size_t)(c - OPTION_TABLE))->name, optarg);
    }
}

static int index_parse(struct index_job *ix, int argc, char **argv)
{
    struct option *options = index_long_options();
    int c, code = EXIT_OK;

    if (!options)
        return index_fail(ix, EXIT_TROUBLE, "no memory");
    opterr = ix->rank == 0;
    while (code == EXIT_OK && (c = getopt_long(argc, argv, "o:q", options, NULL)) != -1)
        code = index_take(ix, c);
    free(options);
    if (code == EXIT_OK && optind == argc && !ix->is_forget)
        code = index_fail(ix, EXIT_USAGE, "no files given");
    if (code == EXIT_OK && *index_option(ix, "key") == '\0' && !ix->is_forget)
        code = index_fail(ix, EXIT_USAGE,
                          "--key is missing: the field of --schema that is the key, or the path of an HDF5 dataset");
    if (code == EXIT_OK && *index_option(ix, "index") != '\0')
        ix->index = index_option(ix, "index");
    if (code == EXIT_OK && ix->is_forget && (ix->is_again || ix->is_described))
        code = index_fail(ix, EXIT_USAGE,
                          "--forget removes files from the index; it cannot be combined with --again, --label and the "
                          "options of rows");
    if (code == EXIT_OK && ix->is_forget && !ix->index)
        code = index_fail(ix, EXIT_USAGE,
                          "--forget needs -o INDEX (to remove the index FILE.keys of one file, use rm -r)");
    if (code == EXIT_USAGE && ix->rank == 0)
        fputs("Try 'deltafs-mpi help'.\n", stderr);
    return code;
}

/* ---- Files ---- */

/* Bytes of a plain file, or of a logical one. */
static int file_size(const char *path, uint64_t *size)
{
    char message[INPUT_MESSAGE_MAX], kind;
    deltafs_logical *f;
    struct input in;

    if (deltafs_kind(path, &kind) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "index: %s", deltafs_errmsg(NULL));
    if (kind != 'f') {
        if (input_open(&in, path, message) != 0)
            return text_fail(EXIT_TROUBLE, "index: %s", message);
        *size = in.size;
        input_close(&in);
        return EXIT_OK;
    }
    if (deltafs_logical_open(path, O_RDONLY, NULL, &f) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "index: %s", deltafs_errmsg(NULL));
    deltafs_logical_size(f, size);
    deltafs_logical_close(f);
    return EXIT_OK;
}

/* Rank 0: the one table of a stream of records. */
static int find_records(const struct index_job *ix, const char *path, struct h5rows *out)
{
    uint64_t size;
    int code = file_size(path, &size);

    if (code != EXIT_OK)
        return code;
    out->table = calloc(1, sizeof(struct deltafs_table *));
    if (!out->table)
        return text_fail(EXIT_TROUBLE, "index: no memory");
    if (deltafs_table_from_options(path, ix->options, size, &out->table[0]) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "index: %s", deltafs_errmsg(NULL));
    out->count = 1;
    return EXIT_OK;
}

/* Rank 0: the tables that the key's pattern names. A logical file is opened through DeltaFS's driver. */
static int find_datasets(struct index_job *ix, const char *path, struct h5rows *out)
{
    char message[H5LIB_MESSAGE_MAX], kind = '-';
    const char *epoch = index_option(ix, "epoch");
    uint64_t label;
    h5_id fapl = 0;

    if (!ix->hdf5.object && h5lib_load(&ix->hdf5, index_option(ix, "hdf5"), message) != 0)
        return text_fail(EXIT_TROUBLE, "index: %s", message);
    deltafs_kind(path, &kind);
    if (kind == 'f') {
        fapl = ix->hdf5.plist_create(*ix->hdf5.file_access);
        if (!ix->hdf5.set_driver || ix->hdf5.set_driver(fapl, "deltafs", "") < 0) {
            ix->hdf5.plist_close(fapl);
            return text_fail(EXIT_TROUBLE,
                             "index: %s: a logical file; reading it needs DeltaFS's driver and HDF5 1.14 "
                             "or later (option hdf5), and HDF5_PLUGIN_PATH set to the driver's folder; or index a "
                             "plain copy made by 'deltafs cp'",
                             path);
        }
    }
    int status = h5rows_of_file(&ix->hdf5, path, fapl, path, index_option(ix, "key"),
                                text_number(epoch, &label) == 0 ? &label : NULL, out, message);
    if (fapl)
        ix->hdf5.plist_close(fapl);
    if (status == DELTAFS_OK && out->count == 0)
        return text_fail(EXIT_TROUBLE, "index: %s: %s has no elements", path, index_option(ix, "key"));
    return status == DELTAFS_OK ? EXIT_OK : text_fail(EXIT_TROUBLE, "index: %s", message);
}

/* Rank 0. */
static int find_tables(struct index_job *ix, const char *path, struct h5rows *out)
{
    return h5rows_is_pattern(index_option(ix, "key")) ? find_datasets(ix, path, out) : find_records(ix, path, out);
}

/* Collective: the index for the file, open. */
static int index_open(struct index_job *ix, const char *path)
{
    if (ix->indexer)
        return EXIT_OK;
    if (deltafs_mpi_indexer_open(MPI_COMM_WORLD, ix->index, path, ix->options, &ix->indexer) == DELTAFS_OK)
        return EXIT_OK;
    ix->indexer = NULL;
    return index_fail(ix, EXIT_TROUBLE, deltafs_errmsg(NULL));
}

/* Collective. */
static int index_close(struct index_job *ix)
{
    int status = deltafs_indexer_close(ix->indexer);

    ix->indexer = NULL;
    return status == DELTAFS_OK ? EXIT_OK : index_fail(ix, EXIT_TROUBLE, deltafs_errmsg(NULL));
}

/* Collective. */
static int index_add(struct index_job *ix, const char *path)
{
    struct h5rows t = {0};
    int code = index_agree(ix->rank == 0 ? find_tables(ix, path, &t) : EXIT_OK);

    if (code == EXIT_OK &&
        deltafs_indexer_add(ix->indexer, path, t.count, (const struct deltafs_table *const *)t.table) != DELTAFS_OK)
        code = index_fail(ix, EXIT_TROUBLE, deltafs_errmsg(NULL));
    for (size_t i = 0; i < t.count && code == EXIT_OK; i++)
        ix->rows += t.table[i]->rows;
    ix->indexed += code == EXIT_OK;
    tables_free(&t, h5rows_is_pattern(index_option(ix, "key")));
    return code;
}

/* Collective. */
static int index_file(struct index_job *ix, const char *path)
{
    int has = 0, closed = EXIT_OK, code = index_open(ix, path);

    if (code != EXIT_OK)
        return code;
    if (deltafs_indexer_has(ix->indexer, path, &has) != DELTAFS_OK)
        code = index_fail(ix, EXIT_TROUBLE, deltafs_errmsg(NULL));
    else if (has && !ix->is_again)
        ix->unchanged++;
    else
        code = index_add(ix, path);
    if (!ix->index)
        closed = index_close(ix);
    return code != EXIT_OK ? code : closed;
}

/* Collective: all files; what is wrong with one does not keep the others from being indexed. */
static int index_run(struct index_job *ix, char **files, int n)
{
    struct timespec start, end;
    int code = EXIT_OK;

    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < n; i++) {
        int failed = index_file(ix, text_path(files[i]));
        code = code == EXIT_OK ? failed : code;
    }
    if (ix->indexer) {
        int closed = index_close(ix);
        code = code == EXIT_OK ? closed : code;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (ix->rank == 0 && !ix->is_quiet)
        printf("%s%s%" PRIu64 " row%s of %" PRIu64 " file%s indexed by %d rank%s, %" PRIu64 " unchanged, %.1f s\n",
               ix->index ? ix->index : "", ix->index ? ": " : "", ix->rows, text_plural(ix->rows), ix->indexed,
               text_plural(ix->indexed), ix->ranks, text_plural((uint64_t)ix->ranks), ix->unchanged,
               (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    return code;
}

/* Collective: take files out of the index; with none given, those that are gone. */
static int index_forget(struct index_job *ix, char **files, int n)
{
    uint64_t forgotten = 0, one = 0;
    int code = index_open(ix, NULL);

    if (code != EXIT_OK)
        return code;
    for (int i = 0; i < (n > 0 ? n : 1); i++) {
        if (deltafs_indexer_forget(ix->indexer, n > 0 ? text_path(files[i]) : NULL, &one) != DELTAFS_OK)
            code = index_fail(ix, EXIT_TROUBLE, deltafs_errmsg(NULL));
        forgotten += one;
    }
    int closed = index_close(ix);
    if (ix->rank == 0 && !ix->is_quiet && (code == EXIT_OK || forgotten > 0))
        printf("%s: %" PRIu64 " file%s forgotten\n", ix->index, forgotten, text_plural(forgotten));
    return code != EXIT_OK ? code : closed;
}

int cmd_index(int argc, char **argv)
{
    struct index_job ix = {0};
    int code = EXIT_OK;

    MPI_Comm_rank(MPI_COMM_WORLD, &ix.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ix.ranks);
    if (deltafs_options_create(&ix.options) != DELTAFS_OK)
        code = text_fail(EXIT_USAGE, "index: %s", deltafs_errmsg(NULL));
    if (code == EXIT_OK)
        code = index_parse(&ix, argc, argv);
    /* The environment may be wrong, or memory short, on one rank alone. */
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (code == EXIT_OK)
        code = (ix.is_forget ? index_forget : index_run)(&ix, argv + optind, argc - optind);
    deltafs_options_destroy(ix.options);
    return code;
}
