/* deltafs-mpi pool: be the servers of a pool, until 'deltafs pool stop'; load and drain are in cmd_pool_stage.c, report
 * is in cmd_mpi_pool_report.c. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd.h"

/* A number of bytes, with K, M, G or T behind it or not. */
command_parse cmd_parse_pool_memory;
extern const struct command cmd_pool_load, cmd_pool_drain, cmd_mpi_pool_report;

struct pool {
    const char *local, *point;
    uint64_t memory;
    int placement, is_quiet;
};

const char *cmd_parse_pool_memory(const char *text, void *out)
{
    static const char units[] = "KMGT";
    char *end;

    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int bits = unit ? 10 * (int)(unit - units + 1) : 0;
    if (text[0] < '0' || text[0] > '9' || errno != 0 || n > UINT64_MAX >> bits || end[unit != NULL] != '\0')
        return "is no number of bytes, such as 512M";
    *(uint64_t *)out = n << bits;
    return NULL;
}

static const char *parse_placement(const char *text, void *out)
{
    *(int *)out = strcmp(text, "local") == 0 ? DELTAFS_POOL_LOCAL : DELTAFS_POOL_HASH;
    return strcmp(text, "local") == 0 || strcmp(text, "hash") == 0 ? NULL : "is neither hash nor local";
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

static int should_stop(void *arg)
{
    (void)arg;
    return is_interrupted;
}

static void started(void *arg)
{
    const struct pool *p = arg;
    int servers;

    MPI_Comm_size(MPI_COMM_WORLD, &servers);
    if (p->is_quiet || text_is_silent)
        return;
    text_say("%s: a pool of %d server%s; 'deltafs pool stop %s' ends it", p->point, servers,
             text_plural((uint64_t)servers), p->point);
    fflush(stdout);
}

/* A server needs two descriptors for each client; the usual limit is 1,024. */
static void raise_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

static int pool_run(const struct command_call *c)
{
    const struct sigaction action = {.sa_handler = interrupt};
    struct pool *p = c->values;
    const struct deltafs_mpi_pool o = {.struct_size = sizeof o,
                                       .local = p->local,
                                       .point = p->point,
                                       .placement = p->placement,
                                       .memory = p->memory,
                                       .started = started,
                                       .should_stop = should_stop,
                                       .arg = p};

    if (!p->local || !p->point || c->count > 0)
        return text_fail(EXIT_USAGE, "pool: --dir and --mount must be given, and no arguments");
    if (p->point[strspn(p->point, "/")] == '\0' || p->point[0] != '/')
        return text_fail(EXIT_USAGE, "pool: --mount %s: must be an absolute path, and not the root", p->point);
    raise_limit();
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    int status = deltafs_mpi_pool_serve(MPI_COMM_WORLD, &o);
    if (status == DELTAFS_OK)
        return EXIT_OK;
    int code = text_fail(text_exit_code(status), "pool: %s", deltafs_errmsg(NULL));
    if (status != DELTAFS_ERR_MPI)
        return code;
    /* Servers are lost: the rest cannot agree on a code, and MPI_Finalize would wait for them. */
    text_print_kept();
    fflush(NULL);
    _exit(code);
}

static const struct command_option options[] = {
    {"dir", 0, "LOCAL", "a folder of the node's own storage, new or empty; %n in it is the server's number",
     cmd_parse_text, offsetof(struct pool, local)},
    {"mount", 0, "POINT", "where programs find the pool; need not exist", cmd_parse_text, offsetof(struct pool, point)},
    {"memory", 0, "SIZE", "of each server for its clients, about 2M each (default 512M)", cmd_parse_pool_memory,
     offsetof(struct pool, memory)},
    {"placement", 0, "P", "where the bytes of files are: on all nodes by hash, or local: where the file is created",
     parse_placement, offsetof(struct pool, placement)},
    {"quiet", 'q', NULL, "do not say when the servers are ready", NULL, offsetof(struct pool, is_quiet)},
    {0}};

static const struct command *const subs[] = {&cmd_pool_load, &cmd_pool_drain, &cmd_mpi_pool_report, NULL};

const struct command cmd_mpi_pool = {
    .name = "pool",
    .usage = "--dir LOCAL --mount POINT [OPTION...]",
    .text = "Make the local storage of the job's nodes one file system, as long as this runs. Start one rank on each\n"
            "    node; each is a server. 'deltafs pool stop POINT' ends them, and then all is deleted.",
    .size = sizeof(struct pool),
    .option = options,
    .run = pool_run,
    .sub = subs};
