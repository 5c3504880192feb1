/* One process and very many small files: how long a namespace takes to list a folder, to store files and to read them,
 * beside file systems that do the same. A program like any other: only the public API. All times are those of a new
 * process, with opening and closing the namespace. "warm": all was read before; "cold": the system's caches were
 * dropped, which takes root. What is created is committed (ours), or not even written by the system (theirs), if not
 * said otherwise. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_namespace.h>
#include "bench_help.h"
#include "bench_mpi.h"
#include "bench_table.h"

#define MEMORY    "64M"
#define MEMORY_MB 64
#define FILE_SIZE 1024
#define IN_FOLDER 100000 /* files of the source, which are copied into folder after folder */
#define TENTH     10

static struct {
    int entries, files, runs;
    const char *json, *xfs, *name, *source;
} set = {.entries = 10000000, .files = 1000000, .runs = 3, .name = "ext4", .source = "/dev/shm"};

static char source[256], ours[256], theirs[256];
static size_t folders; /* of files */

/* What a measured process does. */
struct task {
    const char *root; /* a namespace, or a folder of a file system */
    const char *folder;
    size_t n;
    int is_ours, is_synced;
    int has_stat; /* a list: get the attributes, too; ours has them anyway */
};

enum place { WARM, COLD };

/* ---- Ours ---- */

static void must(int status)
{
    if (status != DELTAFS_OK)
        bench_die("namespace: %s", deltafs_errmsg(NULL));
}

static deltafs_namespace *open_ns(const char *path, int flags)
{
    deltafs_options *o;
    deltafs_namespace *ns;

    must(deltafs_options_create(&o));
    must(deltafs_options_set(o, "memory", MEMORY));
    must(deltafs_namespace_open(path, flags, o, &ns));
    deltafs_options_destroy(o);
    return ns;
}

static void fill_ours(const struct task *t)
{
    deltafs_namespace *ns = open_ns(t->root, O_RDWR | O_CREAT);
    char path[256];

    must(deltafs_namespace_mkdir(ns, t->folder, 0755));
    for (size_t i = 0; i < t->n; i++)
        must(deltafs_namespace_create(ns, bench_text(path, "%s/file%zu", t->folder, i), 0644, 0));
    must(deltafs_namespace_close(ns));
}

static void list_ours(const struct task *t)
{
    deltafs_namespace *ns = open_ns(t->root, O_RDONLY);
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *list;
    size_t n = 0;

    must(deltafs_namespace_list_open(ns, t->folder, &list));
    for (must(deltafs_namespace_list_next(list, &entry)); entry; n++)
        must(deltafs_namespace_list_next(list, &entry));
    if (n != t->n)
        bench_die("%s: %zu of %zu entries are listed", t->root, n, t->n);
    must(deltafs_namespace_list_close(list));
    must(deltafs_namespace_close(ns));
}

static void store_ours(deltafs_namespace *ns, const char *path, const uint8_t *bytes)
{
    deltafs_namespace_file *f;

    must(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &f));
    must(deltafs_namespace_file_write(f, 0, bytes, FILE_SIZE));
    must(deltafs_namespace_file_close(f));
}

static void read_ours(deltafs_namespace *ns, const char *path)
{
    uint8_t bytes[FILE_SIZE + 1];
    deltafs_namespace_file *f;
    size_t got;

    must(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f));
    must(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got));
    must(deltafs_namespace_file_close(f));
    if (got != FILE_SIZE)
        bench_die("%s: %zu bytes are read", path, got);
}

static size_t read_folder_ours(deltafs_namespace *ns, const char *folder)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *list;
    char path[256];
    size_t n = 0;

    must(deltafs_namespace_list_open(ns, folder, &list));
    for (must(deltafs_namespace_list_next(list, &entry)); entry; n++) {
        read_ours(ns, bench_text(path, "%s/%s", folder, entry->name));
        must(deltafs_namespace_list_next(list, &entry));
    }
    must(deltafs_namespace_list_close(list));
    return n;
}

/* ---- A file system ---- */

static void must_system(int is_done, const char *what)
{
    if (!is_done)
        bench_die("%s: %s", what, strerror(errno));
}

static void fill_theirs(const struct task *t)
{
    char path[256];

    must_system(mkdir(t->root, 0755) == 0 || errno == EEXIST, t->root);
    must_system(mkdir(bench_text(path, "%s%s", t->root, t->folder), 0755) == 0, path);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    must_system(folder >= 0, path);
    for (size_t i = 0; i < t->n; i++) {
        int fd = openat(folder, bench_text(path, "file%zu", i), O_WRONLY | O_CREAT, 0644);
        must_system(fd >= 0, path);
        close(fd);
    }
    close(folder);
}

static DIR *open_folder(char path[static 256], const struct task *t, const char *folder)
{
    DIR *d = opendir(bench_text(path, "%s%s", t->root, folder));

    must_system(d != NULL, path);
    return d;
}

static const char *next_entry(DIR *d)
{
    const struct dirent *e;

    do
        e = readdir(d);
    while (e && e->d_name[0] == '.');
    return e ? e->d_name : NULL;
}

static void list_theirs(const struct task *t)
{
    char path[256];
    DIR *d = open_folder(path, t, t->folder);
    const char *name;
    struct stat st;
    size_t n = 0;

    for (; (name = next_entry(d)) != NULL; n++)
        if (t->has_stat)
            must_system(fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0, name);
    if (n != t->n)
        bench_die("%s: %zu of %zu entries are listed", path, n, t->n);
    closedir(d);
}

static void store_theirs(const char *path, const uint8_t *bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    must_system(fd >= 0 && write(fd, bytes, FILE_SIZE) == FILE_SIZE, path);
    must_system(close(fd) == 0, path);
}

static void read_theirs(const char *path)
{
    uint8_t bytes[FILE_SIZE + 1];
    int fd = open(path, O_RDONLY);

    must_system(fd >= 0 && read(fd, bytes, sizeof bytes) == FILE_SIZE, path);
    close(fd);
}

static size_t read_folder_theirs(const struct task *t, const char *folder)
{
    char below[256], path[256];
    DIR *d = open_folder(below, t, folder);
    const char *name;
    size_t n = 0;

    for (; (name = next_entry(d)) != NULL; n++)
        read_theirs(bench_text(path, "%s/%s", below, name));
    closedir(d);
    return n;
}

/* ---- What is measured ---- */

static void fill_body(const void *arg, struct outcome *out)
{
    const struct task *t = arg;

    (void)out;
    if (t->is_ours)
        fill_ours(t);
    else
        fill_theirs(t);
}

static void list_body(const void *arg, struct outcome *out)
{
    const struct task *t = arg;
    struct meter meter;

    meter_start(&meter);
    if (t->is_ours)
        list_ours(t);
    else
        list_theirs(t);
    meter_stop(&meter, out);
}

/* The first files of the source, as many as fill a folder. */
static void copy_folder(const struct task *t, deltafs_namespace *ns, const char *folder, size_t n)
{
    char from[256], to[256];
    uint8_t bytes[FILE_SIZE];

    if (ns)
        must(deltafs_namespace_mkdir(ns, folder, 0755));
    else
        must_system(mkdir(bench_text(to, "%s%s", t->root, folder), 0755) == 0, to);
    for (size_t i = 0; i < n; i++) {
        int fd = open(bench_text(from, "%s/file%zu", source, i), O_RDONLY);
        must_system(fd >= 0 && read(fd, bytes, sizeof bytes) == FILE_SIZE, from);
        close(fd);
        if (ns)
            store_ours(ns, bench_text(to, "%s/file%zu", folder, i), bytes);
        else
            store_theirs(bench_text(to, "%s%s/file%zu", t->root, folder, i), bytes);
    }
}

static void copy_body(const void *arg, struct outcome *out)
{
    const struct task *t = arg;
    deltafs_namespace *ns = NULL;
    struct meter meter;
    char folder[256];

    meter_start(&meter);
    if (t->is_ours)
        ns = open_ns(t->root, O_RDWR | O_CREAT);
    else
        must_system(mkdir(t->root, 0755) == 0, t->root);
    for (size_t i = 0; i < folders; i++)
        copy_folder(t, ns, bench_text(folder, "/folder%zu", i), t->n / folders);
    must(deltafs_namespace_close(ns));
    if (t->is_synced)
        tree_sync_system(t->root);
    meter_stop(&meter, out);
}

static void read_body(const void *arg, struct outcome *out)
{
    const struct task *t = arg;
    deltafs_namespace *ns = NULL;
    struct meter meter;
    char folder[256];
    size_t n = 0;

    meter_start(&meter);
    if (t->is_ours)
        ns = open_ns(t->root, O_RDONLY);
    for (size_t i = 0; i < folders; i++) {
        bench_text(folder, "/folder%zu", i);
        n += ns ? read_folder_ours(ns, folder) : read_folder_theirs(t, folder);
    }
    must(deltafs_namespace_close(ns));
    meter_stop(&meter, out);
    if (n != t->n)
        bench_die("%s: %zu of %zu files are read", t->root, n, t->n);
}

/* ---- Runs ---- */

/* Times of one item, in us. */
struct times {
    double wall[RUNS_MAX], cpu[RUNS_MAX], memory[RUNS_MAX];
};

static void run_one(const struct task *t, const char *what, void (*body)(const void *, struct outcome *), int i,
                    struct times *to)
{
    struct outcome o;

    run_process(what, body, t, &o);
    to->wall[i] = 1e6 * o.wall / (double)t->n;
    to->cpu[i] = 1e6 * (o.user + o.sys) / (double)t->n;
    to->memory[i] = o.memory / (1 << 20);
}

/* Whether it was possible. */
static int drop_caches(void)
{
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

    sync();
    int is_done = fd >= 0 && write(fd, "3", 1) == 1;
    if (fd >= 0)
        close(fd);
    return is_done;
}

static int make_ready(const struct task *t, void (*body)(const void *, struct outcome *), enum place from)
{
    struct times ignored;

    if (from == COLD)
        return drop_caches();
    run_one(t, "a first run", body, 0, &ignored);
    return 1;
}

/* Every run of all sides, one after the other. Returns whether they could be measured. */
static int run_all(const struct task *t, size_t sides, const char *what, void (*body)(const void *, struct outcome *),
                   enum place from, struct times *to)
{
    bench_say("%s, %s", what, from == COLD ? "cold" : "warm");
    for (int i = 0; i < set.runs; i++)
        for (size_t k = 0; k < sides; k++) {
            if ((from == COLD || i == 0) && !make_ready(&t[k], body, from))
                return 0;
            run_one(&t[k], what, body, i, &to[k]);
        }
    return 1;
}

static struct spread spread(const double *values)
{
    return spread_of(values, (size_t)set.runs);
}

static void time_rows(struct table *t, const char *what, const struct times *our, const char *peer,
                      const struct times *other, double ratio)
{
    const struct target target = {BY_MEDIAN, ratio}, none = {0};
    char label[256];

    table_row(t, bench_text(label, "%s, time", what), spread(our->wall), peer, spread(other->wall), target);
    table_row(t, bench_text(label, "%s, processor", what), spread(our->cpu), peer, spread(other->cpu), none);
}

static void compact(const char *path)
{
    bench_say("compacting");
    must(deltafs_namespace_compact(path, NULL));
}

static void peer_rows(struct table *t, const char *label, const struct times *times, size_t sides)
{
    for (size_t k = 1; k < sides; k++)
        time_rows(t, label, &times[0], k == 1 ? set.name : "XFS", &times[k], 1);
}

static void list_rows(struct table *t, const struct task *task, size_t sides, const char *how)
{
    struct task with_stat[3];
    struct times times[3];
    char label[256];

    for (enum place from = WARM; from <= COLD; from++) {
        if (!run_all(task, sides, "listing a folder", list_body, from, times)) {
            printf("cold: not measured, for dropping caches takes root\n");
            continue;
        }
        peer_rows(t, bench_text(label, "%s, %s", how, from == COLD ? "cold" : "warm"), times, sides);
    }
    for (size_t k = 0; k < sides; k++) {
        with_stat[k] = task[k];
        with_stat[k].has_stat = 1;
    }
    run_all(with_stat, sides, "listing a folder with attributes", list_body, WARM, times);
    peer_rows(t, bench_text(label, "%s, and stat, warm", how), times, sides);
}

static void memory_rows(struct table *t, const struct task *task)
{
    const struct target same = {BY_MEDIAN, 1.1}, bound = {BY_WORST, 1};
    struct task tenth = *task;
    struct times times[2];

    tenth.folder = "/tenth";
    tenth.n = task->n / TENTH;
    run_process("creating entries", fill_body, &tenth, &(struct outcome){0});
    run_all((struct task[]){*task, tenth}, 2, "memory of a list", list_body, WARM, times);
    table_row(t, "a list", spread(times[0].memory), "option memory", spread_exact(MEMORY_MB), bound);
    table_row(t, "a list", spread(times[0].memory), "a tenth of the entries", spread(times[1].memory), same);
}

static void measure_lists(struct table *t)
{
    const size_t n = (size_t)set.entries, sides = set.xfs ? 3 : 2;
    const struct task task[] = {{.root = ours, .folder = "/entries", .n = n, .is_ours = 1},
                                {.root = theirs, .folder = "/entries", .n = n},
                                {.root = set.xfs, .folder = "/entries", .n = n}};
    char title[256], count[16];

    for (size_t k = 0; k < sides; k++) {
        bench_say("creating %s entries, %zu of %zu", bench_count(count, n), k + 1, sides);
        run_process("creating entries", fill_body, &task[k], &(struct outcome){0});
    }
    table_begin(t, bench_text(title, "readdir of a folder with %s entries", count), "us per entry", LESS);
    list_rows(t, task, sides, "as committed");
    compact(ours);
    list_rows(t, task, sides, "compacted");
    if (!set.xfs)
        printf("XFS: not measured\n");
    table_begin(t, bench_text(title, "memory for %s entries", count), "MiB", LESS);
    memory_rows(t, task);
    tree_remove(ours);
    tree_remove(theirs);
}

static void make_source(size_t n)
{
    uint8_t bytes[FILE_SIZE];
    uint64_t state = 1;
    char path[256];

    must_system(mkdir(source, 0755) == 0, source);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof bytes; k += 8)
            memcpy(bytes + k, &(uint64_t){random_next(&state)}, 8);
        store_theirs(bench_text(path, "%s/file%zu", source, i), bytes);
    }
}

static void measure_copies(struct table *t, const struct task *task)
{
    struct times our, their, synced;
    struct task with_sync = task[1];

    with_sync.is_synced = 1;
    for (int i = 0; i < set.runs; i++) {
        tree_remove(ours);
        tree_remove(theirs);
        tree_sync_system(set.source);
        bench_say("files into a file system");
        run_one(&with_sync, "copying in", copy_body, i, &synced);
        tree_remove(theirs);
        run_one(&task[1], "copying in", copy_body, i, &their);
        tree_sync_system(theirs);
        bench_say("files into a namespace");
        run_one(&task[0], "copying in", copy_body, i, &our);
    }
    time_rows(t, "in", &our, set.name, &their, 0.2);
    char peer[256];
    time_rows(t, "in", &our, bench_text(peer, "%s, synced", set.name), &synced, 0.2);
}

static void measure_reads(struct table *t, const struct task *task, const char *how)
{
    struct times times[2];
    char label[256];

    for (enum place from = WARM; from <= COLD; from++) {
        if (!run_all(task, 2, "reading files", read_body, from, times)) {
            printf("cold: not measured, for dropping caches takes root\n");
            continue;
        }
        bench_text(label, "out, %s, %s", how, from == COLD ? "cold" : "warm");
        time_rows(t, label, &times[0], set.name, &times[1], 0.2);
    }
}

static void measure_files(struct table *t)
{
    const struct target bound = {BY_WORST, 1};
    folders = ((size_t)set.files + IN_FOLDER - 1) / IN_FOLDER;
    size_t n = (size_t)set.files / folders * folders;
    const struct task task[] = {{.root = ours, .n = n, .is_ours = 1}, {.root = theirs, .n = n}};
    char title[256], count[16];

    make_source(n / folders);
    table_begin(t, bench_text(title, "%s files of 1 KiB", bench_count(count, n)), "us per file", LESS);
    measure_copies(t, task);
    measure_reads(t, task, "as committed");
    double stored = (double)tree_bytes(ours) / ((double)n * FILE_SIZE);
    compact(ours);
    measure_reads(t, task, "compacted");
    table_begin(t, "what they take", "bytes stored per byte", LESS);
    table_row(t, "files of 1 KiB", spread_exact(stored), "bound", spread_exact(1.1), bound);
    tree_remove(source);
    tree_remove(ours);
    tree_remove(theirs);
}

int main(int argc, char **argv)
{
    static const struct bench_option options[] = {{"runs", .number = &set.runs},   {"entries", .number = &set.entries},
                                                  {"files", .number = &set.files}, {"json", .text = &set.json},
                                                  {"name", .text = &set.name},     {"source", .text = &set.source},
                                                  {"xfs", .text = &set.xfs},       {0}};
    static const char usage[] = "bench-namespace-files [--runs N] [--entries N] [--files N] [--json FILE] "
                                "[--name FILESYSTEM] [--source TMPFS] [--xfs FOLDER] FOLDER";
    char **operands = bench_options(argc, argv, options, 1, &set.runs, usage);

    if (set.entries < 0 || set.files < 0)
        bench_die("usage: %s", usage);
    bench_text(ours, "%s/namespace", operands[0]);
    bench_text(theirs, "%s/files", operands[0]);
    bench_text(source, "%s/bench-namespace.%ld", set.source, (long)getpid());
    struct table *t = table_create();
    if (set.entries >= TENTH)
        measure_lists(t);
    if (set.files > 0)
        measure_files(t);
    table_summary(t);
    if (set.json)
        table_write_json(t, set.json);
    table_destroy(t);
    return 0;
}
