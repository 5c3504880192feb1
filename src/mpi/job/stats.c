#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mpi/job/stats.h"

/* The numbers, in the order of their printing: */
enum { VALUE_RECORDS, VALUE_WRITES, VALUE_WRITTEN, VALUE_LIMIT, VALUE_PEAK, VALUE_SHUFFLE, VALUE_HOPS };
enum { HOP_MESSAGES, HOP_BYTES, HOP_RECORDS, HOP_VALUES };
enum { STALL_COUNT, STALL_NS, STALL_VALUES };

#define VALUE_STALLS (VALUE_HOPS + STAGES * HOP_VALUES)
#define VALUES       (VALUE_STALLS + STALLS * STALL_VALUES)
#define NS           1e9

int stats_open(const char *file, int *fd, struct error *e)
{
    *fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (*fd >= 0)
        return DELTAFS_OK;
    return error_system(e, errno, "open for statistics (option stats)", file);
}

static void stats_gather(const struct stats *s, uint64_t v[static VALUES])
{
    v[VALUE_RECORDS] = s->records;
    v[VALUE_WRITES] = s->io.writes;
    v[VALUE_WRITTEN] = s->io.bytes_written;
    v[VALUE_LIMIT] = s->memory.limit;
    v[VALUE_PEAK] = s->memory.peak;
    v[VALUE_SHUFFLE] = s->shuffle.memory;
    for (int i = 0; i < STAGES; i++) {
        uint64_t *hop = v + VALUE_HOPS + i * HOP_VALUES;
        hop[HOP_MESSAGES] = s->shuffle.messages[i];
        hop[HOP_BYTES] = s->shuffle.bytes[i];
        hop[HOP_RECORDS] = s->shuffle.records[i];
    }
    for (int i = 0; i < STALLS; i++) {
        uint64_t *stall = v + VALUE_STALLS + i * STALL_VALUES;
        stall[STALL_COUNT] = s->shuffle.stalls[i];
        stall[STALL_NS] = s->shuffle.stall_ns[i];
    }
}

struct spread {
    uint64_t low[VALUES], high[VALUES], sum[VALUES];
    int ranks;
};

static void print_value(FILE *f, const struct spread *all, int value, const char *name, double unit)
{
    double mean = (double)all->sum[value] / all->ranks / unit;

    if (unit > 1)
        fprintf(f, "\"%s\": {\"min\": %.6f, \"mean\": %.6f, \"max\": %.6f}", name, (double)all->low[value] / unit, mean,
                (double)all->high[value] / unit);
    else
        fprintf(f, "\"%s\": {\"min\": %" PRIu64 ", \"mean\": %.1f, \"max\": %" PRIu64 "}", name, all->low[value], mean,
                all->high[value]);
}

static void print_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 32)
            fprintf(f, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, f);
    fputc('"', f);
}

static void print_hops(FILE *f, const struct spread *all, const struct plan *p)
{
    static const char *const names[STAGES] = {"out", "via", "mid", "net", "in"};
    static const char *const values[HOP_VALUES] = {"messages", "bytes", "records"};
    const char *between = "";

    fputs(", \"hops\": {", f);
    for (int i = 0; i < STAGES && p; i++) {
        if (!router_has_stage(&p->router, (enum router_stage)i))
            continue;
        fprintf(f, "%s\"%s\": {", between, names[i]);
        for (int k = 0; k < HOP_VALUES; k++) {
            fputs(k > 0 ? ", " : "", f);
            print_value(f, all, VALUE_HOPS + i * HOP_VALUES + k, values[k], 1);
        }
        fputc('}', f);
        between = ", ";
    }
    fputc('}', f);
}

static void print_stalls(FILE *f, const struct spread *all)
{
    static const char *const names[STALLS] = {[STALL_RING] = "ring",
                                              [STALL_CREDIT] = "credit",
                                              [STALL_SEND] = "send",
                                              [STALL_STORAGE] = "storage",
                                              [STALL_END] = "end"};

    fputs(", \"stalls\": {", f);
    for (int i = 0; i < STALLS; i++) {
        fprintf(f, "%s\"%s\": {", i > 0 ? ", " : "", names[i]);
        print_value(f, all, VALUE_STALLS + i * STALL_VALUES + STALL_COUNT, "count", 1);
        fputs(", ", f);
        print_value(f, all, VALUE_STALLS + i * STALL_VALUES + STALL_NS, "seconds", NS);
        fputc('}', f);
    }
    fputc('}', f);
}

static void print_stats(FILE *f, const struct spread *all, const struct stats *s)
{
    static const char *const names[VALUE_HOPS] = {"records",      "writes",      "bytes_written",
                                                  "memory_limit", "memory_peak", "memory_shuffle"};
    const struct plan *p = s->plan;

    fputs("{\"directory\": ", f);
    print_text(f, s->path);
    fprintf(f, ", \"ranks\": %d, \"nodes\": %" PRIu32 ", \"route\": \"%s\", \"epochs\": %" PRIu64, all->ranks,
            p ? p->router.layout.nodes : 1, p ? plan_route_name(p->router.kind) : "none", s->epochs);
    fprintf(f, ", \"message_bytes\": %" PRIu32 ", \"chunk_bytes\": %" PRIu32, p ? p->message : 0, p ? p->chunk : 0);
    for (int i = 0; i < VALUE_HOPS; i++) {
        fputs(", ", f);
        print_value(f, all, i, names[i], 1);
    }
    print_hops(f, all, p);
    print_stalls(f, all);
    fputs("}\n", f);
}

static int stats_put(int fd, const char *path, const char *line, size_t n, struct error *e)
{
    while (n > 0) {
        ssize_t k = write(fd, line, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return error_system(e, errno, "write its statistics (option stats; the directory itself is complete)",
                                path);
        line += k;
        n -= (size_t)k;
    }
    return DELTAFS_OK;
}

/* Rank 0. */
static int stats_add(int fd, const struct spread *all, const struct stats *s, struct error *e)
{
    char *line = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&line, &n);
    int status;

    if (!f)
        return error_no_memory(e, 0, "statistics");
    print_stats(f, all, s);
    status = fclose(f) == 0 ? stats_put(fd, s->path, line, n, e) : error_no_memory(e, n, "statistics");
    free(line);
    return status;
}

int stats_write(const struct agree *a, int fd, const struct stats *s, struct error *e)
{
    struct spread all = {.ranks = a->ranks};
    struct error own = {0};

    stats_gather(s, all.sum);
    memcpy(all.low, all.sum, sizeof all.low);
    memcpy(all.high, all.sum, sizeof all.high);
    int status = agree_reduce(a, all.sum, VALUES, MPI_SUM, e);
    if (status == DELTAFS_OK)
        status = agree_reduce(a, all.low, VALUES, MPI_MIN, e);
    if (status == DELTAFS_OK)
        status = agree_reduce(a, all.high, VALUES, MPI_MAX, e);
    if (status == DELTAFS_OK && a->rank == 0)
        own.status = stats_add(fd, &all, s, &own);
    if (status != DELTAFS_OK || agree_status(a, &own) == DELTAFS_OK)
        return status;
    *e = own;
    return own.status;
}
