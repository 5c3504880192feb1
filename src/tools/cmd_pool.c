/* deltafs pool: wait for a pool's servers, ask them, and end them; load and drain are in cmd_pool_stage.c. */
#include <string.h>
#include <time.h>
#include <deltafs/deltafs_pool.h>
#include "tools/cmd.h"
#include "tools/ns_copy.h"
#include "tools/progress.h"

#define WAIT_DEFAULT 60 /* seconds */

extern const struct command cmd_pool_status, cmd_pool_load, cmd_pool_drain;

static int pool_fail(int status)
{
    return text_fail(text_exit_code(status), "%s", deltafs_errmsg(NULL));
}

/* ---- wait ---- */

struct wait {
    struct command_number timeout;
};

/* Whether all servers answer. */
static int ask_all(const char *point)
{
    struct deltafs_pool_status s = {.struct_size = sizeof s};
    deltafs_pool *pool = NULL;
    int status = deltafs_pool_open(point, &pool);

    for (uint32_t i = 0; status == DELTAFS_OK && i < deltafs_pool_servers(pool); i++)
        status = deltafs_pool_status(pool, i, &s);
    deltafs_pool_close(pool);
    return status;
}

static int wait_run(const struct command_call *c)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    const struct wait *w = c->values;
    double start = progress_now(), most = w->timeout.is_given ? (double)w->timeout.value : WAIT_DEFAULT;
    int status = ask_all(c->operand[0]);

    while ((status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_IO) && progress_now() - start < most) {
        nanosleep(&nap, NULL);
        status = ask_all(c->operand[0]);
    }
    return status == DELTAFS_OK ? EXIT_OK : pool_fail(status);
}

static const struct command_option wait_options[] = {
    {"timeout", 0, "SECONDS", "how long to wait (default 60)", cmd_parse_number, offsetof(struct wait, timeout)}, {0}};

static const struct command cmd_pool_wait = {.name = "wait",
                                             .usage = "POINT [OPTION...]",
                                             .text = "Wait until all servers of a pool answer.",
                                             .missing = "POINT must be given",
                                             .least = 1,
                                             .most = 1,
                                             .size = sizeof(struct wait),
                                             .option = wait_options,
                                             .run = wait_run};

/* ---- stop ---- */

static int is_in(const char *path, const char *point)
{
    size_t n = strlen(point);

    while (n > 0 && point[n - 1] == '/')
        n--;
    return strncmp(path, point, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* POINT, FROM and TO. */
static int drain_first(char **operand)
{
    const struct ns_copy_options o = {.is_recursive = 1, .is_preserving = 1, .stage = NS_COPY_FROM_POOL};

    if (!is_in(operand[1], operand[0]))
        return text_fail(EXIT_USAGE, "pool stop: %s must be in %s, which ends", operand[1], operand[0]);
    int code = ns_copy(&o, operand + 1, 1);
    return code == EXIT_OK ? code : text_fail(code, "pool stop: not all was copied; %s goes on", operand[0]);
}

static int stop_run(const struct command_call *c)
{
    const int *is_draining = c->values;
    deltafs_pool *pool = NULL;

    if (c->count != (*is_draining ? 3 : 1))
        return text_fail(EXIT_USAGE, "pool stop: POINT must be given, then FROM and TO if there is --drain");
    int status = deltafs_pool_open(c->operand[0], &pool), code = status == DELTAFS_OK ? EXIT_OK : pool_fail(status);
    if (code == EXIT_OK && *is_draining)
        code = drain_first(c->operand);
    if (code == EXIT_OK && (status = deltafs_pool_stop(pool)) != DELTAFS_OK)
        code = pool_fail(status);
    deltafs_pool_close(pool);
    return code;
}

static const struct command_option stop_options[] = {
    {"drain", 0, NULL, "first copy FROM, which is in the pool, to TO, as 'pool drain' does", NULL, 0}, {0}};

static const struct command cmd_pool_stop = {
    .name = "stop",
    .usage = "POINT [--drain FROM TO]",
    .text = "End a pool's servers. What is in the pool is deleted. If --drain cannot copy all, the pool goes on.",
    .size = sizeof(int),
    .option = stop_options,
    .run = stop_run};

static const struct command *const subs[] = {&cmd_pool_wait,  &cmd_pool_status, &cmd_pool_load,
                                             &cmd_pool_drain, &cmd_pool_stop,   NULL};

const struct command cmd_pool = {.name = "pool",
                                 .usage = "COMMAND ...",
                                 .text = "waits for the servers of a pool, asks and ends them, and copies into pools "
                                         "and out of them; 'deltafs-mpi pool' is a server. POINT is its mount point.",
                                 .sub = subs};
