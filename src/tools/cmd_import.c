/* deltafs-mpi import: dumps that exist already become a directory.
 *
 * All files are inspected first (each by one rank), so that an incomplete file is found before anything is written.
 * Then their epochs are written in the order of their labels; the ranks share each epoch's records evenly. A file that
 * fails to be read on one rank cancels the epoch on all.
 *
 * Into a directory that is there, which --append allows, go the epochs behind its last one. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd.h"
#include "tools/import.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/ranks.h"

struct import {
    /* Options. */
    const struct import_format *format;
    struct import_layout layout;
    const char *output;
    int is_quiet, is_appending;
    /* The job. */
    int rank, ranks;
    int is_created;                  /* the directory is new */
    const struct command_call *call; /* its operands are the files */
    struct import_file *all;         /* of each operand; once all are inspected, sorted by kind, label, then part */
    /* Of the kind at hand: */
    struct import_file *file;
    int count;
};

/* ---- Inspecting ---- */

static int file_compare(const void *a, const void *b)
{
    const struct import_file *f = a, *g = b;

    if (f->kind != g->kind)
        return f->kind < g->kind ? -1 : 1;
    if (f->label != g->label)
        return f->label < g->label ? -1 : 1;
    if (f->part != g->part)
        return f->part < g->part ? -1 : 1;
    return (f->number > g->number) - (f->number < g->number);
}

/* An error if some files say of which epoch they are and others do not, and a warning if several do not. */
static int import_check_labels(const struct import *im)
{
    const char *unlabelled = NULL;
    int count = 0;

    for (int i = 0; i < im->count; i++)
        if (im->file[i].has_no_label) {
            unlabelled = im->call->operand[im->file[i].number];
            count++;
        }
    if (count > 0 && (count < im->count || im->is_appending))
        return text_fail(EXIT_USAGE,
                         "%s: has no number in its name, which would be the label of its epoch; import the files of "
                         "each timestep by themselves, with --epoch STEP",
                         unlabelled);
    if (count > 1)
        text_fail(0,
                  "import: warning: no file has a number in its name, so that the records of all %d files become one "
                  "epoch, with label 0; import the files of each timestep by themselves, with --epoch STEP",
                  count);
    return EXIT_OK;
}

static int is_of_epoch(const struct import_file *f, const struct import_file *g)
{
    return f->kind == g->kind && f->label == g->label;
}

/* Whether the files make a whole: an error if two are the same part, or of runs with other numbers of ranks, and one
 * warning if parts are missing, or if it is not known whether they are of one step. */
static int import_check_set(const struct import *im)
{
    const struct import_file *lacking = NULL;
    uint64_t parts = 0, lacking_parts = 0, steps = 0;

    for (int i = 0; i < im->count; i++) {
        const struct import_file *g = &im->file[i];
        if (i > 0 && is_of_epoch(g, g - 1) && g->parts != g[-1].parts)
            return text_fail(EXIT_TROUBLE,
                             "%s: is of a run with %" PRIu64 " ranks, and another file of its step of one with %" PRIu64
                             "; give the files of one run",
                             im->call->operand[g->number], g->parts, g[-1].parts);
        if (i > 0 && g->parts > 0 && is_of_epoch(g, g - 1) && g->part == g[-1].part)
            return text_fail(EXIT_TROUBLE, "%s: is of the same step and rank as another file; give each once",
                             im->call->operand[g->number]);
        parts++;
        if (i + 1 < im->count && is_of_epoch(g, g + 1))
            continue;
        if (parts < g->parts && steps++ == 0) {
            lacking = g;
            lacking_parts = parts;
        }
        parts = 0;
    }
    if (lacking)
        text_fail(0,
                  "import: warning: files of some ranks are missing, in %" PRIu64 " step%s: of step %" PRIu64
                  " only those of %" PRIu64 " of %" PRIu64
                  " ranks are given; the particles of the others will be missing",
                  steps, text_plural(steps), lacking->label, lacking_parts, lacking->parts);
    return import_check_labels(im);
}

/* Collective. */
static int import_inspect(struct import *im)
{
    size_t n = (size_t)im->call->count;
    int code = EXIT_OK;

    im->all = calloc(n, sizeof *im->all);
    if (!im->all)
        code = text_keep(EXIT_TROUBLE, "import: no memory for the list of files");
    for (int i = im->rank; i < im->call->count && code == EXIT_OK; i += im->ranks) {
        struct input in;
        code = input_open(&in, im->call->operand[i]);
        if (code == EXIT_OK)
            code = im->format->inspect(&im->layout, &in, &im->all[i]);
        input_close(&in);
    }
    code = ranks_agree(code);
    if (code != EXIT_OK)
        return code;
    /* Each file was inspected by one rank, and is all zero on the others. */
    MPI_Allreduce(MPI_IN_PLACE, im->all, (int)(n * (sizeof *im->all / sizeof(uint64_t))), MPI_UINT64_T, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int i = 0; i < im->call->count; i++)
        im->all[i].number = (uint64_t)i;
    qsort(im->all, n, sizeof *im->all, file_compare);
    return EXIT_OK;
}

/* ---- Importing ---- */

/* Append records `from` to `to` of a file. */
static int import_file(const struct import *im, const struct import_file *f, uint64_t from, uint64_t to, deltafs_dir *d,
                       struct progress *bar)
{
    struct input in;
    int code = input_open(&in, im->call->operand[f->number]);

    if (code == EXIT_OK)
        code = import_records(&im->layout, f, &in, from, to, d, bar);
    input_close(&in);
    return code;
}

/* This rank's share of the files first .. end - 1, which are of one epoch. */
static void import_share(const struct import *im, int first, int end, deltafs_dir *d, struct progress *bar)
{
    uint64_t total = 0, at = 0, rank = (uint64_t)im->rank, ranks = (uint64_t)im->ranks;

    for (int k = first; k < end; k++)
        total += im->file[k].records;
    uint64_t share = total / ranks, rest = total % ranks;
    uint64_t from = rank * share + (rank < rest ? rank : rest), to = from + share + (rank < rest);
    for (int k = first; k < end; k++) {
        uint64_t n = im->file[k].records, a = from > at ? from - at : 0, b = to > at ? to - at : 0;
        if (b > n)
            b = n;
        if (a < b && import_file(im, &im->file[k], a, b, d, bar) != EXIT_OK) {
            deltafs_epoch_cancel(d, text_kept());
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
    while (first < im->count && im->file[first].label <= last)
        first++;
    if (first > 0 && !im->is_quiet)
        text_fail(0, "import: %s already has epochs up to label %" PRIu64 ": %d of %d file%s skipped", im->output, last,
                  first, im->count, im->count == 1 ? " is" : "s are");
    return first;
}

/* What Ctrl-C says from now on. With commit=async, the last epoch may not be committed yet. */
static void import_say_interrupted(const struct import *im, deltafs_dir *d)
{
    static const char advice[] = "import the same files again with --append to continue";
    uint64_t last;

    if (deltafs_last_label(d, &last) != DELTAFS_OK)
        interrupt_say("import: interrupted; %s has no epoch yet: %s", im->output, advice);
    else if (strcmp(cmd_option(im->call->options, "commit"), "async") == 0)
        interrupt_say("import: interrupted; %s has all epochs that were complete: %s", im->output, advice);
    else
        interrupt_say("import: interrupted; %s has all epochs up to label %" PRIu64 ": %s", im->output, last, advice);
}

/* Collective: the epoch of the files first .. end - 1, of which `before` is the first of the epoch before, or the same.
 */
static int import_epoch(const struct import *im, int before, int first, int end, deltafs_dir *d, struct progress *bar)
{
    const struct import_file *f = im->file;
    int status = DELTAFS_OK;

    if (im->format->set_facts)
        status = im->format->set_facts(d, f + first, (size_t)(end - first), before < first ? f + before : NULL,
                                       (size_t)(first - before));
    if (status == DELTAFS_OK) {
        import_share(im, first, end, d, bar);
        status = deltafs_epoch_end(d, f[first].label);
    }
    return status;
}

/* Collective: the epochs of the files from `first` on. */
static int import_epochs(const struct import *im, deltafs_dir *d, int first, int *epochs)
{
    struct progress bar;
    uint64_t total = 0;
    int end, before = first, code = 0;

    for (int i = first; i < im->count; i++)
        total += im->file[i].records;
    progress_begin(&bar, total / (uint64_t)im->ranks, im->rank == 0 && !im->is_quiet);
    *epochs = 0;
    for (; first < im->count && code == 0; first = end) {
        uint64_t label = im->file[first].label;
        for (end = first + 1; end < im->count && im->file[end].label == label;)
            end++;
        if (import_epoch(im, before, first, end, d, &bar) != DELTAFS_OK) {
            progress_end(&bar);
            code = text_fail(EXIT_TROUBLE, "import: %s", deltafs_errmsg(d));
        } else {
            import_say_interrupted(im, d);
            ++*epochs;
        }
        before = first;
    }
    progress_end(&bar);
    return code;
}

/* Remove a file or an empty folder. A link is a bucket on a volume: that goes, too, and the folder above it there. */
static int import_remove_one(const char *path, const struct stat *st, int type, struct FTW *level)
{
    char target[PATH_MAX];

    (void)st, (void)level;
    if (type == FTW_SL && realpath(path, target)) {
        if (nftw(target, import_remove_one, 1, FTW_DEPTH | FTW_PHYS) != 0)
            return -1;
        *strrchr(target, '/') = '\0';
        rmdir(target); /* unless it has another bucket */
    }
    return remove(path);
}

/* The last label of a directory. Returns 1, 0 if it has no epochs, or -1 if it cannot be opened. */
static int import_find_last(const char *path, uint64_t *last)
{
    deltafs_dir *d;

    if (deltafs_open(path, NULL, &d) != DELTAFS_OK)
        return -1;
    int is_found = deltafs_last_label(d, last) == DELTAFS_OK;
    deltafs_close(d);
    return is_found;
}

/* Remove a new directory without epochs, and say so; returns whether it is out of the way. Under another name nobody
 * opens it any more. A job that opened it before that has a lease, or has ended and left epochs: then it gets its name
 * back. */
static int import_remove(const char *path)
{
    char aside[PATH_MAX], lease[PATH_MAX];
    uint64_t last;
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (snprintf(aside, sizeof aside, "%.*s.deltafs-removed-%ld", (int)n, path, (long)getpid()) >= (int)sizeof aside ||
        snprintf(lease, sizeof lease, "%s/LEASE", aside) >= (int)sizeof lease || rename(path, aside) != 0)
        return 0;
    /* The epochs after the lease, which a job that ends removes last. */
    if (access(lease, F_OK) == 0 || errno != ENOENT || import_find_last(aside, &last) != 0) {
        if (rename(aside, path) == 0)
            return 0;
        text_fail(0, "import: another job has opened %s, which is named %s now: %s; rename it when its name is free",
                  path, aside, strerror(errno));
    } else if (nftw(aside, import_remove_one, 1, FTW_DEPTH | FTW_PHYS) != 0) {
        text_fail(0,
                  "import: no epoch is imported; %s, which was new, is removed, but parts of it are left (%s): "
                  "remove %s",
                  path, strerror(errno), aside);
    } else {
        text_fail(0, "import: no epoch is imported; %s, which was new, is removed", path);
    }
    return 1;
}

/* After a failure, on rank 0: say what the directory has, and how to continue. A new one without epochs is removed. */
static void import_advise(const struct import *im)
{
    uint64_t last;
    int found = import_find_last(im->output, &last);

    if (found == 0 && im->is_created) {
        if (import_remove(im->output))
            return;
        found = import_find_last(im->output, &last);
    }
    if (found < 0)
        text_fail(0, "import: %s", deltafs_errmsg(NULL));
    else if (found)
        text_fail(0,
                  "import: %s has all epochs up to label %" PRIu64
                  "; the later ones are missing: import the same files again with --append to continue",
                  im->output, last);
    else
        text_fail(0, "import: %s has no epoch yet: import the same files again with --append", im->output);
}

/* Whether values of a directory have all columns but the rank, which DeltaFS 0.1 did not import. */
static int import_lacks_part(const struct import *im, deltafs_dir *d)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    if (!im->layout.has_part || deltafs_stat(d, &stat) != DELTAFS_OK || stat.schema[0] == '\0')
        return 0;
    size_t n = strlen(stat.schema);
    return strncmp(im->layout.schema, stat.schema, n) == 0 && im->layout.schema[n] == ',';
}

/* Refuse a file of an epoch that an existing directory does not have, though it has later ones; and a directory without
 * ranks. If the directory cannot be opened, the caller will find out why. */
static int import_check_existing(const struct import *im)
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    deltafs_dir *d;
    uint64_t last, next = 0;
    int code = EXIT_OK;

    if (deltafs_open(im->output, NULL, &d) != DELTAFS_OK)
        return EXIT_OK;
    int has_last = deltafs_last_label(d, &last) == DELTAFS_OK;
    if (import_lacks_part(im, d))
        code = text_keep(EXIT_TROUBLE,
                         "import: %s has no column rank, since DeltaFS 0.1 imported it: import all files again, into a "
                         "new directory",
                         im->output);
    for (int i = 0; has_last && i < im->count && code == EXIT_OK; i++) {
        uint64_t label = im->file[i].label;
        while (label <= last && (next == 0 || epoch.label < label) && deltafs_epoch_stat(d, next, &epoch) == DELTAFS_OK)
            next++;
        if (label <= last && epoch.label != label)
            code = text_keep(EXIT_TROUBLE,
                             "%s: label %" PRIu64 " is not in %s, and must come after the last label there, %" PRIu64,
                             im->call->operand[im->file[i].number], label, im->output, last);
    }
    deltafs_close(d);
    return code;
}

/* Collective: create the directory, or open it to append to it. */
static int import_open(struct import *im, deltafs_dir **d)
{
    int status = DELTAFS_ERR_NOT_FOUND, code = EXIT_OK;

    if (deltafs_options_set(im->call->options, "schema", im->layout.schema) != DELTAFS_OK)
        return text_fail(EXIT_USAGE, "import: %s", deltafs_errmsg(NULL));
    if (im->is_appending)
        code = ranks_agree(im->rank == 0 ? import_check_existing(im) : EXIT_OK);
    if (code != EXIT_OK)
        return code;
    if (im->is_appending)
        status = deltafs_mpi_reopen(MPI_COMM_WORLD, im->output, im->call->options, d);
    if (status == DELTAFS_ERR_NOT_FOUND) {
        im->is_created = 1;
        status = deltafs_mpi_create(MPI_COMM_WORLD, im->output, im->call->options, d);
    }
    return status == DELTAFS_OK ? EXIT_OK
                                : text_fail(status == DELTAFS_ERR_NOT_FOUND ? EXIT_TROUBLE : text_exit_code(status),
                                            "import: %s", deltafs_errmsg(NULL));
}

/* Collective: the files of one kind into one directory. */
static int import_kind(struct import *im)
{
    double start = progress_now();
    deltafs_dir *d;
    uint64_t records = 0;
    int epochs, code = import_open(im, &d);

    if (code != EXIT_OK)
        return code;
    int first = import_first(im, d), files = im->count - first;
    import_say_interrupted(im, d);
    code = import_epochs(im, d, first, &epochs);
    if (deltafs_close(d) != DELTAFS_OK && code == EXIT_OK)
        code = text_fail(EXIT_TROUBLE, "import: %s", deltafs_errmsg(NULL));
    interrupt_end();
    if (code != EXIT_OK && im->rank == 0)
        import_advise(im);
    for (int i = first; i < im->count; i++)
        records += im->file[i].records;
    if (code == EXIT_OK && im->rank == 0 && !im->is_quiet)
        text_say("%s: %" PRIu64 " record%s in %d epoch%s from %d file%s by %d rank%s, %.1f s", im->output, records,
                 text_plural(records), epochs, text_plural((uint64_t)epochs), files, text_plural((uint64_t)files),
                 im->ranks, text_plural((uint64_t)im->ranks), progress_now() - start);
    return code;
}

/* ---- Several species ---- */

/* The species' name, which is that of its files up to the first '.'. */
static struct name {
    const char *at;
    size_t size;
} import_name(const struct import *im, const struct import_file *f)
{
    const char *path = im->call->operand[f->number], *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;

    return (struct name){at, strcspn(at, ".")};
}

static int name_is_same(struct name a, struct name b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

static int import_refuse_names(const struct import *im, int k, int i, const char *what)
{
    return text_fail(EXIT_TROUBLE,
                     "%s, %s: %s; a species' directory has the name of its files up to the first '.': import each "
                     "species by itself, into a directory of its own",
                     im->call->operand[im->all[k].number], im->call->operand[im->all[i].number], what);
}

/* Whether each species has a name, one that no other has. */
static int import_check_names(const struct import *im)
{
    for (int i = 0; i < im->call->count; i++) {
        struct name name = import_name(im, &im->all[i]);
        if (name.size == 0)
            return import_refuse_names(im, i, i, "no name");
        if (i > 0 && im->all[i].kind == im->all[i - 1].kind) {
            if (!name_is_same(name, import_name(im, &im->all[i - 1])))
                return import_refuse_names(im, i - 1, i, "one species with two names");
            continue;
        }
        for (int k = 0; k < i; k++)
            if (name_is_same(name, import_name(im, &im->all[k])))
                return import_refuse_names(im, k, i, "two species with one name");
    }
    return EXIT_OK;
}

/* Rank 0: the folder for the directories of the species. */
static int import_make_folder(const char *path, int *is_made)
{
    deltafs_dir *d;

    *is_made = mkdir(path, 0777) == 0;
    if (*is_made)
        return EXIT_OK;
    if (errno != EEXIST)
        return text_fail(EXIT_TROUBLE, "import: %s: cannot be made: %s", path, strerror(errno));
    if (deltafs_open(path, NULL, &d) == DELTAFS_OK) {
        deltafs_close(d);
        return text_fail(EXIT_TROUBLE,
                         "import: %s is a directory with records, and the files are of several species; give -o a new "
                         "name, which will be a folder with a directory for each species",
                         path);
    }
    return EXIT_OK;
}

/* Collective: each species into a directory DIR/NAME. */
static int import_species(struct import *im)
{
    const char *folder = im->output;
    int rest = im->call->count, is_made = 0;
    int code = ranks_agree(im->rank == 0 ? import_make_folder(folder, &is_made) : EXIT_OK);

    for (im->file = im->all; rest > 0 && code == EXIT_OK; im->file += im->count) {
        struct name name = import_name(im, im->file);
        char *path = NULL;
        for (im->count = 1; im->count < rest && im->file[im->count].kind == im->file->kind;)
            im->count++;
        rest -= im->count;
        if (asprintf(&path, "%s/%.*s", folder, (int)name.size, name.at) < 0)
            code = text_keep(EXIT_TROUBLE, "import: no memory for a path");
        code = ranks_agree(code);
        im->output = path;
        if (code == EXIT_OK)
            code = import_kind(im);
        free(path);
    }
    if (code != EXIT_OK && is_made)
        rmdir(folder); /* unless a species is in it */
    return code;
}

/* Collective. */
static int import_files(struct import *im)
{
    int code = import_inspect(im);

    if (code != EXIT_OK)
        return code;
    im->file = im->all;
    im->count = im->call->count;
    int is_one = im->all[0].kind == im->all[im->count - 1].kind;
    code = is_one ? EXIT_OK : import_check_names(im);
    if (code == EXIT_OK)
        code = import_check_set(im);
    if (code != EXIT_OK)
        return code;
    return is_one ? import_kind(im) : import_species(im);
}

static int import_run(const struct command_call *c)
{
    struct import *im = c->values;

    if (!im->format)
        return text_fail(EXIT_USAGE, "import: --format is missing; give vpic or raw");
    if (!im->output)
        return text_fail(EXIT_USAGE, "import: -o DIR is missing");
    MPI_Comm_rank(MPI_COMM_WORLD, &im->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &im->ranks);
    im->call = c;
    int code = ranks_agree(im->format->begin(&im->layout));
    if (code == EXIT_OK)
        code = import_files(im);
    free(im->layout.schema);
    free(im->layout.record);
    free(im->all);
    return code;
}

static const char *parse_format(const char *text, void *out)
{
    static const struct import_format *const formats[] = {&import_vpic, &import_raw};

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i]->name, text) == 0) {
            *(const struct import_format **)out = formats[i];
            return NULL;
        }
    return "is no format; give vpic or raw";
}

#define LAYOUT(field)                                                                                                  \
    (offsetof(struct import, layout) + offsetof(struct import_layout, options) + offsetof(struct import_options, field))

static const struct command_option options[] = {
    {"format", 0, "F",
     "vpic: particle dumps of VPIC (version 0) with particle IDs; the label is the step.\n"
     "                         raw: files of fixed-size records, as --schema says",
     parse_format, offsetof(struct import, format)},
    {"schema", 0, "S",
     "raw: the fields of a record, such as id:u8,pos:3f4, or NumPy's dtype.descr.\n"
     "                         ux:f4~1e-4 has an error bound; vpic: only such fields",
     cmd_parse_text, LAYOUT(schema)},
    {"key", 0, "FIELD", "raw: the field of the schema that is the key", cmd_parse_text, LAYOUT(key)},
    {"skip", 0, "BYTES", "raw: bytes to skip at each file's start (default 0)", cmd_parse_number, LAYOUT(skip)},
    {"epoch", 0, "N", "raw: the label of the epoch; without it, the last number in each file's name", cmd_parse_number,
     LAYOUT(epoch)},
    {"output", 'o', "DIR",
     "the directory to create; it must not exist, unless --append is given. With dumps\n"
     "                         of several species: a folder, which gets a directory NAME for files NAME.*",
     cmd_parse_path, offsetof(struct import, output)},
    {"append", 'a', NULL, "continue after the last epoch of DIR; skip files of epochs that it has", NULL,
     offsetof(struct import, is_appending)},
    {"quiet", 'q', NULL, "no progress bar, no summary", NULL, offsetof(struct import, is_quiet)},
    {0}};

/* The files decide on the size of values, and an import makes a directory with keys that are numbers. */
static const char *const refused[] = {"extents", "hdf5", "index", "keys", "padding", "value_size", NULL};

const struct command cmd_import = {
    .name = "import",
    .usage = "--format vpic|raw -o DIR [OPTION...] FILE...",
    .text = "Create the directory DIR from dumps. Ranks share the work: mpirun -np 4 deltafs-mpi import ...\n"
            "    OPTION: any of 'deltafs help options' too, such as --memory 256M or --partitions 16",
    .missing = "no input files given",
    .least = 1,
    .size = sizeof(struct import),
    .option = options,
    .refused = refused,
    .run = import_run};
