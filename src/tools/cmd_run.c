/* deltafs run: start a program as it is, with the environment by which its files become DeltaFS's. The same works below
 * a launcher of MPI (mpirun ... deltafs run ... -- PROGRAM) and above one. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_namespace.h>
#include "tools/cmd.h"
#include "tools/run_parts.h"

/* ---- Checks ---- */

static const char *parse_label(const char *text, void *out)
{
    *(const char **)out = text;
    if (*text == '$' ? text[1] != '\0' : strchr(text, '%') != NULL)
        return NULL;
    return "is no label; give '$NAME', in quotes, or a pattern with %d, such as dump.%d";
}

/* The variable by which an MPI tells a process that it is one of its ranks, or NULL. */
static const char *rank_variable(void)
{
    static const char *const names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            return names[i];
    return NULL;
}

/* The namespace that is published; NULL: there is not exactly one. */
static const struct run_mount *published(const struct run *r)
{
    const struct run_mount *one = NULL;

    for (size_t i = 0; i < r->given; i++)
        if (!r->mount[i].is_particles && !r->mount[i].is_snapshot && !r->mount[i].is_pool) {
            if (one)
                return NULL;
            one = &r->mount[i];
        }
    return one;
}

/* Better now than after hours of computing. */
static int check_publish(const struct run *r)
{
    deltafs_snapshot *s;

    if (!r->publish)
        return EXIT_OK;
    if (!published(r))
        return text_fail(EXIT_USAGE, "run: --publish takes exactly one namespace that is mounted with --mount");
    if (rank_variable())
        return text_fail(EXIT_USAGE,
                         "run: --publish: this process is one rank of a job (%s is set); give it to a 'deltafs run' "
                         "that starts the launcher, or publish after the job with 'deltafs snapshot publish'",
                         rank_variable());
    int status = deltafs_snapshot_open(r->publish, &s);
    if (status == DELTAFS_OK) {
        deltafs_snapshot_close(s);
        return text_fail(EXIT_USAGE,
                         "run: --publish: %s exists already; choose another name, or remove it with 'deltafs snapshot "
                         "withdraw'",
                         r->publish);
    }
    return status == DELTAFS_ERR_NOT_FOUND ? EXIT_OK : text_of_call(status);
}

static int check_options(const struct run *r, const deltafs_options *options)
{
    const char *mounted = getenv("DELTAFS_POSIX");
    int has_particles = 0;

    for (size_t i = 0; i < r->count; i++)
        has_particles |= r->mount[i].is_particles;
    if (!r->is_hdf5 && !r->is_mpiio && r->count == 0)
        return text_fail(EXIT_USAGE, "run: nothing says what the program writes; give --mount, --pool, "
                                     "--particles, --hdf5 or --mpiio");
    if (r->count > 0 && mounted && strcmp(mounted, RUN_LOGICAL_FILES) != 0)
        return text_fail(EXIT_USAGE,
                         "run: another 'deltafs run' has started this one, and has mounted %s; give all "
                         "mounts to one of them",
                         mounted);
    if (r->label && !has_particles)
        return text_fail(EXIT_USAGE, "run: --label is for --particles");
    return cmd_check_key(options, "run");
}

/* ---- Running ---- */

static int is_never_synced(const deltafs_options *options)
{
    return strcmp(cmd_option(options, "sync"), "none") == 0;
}

static int publish(const struct run *r, int status)
{
    const char *path = published(r)->target;

    if (status == 0 && deltafs_snapshot_publish(path, r->publish) == DELTAFS_OK)
        return EXIT_OK;
    if (status == 0)
        text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    return text_fail(EXIT_TROUBLE,
                     "run: %s is not published; 'deltafs snapshot publish %s %s' publishes what %s has now", r->publish,
                     path, r->publish, path);
}

/* A program that has written no particles has created no directory. */
static int sync_mount(const struct run_mount *m, time_t since)
{
    if (m->is_snapshot || m->is_pool || (m->is_particles && access(m->target, F_OK) != 0))
        return EXIT_OK;
    return run_sync_folder(m->target, since);
}

/* The program's exit status comes first; of one that succeeded it is that of what follows. */
static int run_mounted(const struct run *r, const struct command_call *c)
{
    time_t since = time(NULL);
    int code = run_and_wait(c->operand);

    for (size_t i = 0; i < r->given && !is_never_synced(c->options); i++) {
        int one = sync_mount(&r->mount[i], since);
        code = code == EXIT_OK ? one : code;
    }
    if (r->publish) {
        int one = publish(r, code);
        code = code == EXIT_OK ? one : code;
    }
    return code;
}

static int run_run(const struct command_call *c)
{
    struct run *r = c->values;

    if (r->is_check && c->count > 1)
        return text_fail(EXIT_USAGE, "run: --check takes one PROGRAM, and no arguments for it");
    if (r->is_check)
        return run_check(c->operand[0]);
    int code = check_options(r, c->options);
    if (code == EXIT_OK)
        code = run_prepare_mounts(r);
    if (code == EXIT_OK)
        code = check_publish(r);
    if (code == EXIT_OK)
        code = run_set_environment(r, c->options);
    if (code == EXIT_OK)
        code = run_create_namespaces(r, c->options);
    if (code != EXIT_OK)
        return code;
    c->operand[c->count] = NULL;
    if (r->count == 0)
        return run_become(c->operand);
    exit(run_mounted(r, c)); /* the program's own exit status, whatever it is in this program */
}

static const struct command_option options[] = {
    {"mount", 0, "POINT=NS", "the namespace NS is at the path POINT; it is created if it does not exist",
     run_parse_mount, 0},
    {"pool", 0, "POINT", "the pool that servers have at this mount point", run_parse_pool, 0},
    {"particles", 0, "POINT=DIR", "the directory DIR is at the path POINT, with one file for each particle",
     run_parse_particles, 0},
    {"label", 0, "L", "label of an epoch: '$NAME', or a pattern of the name of the folder that is opened, as dump.%d",
     parse_label, offsetof(struct run, label)},
    {"publish", 0, "REG@NAME", "publish the namespace as a snapshot when the program has succeeded", cmd_parse_text,
     offsetof(struct run, publish)},
    {"sync", 0, NULL, "every close waits for storage", NULL, offsetof(struct run, is_sync)},
    {"hdf5", 0, NULL, "the program writes with HDF5: its new files become logical files", NULL,
     offsetof(struct run, is_hdf5)},
    {"mpiio", 0, NULL, "the same for MPI-IO", NULL, offsetof(struct run, is_mpiio)},
    {"check", 0, NULL, "start nothing, but print what of the program COMMAND could not be seen by DeltaFS", NULL,
     offsetof(struct run, is_check)},
    {0}};

const struct command cmd_run = {
    .name = "run",
    .usage = "[--mount POINT=NS] [--pool POINT] [--particles POINT=DIR] [--hdf5] [--mpiio] [OPTION...] -- COMMAND "
             "[ARGUMENT...]",
    .text = "Run a program as it is, with the environment by which its files become DeltaFS's. COMMAND may\n"
            "    be a launcher such as mpirun, or be started by one.\n"
            "    --key PATTERN        index HDF5 files by the IDs in these datasets, such as '/Step#*/*/q'\n"
            "    --index DIR          one index for all files (default: one in each file)\n"
            "    --schema S           columns of a particle's record, such as x:f4,y:f4,cell:i4\n"
            "    OPTION               any of 'deltafs help options' too, but for sync",
    .missing = "COMMAND is missing, behind --",
    .least = 1,
    .size = sizeof(struct run),
    .option = options,
    .refused = cmd_takes_all,
    .run = run_run};
