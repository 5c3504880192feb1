/* deltafs-mpi index: find the keys of rows in files that exist already, which stay as they are. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/ranks.h"
#include "tools/target.h"

struct index_job {
    /* Options. */
    int is_quiet, is_again, is_forget, is_compact;
    const char *index, *label; /* NULL: one index for each file, in it or beside it; labels from the files */
    const char *by;            /* an index by value of a directory, or of an index of files */
    /* The job. */
    int rank, ranks;
    deltafs_options *options;
    deltafs_indexer *indexer;
    uint64_t rows, indexed, unchanged;
    struct progress bar; /* bytes of all files */
    uint64_t before;     /* bytes of those that are done */
    uint64_t *size;      /* bytes of each; NULL if there is no bar */
};

/* ---- Progress ---- */

static uint64_t index_size(const char *path)
{
    struct deltafs_logical_stat logical = {.struct_size = sizeof logical};
    struct stat plain;
    deltafs_logical *f;

    if (!target_is_logical(path))
        return stat(path, &plain) == 0 ? (uint64_t)plain.st_size : 0;
    if (deltafs_logical_open(path, O_RDONLY, NULL, &f) != DELTAFS_OK)
        return 0;
    if (deltafs_logical_stat(f, &logical) != DELTAFS_OK)
        logical.size = 0;
    deltafs_logical_close(f);
    return logical.size;
}

static void index_begin_bar(struct index_job *ix, char **files, int n)
{
    uint64_t total = 0;

    if (ix->rank == 0 && !ix->is_quiet && progress_is_seen())
        ix->size = malloc((size_t)n * sizeof *ix->size);
    for (int i = 0; ix->size && i < n; i++)
        total += ix->size[i] = index_size(text_path(files[i]));
    progress_begin(&ix->bar, total, ix->size != NULL);
    ix->bar.is_bytes = 1;
}

/* Bytes that are done when this share of a file is. */
struct index_part {
    struct index_job *job;
    uint64_t size;
};

static uint64_t index_done(void *arg)
{
    const struct index_part *part = arg;
    double share = 0;

    deltafs_indexer_progress(part->job->indexer, &share);
    return part->job->before + (uint64_t)(share * (double)part->size);
}

/* ---- Files ---- */

static int index_of_call(struct index_job *ix, int status)
{
    if (status == DELTAFS_OK)
        return EXIT_OK;
    progress_wipe(&ix->bar);
    return text_fail(EXIT_TROUBLE, "index: %s", deltafs_errmsg(NULL));
}

/* Collective: the index for the file, open. */
static int index_open(struct index_job *ix, const char *path)
{
    if (ix->indexer)
        return EXIT_OK;
    return index_of_call(ix, deltafs_mpi_indexer_open(MPI_COMM_WORLD, ix->index, path, ix->options, &ix->indexer));
}

/* Collective. */
static int index_close(struct index_job *ix)
{
    int status = deltafs_indexer_close(ix->indexer);

    ix->indexer = NULL;
    return index_of_call(ix, status);
}

/* Collective. */
static int index_file(struct index_job *ix, const char *path, uint64_t size)
{
    struct index_part part = {ix, size};
    int has = 0, closed = EXIT_OK, code = index_open(ix, path);

    if (code != EXIT_OK)
        return code;
    int status = deltafs_indexer_has(ix->indexer, path, &has);
    if (status == DELTAFS_OK && has && !ix->is_again) {
        ix->unchanged++;
    } else if (status == DELTAFS_OK) {
        progress_watch(&ix->bar, index_done, &part);
        status = deltafs_indexer_add_file(ix->indexer, path, ix->options, &ix->rows);
        progress_unwatch(&ix->bar);
        ix->indexed += status == DELTAFS_OK;
    }
    code = index_of_call(ix, status);
    if (!ix->index)
        closed = index_close(ix);
    return code != EXIT_OK ? code : closed;
}

/* Warn of the first file whose last number, from which its timestep comes, may be that of a rank. */
static void index_warn(const struct index_job *ix, char **files, int n)
{
    int is_from_name =
        strcmp(cmd_option(ix->options, "epoch"), "auto") == 0 && !strchr(cmd_option(ix->options, "key"), '*');

    for (int i = 0; is_from_name && i < n; i++) {
        const char *path = text_path(files[i]);
        uint64_t label;
        if (!text_ends_in_rank(path) || !deltafs_label_from_name(path, &label))
            continue;
        text_fail(0,
                  "index: warning: the timestep of %s is %" PRIu64
                  ", the last number in its name; if that is the number "
                  "of a rank, index the files of each step by themselves, with --label STEP",
                  path, label);
        return;
    }
}

/* Collective: all files; what is wrong with one does not keep the others from being indexed. */
static int index_files(struct index_job *ix, char **files, int n)
{
    double start = progress_now();
    int code = EXIT_OK;

    if (ix->rank == 0)
        index_warn(ix, files, n);
    interrupt_say(
        "index: interrupted; files that were indexed completely are in the index: run the same command again to "
        "continue");
    index_begin_bar(ix, files, n);
    for (int i = 0; i < n; i++) {
        uint64_t size = ix->size ? ix->size[i] : 0;
        int failed = index_file(ix, text_path(files[i]), size);
        code = code == EXIT_OK ? failed : code;
        ix->before += size;
        progress_add(&ix->bar, ix->before > ix->bar.done ? ix->before - ix->bar.done : 0);
    }
    progress_end(&ix->bar);
    free(ix->size);
    if (ix->indexer) {
        int closed = index_close(ix);
        code = code == EXIT_OK ? closed : code;
    }
    interrupt_end();
    if (ix->rank == 0 && !ix->is_quiet && (code == EXIT_OK || ix->indexed > 0))
        text_say("%s%s%" PRIu64 " row%s of %" PRIu64 " file%s indexed by %d rank%s, %" PRIu64 " unchanged, %.1f s",
                 ix->index ? ix->index : "", ix->index ? ": " : "", ix->rows, text_plural(ix->rows), ix->indexed,
                 text_plural(ix->indexed), ix->ranks, text_plural((uint64_t)ix->ranks), ix->unchanged,
                 progress_now() - start);
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
            code = text_fail(EXIT_TROUBLE, "index: %s", deltafs_errmsg(NULL));
        forgotten += one;
    }
    int closed = index_close(ix);
    if (ix->rank == 0 && !ix->is_quiet && (code == EXIT_OK || forgotten > 0))
        text_say("%s: %" PRIu64 " file%s forgotten", ix->index, forgotten, text_plural(forgotten));
    return code != EXIT_OK ? code : closed;
}

/* What is left beside the index has the name of its folder, to which a link may lead. */
static void index_say_compact(const char *index)
{
    char *real = realpath(index, NULL);

    interrupt_say("index: interrupted; %s is complete, before or after the change: remove %s.compact if it is there "
                  "(rm -r), and run the same command again",
                  index, real ? real : index);
    free(real);
}

/* Collective: free the space of what was replaced or forgotten. */
static int index_compact(struct index_job *ix, char **files, int n)
{
    uint64_t freed = 0;
    int code = index_open(ix, NULL);

    (void)files;
    (void)n;
    if (code != EXIT_OK)
        return code;
    index_say_compact(ix->index);
    code = index_of_call(ix, deltafs_indexer_compact(ix->indexer, &freed));
    int closed = index_close(ix);
    interrupt_end();
    if (ix->rank == 0 && !ix->is_quiet && code == EXIT_OK)
        text_say("%s: %" PRIu64 " byte%s freed", ix->index, freed, text_plural(freed));
    return code != EXIT_OK ? code : closed;
}

/* Whether there are options about rows, which only files that are indexed have. */
static int index_has_row_options(const struct index_job *ix, const struct command_call *c)
{
    static const char *const names[] = {"schema", "key", "skip", "padding", "epoch"};
    int has = ix->is_again || ix->label;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        has |= cmd_is_given(c, names[i]);
    return has;
}

/* Collective: index the records of a directory by value, or the rows of an index of files. */
static int index_by(struct index_job *ix, char **dirs, int n)
{
    double start = progress_now();
    uint64_t epochs, records, all;
    deltafs_fileindex *index = NULL;
    deltafs_dir *d = NULL;
    int code = ranks_agree(target_open_rows(text_path(dirs[0]), &index, &d)), has_rows = index != NULL;

    (void)n;
    deltafs_fileindex_close(index);
    deltafs_close(d);
    if (code != EXIT_OK)
        return code;
    int status = deltafs_mpi_index_by(MPI_COMM_WORLD, text_path(dirs[0]), ix->by, ix->options, &epochs, &records);
    if (status != DELTAFS_OK)
        return text_fail(text_exit_code(status), "index: %s", deltafs_errmsg(NULL));
    MPI_Reduce(&records, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (ix->rank == 0 && !ix->is_quiet)
        text_say("%s: %" PRIu64 " %s%s of %" PRIu64 " %s%s indexed by %d rank%s, %.1f s", text_path(dirs[0]), all,
                 has_rows ? "row" : "record", text_plural(all), epochs, has_rows ? "table" : "epoch",
                 text_plural(epochs), ix->ranks, text_plural((uint64_t)ix->ranks), progress_now() - start);
    return EXIT_OK;
}

/* Set options of the library that have names of their own here, and check the rest. */
static int index_check(struct index_job *ix, const struct command_call *c)
{
    int files = c->count;

    if ((ix->index && deltafs_options_set(ix->options, "index", ix->index) != DELTAFS_OK) ||
        (ix->label && deltafs_options_set(ix->options, "epoch", ix->label) != DELTAFS_OK))
        return text_fail(EXIT_USAGE, "index: %s", deltafs_errmsg(NULL));
    if (ix->by && (files != 1 || ix->is_again || ix->is_forget || ix->is_compact || ix->label || ix->index ||
                   *cmd_option(ix->options, "key") != '\0' || *cmd_option(ix->options, "schema") != '\0'))
        return text_fail(EXIT_USAGE,
                         "index: --by takes one directory or index, and no options of files and their rows");
    if (ix->by)
        return EXIT_OK;
    ix->index = *cmd_option(ix->options, "index") != '\0' ? cmd_option(ix->options, "index") : NULL;
    if (ix->is_forget && index_has_row_options(ix, c))
        return text_fail(EXIT_USAGE,
                         "index: --forget removes files from the index; it cannot be combined with --again, --label "
                         "and the options of rows, such as --key");
    if (ix->is_forget && !ix->index)
        return text_fail(EXIT_USAGE,
                         "index: --forget needs -o INDEX (to remove the index FILE.keys of one file, use rm -r)");
    if (ix->is_compact && (files > 0 || ix->is_forget || index_has_row_options(ix, c)))
        return text_fail(EXIT_USAGE,
                         "index: --compact is about a whole index; it cannot be combined with files, --forget, "
                         "--again, --label and the options of rows, such as --key");
    if (ix->is_compact)
        return ix->index ? EXIT_OK : text_fail(EXIT_USAGE, "index: --compact needs -o INDEX");
    if (files == 0 && !ix->is_forget)
        return text_fail(EXIT_USAGE, "index: no files given");
    if (*cmd_option(ix->options, "key") == '\0' && !ix->is_forget)
        return text_fail(EXIT_USAGE, "index: --key is missing: the field of --schema that is the key, or the path of "
                                     "an HDF5 dataset");
    return ix->is_forget ? EXIT_OK : cmd_check_key(ix->options, "index");
}

static int index_run(const struct command_call *c)
{
    struct index_job *ix = c->values;

    MPI_Comm_rank(MPI_COMM_WORLD, &ix->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ix->ranks);
    ix->options = c->options;
    /* Setting an option may fail on one rank alone, for memory. */
    int code = ranks_agree(index_check(ix, c));
    if (code == EXIT_OK)
        code = (ix->by           ? index_by
                : ix->is_forget  ? index_forget
                : ix->is_compact ? index_compact
                                 : index_files)(ix, c->operand, c->count);
    return code;
}

static const struct command_option options[] = {
    {"label", 0, "N",
     "the timestep of all files (default: the number that * stands for in DATASET; or the\n"
     "                         last number in each file's name; or 0)",
     cmd_parse_text, offsetof(struct index_job, label)},
    {"output", 'o', "INDEX",
     "one index for all these files (default: one for each: FILE.keys, or\n"
     "                         FILE/keys of a logical file)",
     cmd_parse_path, offsetof(struct index_job, index)},
    {"again", 0, NULL, "also index files that have not changed, to replace the key or the label", NULL,
     offsetof(struct index_job, is_again)},
    {"forget", 0, NULL, "remove these files, or all that no longer exist, from the index; no file changes", NULL,
     offsetof(struct index_job, is_forget)},
    {"compact", 0, NULL, "free the space of replaced and forgotten files in INDEX; no file changes", NULL,
     offsetof(struct index_job, is_compact)},
    {"by", 0, "NAME:EXPR",
     "a directory, or INDEX: which records have certain values of EXPR, for 'deltafs select';\n"
     "                         ' +COLUMN' behind it (several are allowed): columns that it is to have, too",
     cmd_parse_text, offsetof(struct index_job, by)},
    {"quiet", 'q', NULL, "no progress bar, no summary", NULL, offsetof(struct index_job, is_quiet)},
    {0}};

const struct command cmd_index = {
    .name = "index",
    .usage = "--schema S --key FIELD [--skip BYTES] [OPTION...] FILE...\n"
             "deltafs-mpi index --key DATASET [OPTION...] FILE...\n"
             "deltafs-mpi index --forget -o INDEX [FILE...]\n"
             "deltafs-mpi index --compact -o INDEX\n"
             "deltafs-mpi index --by NAME:EXPR DIR",
    .text = "Index the rows of files by key; then 'deltafs get INDEX-or-FILE KEY' reads them. The files do not\n"
            "    change. Files that have not changed since they were indexed are skipped.\n"
            "    --schema S           files of fixed-size records, such as x:f4,id:u8,...; plain or logical ones\n"
            "    --key FIELD          the field of the schema that is the key\n"
            "    --key DATASET        HDF5 files: the path of the datasets that have the keys, such as\n"
            "                         '/Timestep_*/id', with a '/'\n"
            "    --skip BYTES         bytes to skip at each file's start (default 0)\n"
            "    OPTION               any of 'deltafs help options' too",
    .size = sizeof(struct index_job),
    .option = options,
    .refused = cmd_takes_all,
    .run = index_run};
