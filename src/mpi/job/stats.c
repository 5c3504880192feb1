#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/compose.h"
#include "mpi/job/job.h"

/* What one rank counts: 64-bit numbers only. */
struct numbers {
    uint64_t records, writes, bytes_written, memory_limit, memory_peak;
    struct shuffle_stat shuffle;
};

#define VALUES     (sizeof(struct numbers) / sizeof(uint64_t))
#define AT(number) (offsetof(struct numbers, number) / sizeof(uint64_t))
#define NS         1e9

struct spread {
    uint64_t sum[VALUES], low[VALUES], high[VALUES];
    int ranks;
};

int stats_open(const char *file, int *fd, struct error *e)
{
    *fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (*fd >= 0)
        return DELTAFS_OK;
    return error_system(e, errno, "open for statistics (option stats)", file);
}

static void print_value(struct compose *f, const struct spread *all, size_t at, const char *name)
{
    compose(f, "\"%s\": {\"min\": %" PRIu64 ", \"mean\": %.1f, \"max\": %" PRIu64 "}", name, all->low[at],
            (double)all->sum[at] / all->ranks, all->high[at]);
}

static void print_text(struct compose *f, const char *text)
{
    compose(f, "\"");
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 32)
            compose(f, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            compose(f, "%c", *text);
    compose(f, "\"");
}

static void print_hops(struct compose *f, const struct spread *all, const struct router *r)
{
    static const char *const names[STAGES] = {"out", "via", "mid", "net", "in"};
    const char *between = "";

    compose(f, ", \"hops\": {");
    for (size_t i = 0; i < STAGES && r; i++) {
        if (!router_has_stage(r, (enum router_stage)i))
            continue;
        compose(f, "%s\"%s\": {", between, names[i]);
        print_value(f, all, AT(shuffle.messages) + i, "messages");
        compose(f, ", ");
        print_value(f, all, AT(shuffle.bytes) + i, "bytes");
        compose(f, ", ");
        print_value(f, all, AT(shuffle.records) + i, "records");
        compose(f, "}");
        between = ", ";
    }
    compose(f, "}");
}

static void print_stalls(struct compose *f, const struct spread *all)
{
    static const char *const names[STALLS] = {[STALL_RING] = "ring",
                                              [STALL_CREDIT] = "credit",
                                              [STALL_SEND] = "send",
                                              [STALL_STORAGE] = "storage",
                                              [STALL_END] = "end"};

    compose(f, ", \"stalls\": {");
    for (size_t i = 0; i < STALLS; i++) {
        size_t at = AT(shuffle.stall_ns) + i;
        compose(f, "%s\"%s\": {", i > 0 ? ", " : "", names[i]);
        print_value(f, all, AT(shuffle.stalls) + i, "count");
        compose(f, ", \"seconds\": {\"min\": %.6f, \"mean\": %.6f, \"max\": %.6f}}", (double)all->low[at] / NS,
                (double)all->sum[at] / NS / all->ranks, (double)all->high[at] / NS);
    }
    compose(f, "}");
}

static void print_stats(struct compose *f, const struct spread *all, const struct job *j)
{
    static const struct {
        const char *name;
        size_t at;
    } numbers[] = {
        {"records", AT(records)},           {"writes", AT(writes)},           {"bytes_written", AT(bytes_written)},
        {"memory_limit", AT(memory_limit)}, {"memory_peak", AT(memory_peak)}, {"memory_shuffle", AT(shuffle.memory)}};
    const struct plan *p = j->shuffle ? shuffle_plan(j->shuffle) : NULL;

    compose(f, "{\"directory\": ");
    print_text(f, j->path);
    compose(f, ", \"ranks\": %d, \"nodes\": %" PRIu32 ", \"route\": \"%s\", \"epochs\": %" PRIu64, all->ranks,
            p ? p->router.layout.nodes : 1, p ? plan_route_name(p->router.kind) : "none", j->epochs);
    compose(f, ", \"message_bytes\": %" PRIu32 ", \"chunk_bytes\": %" PRIu32, p ? p->message : 0, p ? p->chunk : 0);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        compose(f, ", ");
        print_value(f, all, numbers[i].at, numbers[i].name);
    }
    print_hops(f, all, p ? &p->router : NULL);
    print_stalls(f, all);
    compose(f, "}\n");
}

/* Rank 0. In one write, so that lines of several jobs do not mix. */
static int stats_add(const struct spread *all, const struct job *j, struct error *e)
{
    struct compose c = {0};
    char *line = NULL;
    size_t n = 0;

    print_stats(&c, all, j);
    int status = compose_end(&c, "statistics", &line, &n, e);
    ssize_t written = status == DELTAFS_OK ? write(j->stats_fd, line, n) : 0;
    if (status == DELTAFS_OK && written != (ssize_t)n)
        status = error_system(e, written < 0 ? errno : ENOSPC,
                              "write its statistics (option stats; the directory itself is complete)", j->path);
    free(line);
    return status;
}

int stats_write(struct job *j, struct error *e)
{
    struct deltafs_memory_stat memory;
    struct deltafs_io_stat io;
    struct spread all = {.ranks = j->group.ranks};

    deltafs_private_writer_memory(j->writer, &memory);
    deltafs_private_writer_io(j->writer, &io);
    struct numbers own = {.records = j->appended,
                          .writes = io.writes,
                          .bytes_written = io.bytes_written,
                          .memory_limit = memory.limit,
                          .memory_peak = memory.peak};
    if (j->shuffle)
        shuffle_get_stat(j->shuffle, &own.shuffle);
    memcpy(all.sum, &own, sizeof own);
    memcpy(all.low, &own, sizeof own);
    memcpy(all.high, &own, sizeof own);
    if (mpi_reduce(&j->group, all.sum, VALUES, MPI_SUM, e) != DELTAFS_OK ||
        mpi_reduce(&j->group, all.low, VALUES, MPI_MIN, e) != DELTAFS_OK ||
        mpi_reduce(&j->group, all.high, VALUES, MPI_MAX, e) != DELTAFS_OK)
        return e->status;
    e->status = j->group.rank == 0 ? stats_add(&all, j, e) : DELTAFS_OK;
    return mpi_agree(&j->group, e);
}
