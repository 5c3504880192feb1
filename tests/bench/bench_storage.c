/* Dumps that wait for storage: where the device is slow, what counts is how little is written. Ours against the raw
 * dump, on a device that is the same for both: a throttled table of file operations, and on request the real device,
 * throttled by the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "bench_contest.h"
#include "bench_device.h"
#include "bench_help.h"
#include "bench_sections.h"

#define EPOCHS     2
#define REAL_SHARE 4 /* real dumps are small: on a device of a quarter of the speed they take long enough */
#define CGROUPS    "/sys/fs/cgroup/blkio"

/* A run of an engine on a slow device: `rate` of the table, or the control group of the real one. */
struct slow_run {
    const struct engine *engine;
    struct job job;
    double rate;
    const char *cgroup;
};

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bench_die("write '%s' to %s: %s", text, path, strerror(errno));
    close(fd);
}

static void slow_body(const void *arg, struct outcome *out)
{
    const struct slow_run *r = arg;
    char path[256], text[256];

    if (r->cgroup)
        write_text(bench_text(path, "%s/cgroup.procs", r->cgroup), bench_text(text, "%d", (int)getpid()));
    else
        device_install(r->rate);
    r->engine->write(&r->job, out);
    /* Bytes that went past the table would have been written for nothing. */
    double written = (double)tree_bytes(r->job.path);
    if (!r->cgroup && device_bytes() < 0.99 * written)
        bench_die("%s: the throttled device saw %.0f of %.0f bytes", r->engine->name, device_bytes(), written);
}

static void contest_slow(const struct bench *b, struct table *t, const struct dataset *d,
                         const struct engine *const engines[2], double rate, const char *cgroup, double most)
{
    double seconds[2][RUNS_MAX];
    char path[256], what[256], peer[256];
    struct slow_run run = {.job = {.bench = b, .data = d, .memory = b->memory}, .rate = rate, .cgroup = cgroup};

    run.job.path = bench_text(path, "%s/slow", b->scratch);
    for (unsigned i = 0; i < b->runs; i++) {
        for (int k = 0; k < 2; k++) {
            struct outcome out;
            run.engine = engines[k];
            tree_sync_system(b->scratch);
            run_process(bench_text(what, "writing slowly with %s", engines[k]->name), slow_body, &run, &out);
            tree_remove(path);
            seconds[k][i] = out.wall;
        }
    }
    bench_text(peer, "raw dump, %.0f MB/s", rate / 1e6);
    table_row(t, d->name, spread_of(seconds[0], b->runs), peer, spread_of(seconds[1], b->runs),
              (struct target){BY_MEDIAN, most});
}

/* The disk (not the partition) that holds `path`, as "MAJOR:MINOR"; 0 if that cannot be told. */
static int disk_of(const char *path, char out[static 256])
{
    struct stat st;
    char name[256];

    if (stat(path, &st) != 0)
        bench_die("stat %s: %s", path, strerror(errno));
    bench_text(name, "/sys/dev/block/%u:%u/partition", major(st.st_dev), minor(st.st_dev));
    int is_partition = access(name, F_OK) == 0;
    bench_text(name, "/sys/dev/block/%u:%u/%sdev", major(st.st_dev), minor(st.st_dev), is_partition ? "../" : "");
    FILE *f = fopen(name, "r");
    int found = f && fscanf(f, "%255s", out) == 1;
    if (f)
        fclose(f);
    return found;
}

/* Why the real device cannot be throttled, or NULL. */
static const char *cgroup_obstacle(const struct bench *b, char disk[static 256])
{
    if (geteuid() != 0)
        return "it needs root";
    if (access(CGROUPS "/cgroup.procs", W_OK) != 0)
        return "there is no control group blkio of version 1 in " CGROUPS;
    if (!b->has_direct || !b->is_synced)
        return "it needs O_DIRECT on both sides: a file system that supports it, and no --option sync=none";
    return disk_of(b->scratch, disk) ? NULL : "the disk of the scratch folder is not known";
}

static char cgroup[256];

/* The runs' processes, which were in it, have ended by then. */
static void cgroup_remove(void)
{
    if (rmdir(cgroup) != 0)
        fprintf(stderr, "deltafs-bench: remove the control group %s: %s\n", cgroup, strerror(errno));
}

static void section_cgroup(const struct bench *b, struct table *t, const struct dataset *d)
{
    static const struct engine *const engines[2] = {&engine_ours, &engine_raw_direct};
    char disk[256], path[256], text[256];
    const char *obstacle = cgroup_obstacle(b, disk);

    if (obstacle) {
        printf("The real device is not throttled: %s.\n", obstacle);
        return;
    }
    bench_text(cgroup, CGROUPS "/deltafs-bench.%d", (int)getpid());
    if (mkdir(cgroup, 0777) != 0)
        bench_die("make the control group %s: %s", cgroup, strerror(errno));
    if (atexit(cgroup_remove) != 0)
        bench_die("atexit fails");
    write_text(bench_text(path, "%s/blkio.throttle.write_bps_device", cgroup),
               bench_text(text, "%s %.0f", disk, b->throttle));
    bench_say("storage: the same on the real device, by the control group %s", cgroup);
    table_begin(t, "storage-bound dump: the real device, O_DIRECT", "s", LESS);
    contest_slow(b, t, d, engines, b->throttle, cgroup, 0.95);
}

void section_storage(const struct bench *b, struct table *t)
{
    static const struct engine *const engines[2] = {&engine_ours, &engine_raw};
    struct dataset data, real;

    bench_say("storage: dumps on a device of %.0f MB/s", b->throttle / 1e6);
    table_begin(t, "storage-bound dump: a throttled device", "s", LESS);
    data_make(&data, ID_DENSE, EPOCHS, b->is_quick ? 1000000 : 4000000, 40);
    contest_slow(b, t, &data, engines, b->throttle, NULL, 0.95);
    if (b->vpic && data_load_vpic(&real, b->vpic)) {
        contest_slow(b, t, &real, engines, b->throttle / REAL_SHARE, NULL, 0.75);
        data_free(&real);
    }
    if (b->is_cgroup)
        section_cgroup(b, t, &data);
    data_free(&data);
}
