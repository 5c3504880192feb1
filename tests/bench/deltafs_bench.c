/* deltafs-bench: measures the storage engine against raw dumps, LevelDB and RocksDB, side by side. See --help, and
 * scripts/bench, which builds and runs it. A missed target is reported and no failure; a wrong answer is one. */
#include "config.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>
#include <deltafs/deltafs.h>
#include "bench_help.h"
#include "bench_sections.h"

#define RUNS        5
#define RUNS_QUICK  3
#define MEMORY      (32u << 20)
#define OPTIONS_MAX 32
#define THROTTLE_MB 100
#define SPACE       6e9 /* bytes; the largest inputs are on disk twice, as raw dump and as ours */
#define SPACE_QUICK 3e9

struct arguments {
    const char *dir, *json, *tsv, *only;
};

static const struct section {
    const char *name;
    void (*run)(const struct bench *b, struct table *t);
} sections[] = {
    {"size", section_size},     {"ingest", section_ingest},       {"read", section_read},
    {"ranges", section_ranges}, {"growth", section_growth},       {"storage", section_storage},
    {"memory", section_memory}, {"namespace", section_namespace}, {"machine", section_machine},
};

#define SECTIONS (sizeof sections / sizeof sections[0])

static const char usage_text[] =
    "usage: deltafs-bench [OPTION]...\n"
    "Measure DeltaFS against raw dumps, LevelDB and RocksDB, and print the results as ratios.\n"
    "\n"
    "  --quick              fewer records and runs: some 2 minutes instead of some 12\n"
    "  --dir DIR            put all files into a new folder in DIR (default: .); needs 6 GB there (quick: 3)\n"
    "  --json FILE          write the results as one JSON array of rows\n"
    "  --tsv FILE           write them as lines: table, row, peer, ours, peer's, ratio\n"
    "  --vpic DIR           measure with the VPIC dumps eparticle.STEP.RANK of DIR, too\n"
    "  --option NAME=VALUE  set an option of DeltaFS; can be repeated\n"
    "  --throttle MB        speed of the throttled device, in MB a second (default: 100)\n"
    "  --cgroup             throttle the real device too, by a control group (needs root)\n"
    "  --only NAME,...      only these parts: ";

static void usage(void)
{
    fputs(usage_text, stdout);
    for (size_t i = 0; i < SECTIONS; i++)
        printf("%s%s", i ? " " : "", sections[i].name);
    printf("\n");
}

static _Noreturn void wrong_usage(const char *what)
{
    fprintf(stderr, "deltafs-bench: %s; see deltafs-bench --help\n", what);
    exit(2);
}

/* Whether `name` is a word of the list, whose words are separated by commas. */
static int is_in_list(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return 1;
    }
    return 0;
}

static void check_only(const char *list)
{
    size_t found = 0, words = list != NULL;

    for (const char *at = list; at && *at; at++)
        words += *at == ',';
    for (size_t i = 0; i < SECTIONS; i++)
        found += (size_t)is_in_list(list, sections[i].name);
    if (found != words)
        wrong_usage("--only takes names of parts, separated by commas");
}

static void parse_option(struct bench *b, const char *text)
{
    if (!strchr(text, '='))
        wrong_usage("--option takes NAME=VALUE");
    if (b->option_count == OPTIONS_MAX)
        wrong_usage("too many --option");
    b->options[b->option_count++] = text;
}

static void parse(int argc, char **argv, struct bench *b, struct arguments *a)
{
    static const struct option longs[] = {
        {"quick", no_argument, NULL, 'q'},
        {"dir", required_argument, NULL, 'd'},
        {"json", required_argument, NULL, 'j'},
        {"tsv", required_argument, NULL, 't'},
        {"vpic", required_argument, NULL, 'v'},
        {"option", required_argument, NULL, 'o'},
        {"cgroup", no_argument, NULL, 'c'},
        {"throttle", required_argument, NULL, 'r'},
        {"only", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };

    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'q':
            b->is_quick = 1;
            break;
        case 'd':
            a->dir = optarg;
            break;
        case 'j':
            a->json = optarg;
            break;
        case 't':
            a->tsv = optarg;
            break;
        case 'v':
            b->vpic = optarg;
            break;
        case 'o':
            parse_option(b, optarg);
            break;
        case 'c':
            b->is_cgroup = 1;
            break;
        case 'r':
            b->throttle = atof(optarg) * 1e6;
            if (b->throttle <= 0)
                wrong_usage("--throttle takes MB a second");
            break;
        case 'n':
            a->only = optarg;
            break;
        case 'h':
            usage();
            exit(0);
        default:
            wrong_usage("an argument is not valid");
        }
    }
    check_only(a->only);
    if (optind < argc)
        wrong_usage("no arguments are taken, only options");
}

/* Whether the raw dump syncs: as ours does. Checks the given options, too. */
static void settle_options(struct bench *b)
{
    const char *sync;
    deltafs_options *o = ours_options(b, b->memory, NULL);

    if (deltafs_options_get(o, "sync", &sync) != DELTAFS_OK)
        bench_die("options: %s", deltafs_errmsg(NULL));
    b->is_synced = strcmp(sync, "none") != 0;
    printf("options of DeltaFS:");
    for (size_t i = 0; deltafs_option_at(i); i++) {
        const char *name = deltafs_option_at(i)->name, *value;
        if (deltafs_options_get(o, name, &value) != DELTAFS_OK)
            bench_die("options: %s", deltafs_errmsg(NULL));
        if (*value)
            printf(" %s=%s", name, value);
    }
    printf("\n");
    deltafs_options_destroy(o);
}

/* What the names of the rows mean. */
static void say_legend(void)
{
    puts("rows: \"dense 48 B, 5 x 2M\" is 5 epochs of 2M records of 48 bytes each, the key's 8 included. All epochs\n"
         "      have the same keys, in an order of their own:\n"
         "        dense         0, 1, 2, ...\n"
         "        VPIC-like     rank << 46 | counter, of 64 ranks\n"
         "        gaps of 4096  those dense IDs that belong to one of 4096 partitions: some 4096 apart\n"
         "        real          a VPIC run's dumps (--vpic)");
}

/* Refuse a folder that is too small; a folder in memory is taken, as somebody may want just that. */
static void check_folder(const struct bench *b, const char *dir)
{
    double need = b->is_quick ? SPACE_QUICK : SPACE;
    struct statvfs space;
    struct statfs kind;

    if (statvfs(dir, &space) != 0 || statfs(dir, &kind) != 0)
        bench_die("%s: %s", dir, strerror(errno));
    double is = (double)space.f_bavail * (double)space.f_frsize;
    if (is < need)
        bench_die("%s has room for %.1f GB, and %.0f GB are needed; choose another folder with --dir", dir, is / 1e9,
                  need / 1e9);
    if (kind.f_type == TMPFS_MAGIC)
        printf("%s is in memory: figures with storage in them are those of no real disk\n", dir);
}

static int has_direct(const char *dir)
{
    char path[256];

    bench_text(path, "%s/direct", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    unlink(path);
    return fd >= 0;
}

static void say_machine(void)
{
    struct utsname name;
    char line[256] = "?", *model = "?";
    FILE *f = fopen("/proc/cpuinfo", "r");

    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            model = strchr(line, ':') + 2;
            model[strcspn(model, "\n")] = '\0';
            break;
        }
    }
    if (f)
        fclose(f);
    if (uname(&name) != 0)
        bench_die("uname: %s", strerror(errno));
    printf("deltafs-bench of DeltaFS %s\n", deltafs_version());
    printf("machine: %ld processors %s, %.1f GB of memory, %s %s\n", sysconf(_SC_NPROCESSORS_ONLN), model,
           (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9, name.sysname, name.release);
}

int main(int argc, char **argv)
{
    const char *options[OPTIONS_MAX];
    struct arguments a = {.dir = "."};
    struct bench b = {.options = options, .memory = MEMORY, .throttle = THROTTLE_MB * 1e6};

    parse(argc, argv, &b, &a);
    b.runs = b.is_quick ? RUNS_QUICK : RUNS;
    say_machine();
    settle_options(&b);
    printf("each figure: the median of %u runs [lowest..highest], each in a process of its own, engines in turns\n",
           b.runs);
    say_legend();
    check_folder(&b, a.dir);
    fflush(stdout);
    b.scratch = bench_scratch_make(a.dir);
    b.has_direct = has_direct(b.scratch);
    if (!b.has_direct)
        printf("no O_DIRECT in %s: rows with it are left out\n", a.dir);
    if (!engine_leveldb.write || !engine_rocksdb.write)
        printf("built without %s: rows with it are left out\n", engine_rocksdb.write   ? "LevelDB"
                                                                : engine_leveldb.write ? "RocksDB"
                                                                                       : "LevelDB and RocksDB");
    struct table *t = table_create();
    for (size_t i = 0; i < SECTIONS; i++)
        if (!a.only || is_in_list(a.only, sections[i].name))
            sections[i].run(&b, t);
    table_summary(t);
    if (a.json)
        table_write_json(t, a.json);
    if (a.tsv)
        table_write_tsv(t, a.tsv);
    table_destroy(t);
    return 0;
}
