/* The machine's own limits, and how near our ingest and our queries come to them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/crc32c.h"
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_query.h"
#include "bench_sections.h"

#define MEMORY_SIZE (64u << 20) /* beyond the caches, as a dump is */
#define FILE_SIZE   (256u << 20)
#define WRITE_SIZE  (1u << 20)
#define PAGE        4096u
#define PREADS      20000
#define EPOCHS      5
#define QUERIES     300

/* A limit: a rate in bytes a second, or for a pread its seconds. */
struct limit {
    const char *name;
    double (*measure)(uint8_t *from, uint8_t *to, const char *path);
};

static double rate_memcpy(uint8_t *from, uint8_t *to, const char *path)
{
    double start = bench_now();

    (void)path;
    memcpy(to, from, MEMORY_SIZE);
    return MEMORY_SIZE / (bench_now() - start);
}

static double rate_xxh3(uint8_t *from, uint8_t *to, const char *path)
{
    double start = bench_now();

    (void)path;
    uint64_t hash = XXH3_64bits(from, MEMORY_SIZE);
    memcpy(to, &hash, sizeof hash);
    return MEMORY_SIZE / (bench_now() - start);
}

static double rate_crc32c(uint8_t *from, uint8_t *to, const char *path)
{
    double start = bench_now();

    (void)path;
    uint32_t crc = crc32c(0, from, MEMORY_SIZE);
    memcpy(to, &crc, sizeof crc);
    return MEMORY_SIZE / (bench_now() - start);
}

static double rate_write(const uint8_t *from, const char *path, int flags)
{
    double start = bench_now();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0666);

    if (fd < 0)
        bench_die("create %s: %s", path, strerror(errno));
    for (size_t at = 0; at < FILE_SIZE; at += WRITE_SIZE)
        if (write(fd, from + at % MEMORY_SIZE, WRITE_SIZE) != (ssize_t)WRITE_SIZE)
            bench_die("write %s: %s", path, strerror(errno));
    if (fdatasync(fd) != 0)
        bench_die("sync %s: %s", path, strerror(errno));
    close(fd);
    return FILE_SIZE / (bench_now() - start);
}

static double rate_write_cached(uint8_t *from, uint8_t *to, const char *path)
{
    (void)to;
    return rate_write(from, path, 0);
}

static double rate_write_direct(uint8_t *from, uint8_t *to, const char *path)
{
    (void)to;
    return rate_write(from, path, O_DIRECT);
}

/* Of the file that the writes before have left. */
static double seconds_pread(uint8_t *from, uint8_t *to, const char *path)
{
    uint64_t random = 99;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    (void)from;
    if (fd < 0)
        bench_die("open %s: %s", path, strerror(errno));
    for (size_t at = 0; at < FILE_SIZE; at += WRITE_SIZE)
        if (pread(fd, to, WRITE_SIZE, (off_t)at) != (ssize_t)WRITE_SIZE)
            bench_die("read %s: %s", path, strerror(errno));
    double start = bench_now();
    for (int i = 0; i < PREADS; i++)
        if (pread(fd, to, PAGE, (off_t)(random_below(&random, FILE_SIZE / PAGE) * PAGE)) != PAGE)
            bench_die("read %s: %s", path, strerror(errno));
    double took = bench_now() - start;
    close(fd);
    return took / PREADS;
}

struct limit_run {
    const struct bench *bench;
    const struct limit *limit;
};

static void limit_body(const void *arg, struct outcome *out)
{
    const struct limit_run *r = arg;
    uint8_t *from = bench_alloc(MEMORY_SIZE), *to = bench_alloc(MEMORY_SIZE);
    char path[256];

    memset(from, 1, MEMORY_SIZE);
    memset(to, 1, MEMORY_SIZE);
    out->sample[0] = r->limit->measure(from, to, bench_text(path, "%s/limit", r->bench->scratch));
}

static double limit_measure(const struct bench *b, const struct limit *limit)
{
    struct limit_run r = {b, limit};
    struct outcome out;

    tree_sync_system(b->scratch);
    run_process(limit->name, limit_body, &r, &out);
    return out.sample[0];
}

enum { MEMCPY, XXH3, CRC32C, WRITE, DIRECT, PREAD, LIMITS };

static const struct limit limits[LIMITS] = {
    [MEMCPY] = {"memcpy", rate_memcpy},
    [XXH3] = {"xxh3", rate_xxh3},
    [CRC32C] = {"crc32c", rate_crc32c},
    [WRITE] = {"1 MiB writes and sync", rate_write_cached},
    [DIRECT] = {"1 MiB O_DIRECT writes", rate_write_direct},
    [PREAD] = {"4 KiB pread, cached", seconds_pread},
};

void section_machine(const struct bench *b, struct table *t)
{
    double cpu[RUNS_MAX], wall[RUNS_MAX], value[LIMITS][RUNS_MAX];
    char path[256], label[256];
    struct job job = {.bench = b, .memory = b->memory};
    struct dataset data;
    struct probes probes;
    struct outcome out;
    struct asker asker;

    data_make(&data, ID_DENSE, EPOCHS, b->is_quick ? 500000 : 2000000, 40);
    bench_say("machine: its limits, beside %s", data.name);
    job.data = &data;
    job.path = bench_text(path, "%s/machine", b->scratch);
    asker_init(&asker, &job, &engine_ours, 0, 0, QUERIES);
    probes_make(&probes, &data, b->runs * 2 * QUERIES);
    for (unsigned run = 0; run < b->runs; run++) {
        write_once(&engine_ours, &job, &out);
        cpu[run] = (double)data_raw(&data) / (out.user + out.sys) / 1e6;
        wall[run] = (double)data_raw(&data) / out.wall / 1e6;
        asker_run_warm(&asker, &probes, run);
        for (int i = 0; i < LIMITS; i++)
            if (i != DIRECT || b->has_direct)
                value[i][run] = limit_measure(b, &limits[i]) * (i == PREAD ? 1e9 : 1e-6);
    }
    table_begin(t, "machine: ingest, raw bytes a processor second", "MB/s", MORE);
    for (int i = MEMCPY; i <= CRC32C; i++)
        table_row(t, data.name, spread_of(cpu, b->runs), limits[i].name, spread_of(value[i], b->runs),
                  (struct target){0});
    table_begin(t, "machine: ingest, raw bytes a second", "MB/s", MORE);
    for (int i = WRITE; i <= (b->has_direct ? DIRECT : WRITE); i++)
        table_row(t, data.name, spread_of(wall, b->runs), limits[i].name, spread_of(value[i], b->runs),
                  (struct target){0});
    struct spread warm = series_percentile(&asker.warm, 0.5);
    table_begin(t, "machine: warm trajectory", "ns", LESS);
    table_row(t, bench_text(label, "%s, p50", data.name),
              (struct spread){warm.median * 1e9, warm.low * 1e9, warm.high * 1e9}, limits[PREAD].name,
              spread_of(value[PREAD], b->runs), (struct target){0});
    asker_fini(&asker);
    probes_free(&probes);
    data_free(&data);
    tree_remove(path);
    unlink(bench_text(path, "%s/limit", b->scratch));
}
