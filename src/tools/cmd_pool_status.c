/* deltafs pool status: what the servers of a pool have, and do. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <deltafs/deltafs_pool.h>
#include "tools/cmd.h"
#include "tools/progress.h"

struct status_options {
    int is_json;
};

#define INTERVAL_NS 200000000 /* over which operations are counted */

/* Ask all servers. */
static int ask(deltafs_pool *pool, struct deltafs_pool_status *out)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < deltafs_pool_servers(pool) && status == DELTAFS_OK; i++) {
        out[i].struct_size = sizeof out[i];
        status = deltafs_pool_status(pool, i, &out[i]);
    }
    return status;
}

static void print_text(const struct deltafs_pool_status *s, uint32_t n, const double *rate)
{
    struct deltafs_pool_status all = {.files = 0};
    double total = 0;

    for (uint32_t i = 0; i < n; i++) {
        text_say("server %u on %s: %" PRIu64 " files, %" PRIu64 " folders, %" PRIu64 " bytes, %" PRIu64
                 " bytes free, %" PRIu64 " clients, %.0f operations per second",
                 i, s[i].node, s[i].files, s[i].folders, s[i].bytes, s[i].room, s[i].clients, rate[i]);
        all.files += s[i].files;
        all.folders += s[i].folders;
        all.bytes += s[i].bytes;
        total += rate[i];
    }
    text_say("all: %u server%s, %" PRIu64 " files, %" PRIu64 " folders, %" PRIu64 " bytes, %.0f operations per second",
             n, text_plural(n), all.files, all.folders, all.bytes, total);
}

static void print_json(const struct deltafs_pool_status *s, uint32_t n, const double *rate)
{
    printf("{\"servers\": [");
    for (uint32_t i = 0; i < n; i++)
        printf("%s{\"node\": \"%s\", \"files\": %" PRIu64 ", \"folders\": %" PRIu64 ", \"bytes\": %" PRIu64
               ", \"free\": %" PRIu64 ", \"clients\": %" PRIu64 ", \"operations\": %" PRIu64 ", \"rate\": %.0f}",
               i > 0 ? ", " : "", s[i].node, s[i].files, s[i].folders, s[i].bytes, s[i].room, s[i].clients,
               s[i].operations, rate[i]);
    printf("]}\n");
}

static int status_print(deltafs_pool *pool, int is_json)
{
    const struct timespec interval = {.tv_nsec = INTERVAL_NS};
    uint32_t n = deltafs_pool_servers(pool);
    struct deltafs_pool_status *s = calloc(2 * (size_t)n, sizeof *s);
    double *rate = calloc(n, sizeof *rate), start = progress_now();

    if (!s || !rate) {
        free(s);
        free(rate);
        return text_fail(EXIT_TROUBLE, "status: no memory");
    }
    int status = ask(pool, s + n);
    nanosleep(&interval, NULL);
    double seconds = progress_now() - start;
    if (status == DELTAFS_OK)
        status = ask(pool, s);
    /* Not the operation that asks. */
    for (uint32_t i = 0; i < n && status == DELTAFS_OK; i++)
        rate[i] = (double)(s[i].operations - s[n + i].operations - 1) / seconds;
    if (status == DELTAFS_OK)
        (is_json ? print_json : print_text)(s, n, rate);
    free(s);
    free(rate);
    return text_of_call(status);
}

static int status_run(const struct command_call *c)
{
    const struct status_options *o = c->values;
    deltafs_pool *pool = NULL;
    int status = deltafs_pool_open(c->operand[0], &pool);

    if (status != DELTAFS_OK)
        return text_fail(text_exit_code(status), "%s", deltafs_errmsg(NULL));
    int code = status_print(pool, o->is_json);
    deltafs_pool_close(pool);
    return code;
}

static const struct command_option status_options[] = {
    {"json", 0, NULL, "for programs", NULL, offsetof(struct status_options, is_json)}, {0}};

const struct command cmd_pool_status = {.name = "status",
                                        .usage = "POINT [OPTION...]",
                                        .text = "Print the nodes, files, bytes and operations per second of a pool.",
                                        .missing = "POINT must be given",
                                        .least = 1,
                                        .most = 1,
                                        .size = sizeof(struct status_options),
                                        .option = status_options,
                                        .run = status_run};
