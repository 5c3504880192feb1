/* minipic: a small particle simulation that dumps through DeltaFS, as an example and for tests.
 *
 *     mpirun -np 4 minipic -o particles -n 40960 --steps 500 --every 50
 *
 * Charged particles fly in a magnetic bottle (minipic_field.h): the trapped ones bounce between its ends, those in the
 * loss cone leave and are born again (minipic_push.h). The bottle is cut into slabs, one a rank, and a particle moves
 * to the rank whose slab it enters (minipic_comm.h). IDs are 0 to n - 1 and stay for ever. Every K steps, first after
 * step K, all particles are dumped (minipic_dump.h; only there is DeltaFS written to) and the slabs are cut again.
 *
 * --record-id and --record-file write one particle's dumps to a CSV file as well, without DeltaFS, to compare with what
 * DeltaFS gives back: the same 32-bit floats, printed so that they read back exactly.
 *
 * Exit codes: 0 done, 1 no memory or no record file (the job is aborted), 2 options, 3 DeltaFS.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "minipic_comm.h"
#include "minipic_dump.h"
#include "minipic_push.h"

enum { GO_ON = -1, EXIT_DONE = 0, EXIT_OPTIONS = 2, EXIT_DELTAFS = 3 };

struct settings {
    const char *output; /* NULL: no dumps */
    uint64_t particles, steps, every;
    uint64_t record_id;      /* UINT64_MAX: none */
    const char *record_file; /* NULL: none */
    int no_dump, quiet;
    deltafs_options *options;
};

struct totals {
    uint64_t migrated, dumps;
    struct push_tally tally;
    double energy_before, energy_after;
    double push_seconds, migrate_seconds, dump_seconds;
};

static const char usage[] = "usage: minipic -o DIR [options], under mpirun\n"
                            "  -o DIR              the DeltaFS directory to make\n"
                            "  --no-dump           make none (instead of -o)\n"
                            "  -n N                particles of all ranks together, 1 to 2147483647 (40960)\n"
                            "  --steps N           steps to make, 1 or more (500)\n"
                            "  --every K           dump after each K steps, 1 or more (50)\n"
                            "  --record-id ID      the particle, 0 to N - 1, whose dumps go ...\n"
                            "  --record-file FILE  ... to this CSV file as well\n"
                            "  -O NAME=VALUE       set an option of DeltaFS; may be repeated\n"
                            "  -q                  no summary\n"
                            "  -h, --help          this text\n";

/* ---- Errors ---- */

/* A bad option, which every rank sees alike: rank 0 says so. */
static int refuse(const struct comm *c, const char *fmt, ...)
{
    va_list ap;

    if (c->rank == 0) {
        fputs("minipic: ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
    }
    return EXIT_OPTIONS;
}

/* Say why a collective DeltaFS call failed, on every rank; returns `status`. */
static int explain(const struct comm *c, int status, const char *what, const deltafs_dir *dir)
{
    if (status != DELTAFS_OK)
        fprintf(stderr, "minipic: rank %d: %s: %s\n", c->rank, what, deltafs_errmsg(dir));
    return status;
}

/* The same for a local call: all ranks return the worst status of any. */
static int explain_local(const struct comm *c, int status, const char *what)
{
    int worst;

    explain(c, status, what, NULL);
    MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MIN, c->mpi);
    return worst;
}

/* ---- Options ---- */

static int read_number(const struct comm *c, const char *name, const char *text, uint64_t low, uint64_t high,
                       uint64_t *out)
{
    char *end = NULL;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < low || value > high)
        return refuse(c, "%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", name, low, high, text);
    *out = value;
    return GO_ON;
}

static int read_delta_option(const struct comm *c, deltafs_options *options, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return refuse(c, "-O takes NAME=VALUE, not '%s'; `deltafs help options` lists the names", text);
    *equals = '\0';
    if (deltafs_options_set(options, text, equals + 1) != DELTAFS_OK)
        return refuse(c, "-O %s=%s: %s", text, equals + 1, deltafs_errmsg(NULL));
    *equals = '='; /* it is argv's */
    return GO_ON;
}

/* What getopt_long did not take: a short option, of which it tells the letter, or a long one. */
static int refuse_option(const struct comm *c, int letter, char **argv)
{
    const char shown[] = {'-', (char)optopt, '\0'};
    const char *name = optopt > ' ' && optopt < 256 ? shown : argv[optind - 1];

    return refuse(c, letter == ':' ? "%s needs a value\n%s" : "no such option: %s\n%s", name, usage);
}

static int check_settings(const struct comm *c, const struct settings *set)
{
    if ((set->output != NULL) == set->no_dump)
        return refuse(c, "give either -o DIR or --no-dump");
    if ((set->record_id != UINT64_MAX) != (set->record_file != NULL))
        return refuse(c, "--record-id and --record-file go together; give both or neither");
    if (set->record_file != NULL && set->record_id >= set->particles)
        return refuse(c, "--record-id takes an ID from 0 to %" PRIu64 ", not %" PRIu64, set->particles - 1,
                      set->record_id);
    return GO_ON;
}

/* GO_ON, or the code to exit with. */
static int read_settings(const struct comm *c, int argc, char **argv, struct settings *set)
{
    enum { STEPS = 256, EVERY, RECORD_ID, RECORD_FILE };
    const struct option names[] = {
        {"no-dump", no_argument, &set->no_dump, 1},
        {"steps", required_argument, NULL, STEPS},
        {"every", required_argument, NULL, EVERY},
        {"record-id", required_argument, NULL, RECORD_ID},
        {"record-file", required_argument, NULL, RECORD_FILE},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int letter, code = GO_ON;

    opterr = 0;
    while (code == GO_ON && (letter = getopt_long(argc, argv, ":o:n:O:qh", names, NULL)) != -1) {
        if (letter == 'o')
            set->output = optarg;
        else if (letter == 'n')
            code = read_number(c, "-n", optarg, 1, INT_MAX, &set->particles);
        else if (letter == STEPS)
            code = read_number(c, "--steps", optarg, 1, INT64_MAX, &set->steps);
        else if (letter == EVERY)
            code = read_number(c, "--every", optarg, 1, INT64_MAX, &set->every);
        else if (letter == RECORD_ID)
            code = read_number(c, "--record-id", optarg, 0, INT_MAX - 1, &set->record_id);
        else if (letter == RECORD_FILE)
            set->record_file = optarg;
        else if (letter == 'O')
            code = read_delta_option(c, set->options, optarg);
        else if (letter == 'q')
            set->quiet = 1;
        else if (letter == 'h')
            return c->rank == 0 && fputs(usage, stdout) < 0 ? EXIT_FAILURE : EXIT_DONE;
        else if (letter != 0) /* 0: --no-dump, set by getopt_long itself */
            return refuse_option(c, letter, argv);
    }
    if (code == GO_ON && optind < argc)
        return refuse(c, "only options are taken, not '%s'\n%s", argv[optind], usage);
    return code == GO_ON ? check_settings(c, set) : code;
}

/* ---- The record of one particle ---- */

static FILE *record_open(const struct comm *c, const char *path)
{
    FILE *file = c->rank == 0 ? fopen(path, "w") : NULL;

    if (file != NULL)
        fputs("step,x,y,z,ux,uy,uz,mu,life\n", file);
    else if (c->rank == 0)
        comm_die("cannot create %s: %s", path, strerror(errno));
    return file;
}

/* One line, by rank 0, from whichever rank has the particle. */
static void record_write(const struct comm *c, FILE *file, const struct swarm *s, uint64_t id, uint64_t step)
{
    enum { TAG = 1 };
    struct dump_value v;
    size_t i = 0;

    while (i < s->n && s->p[i].id != id)
        i++;
    if (i < s->n)
        dump_pack(&s->p[i], &v);
    if (i < s->n && c->rank != 0)
        MPI_Send(&v, (int)sizeof v, MPI_BYTE, 0, TAG, c->mpi);
    if (i == s->n && c->rank == 0)
        MPI_Recv(&v, (int)sizeof v, MPI_BYTE, MPI_ANY_SOURCE, TAG, c->mpi, MPI_STATUS_IGNORE);
    if (c->rank == 0)
        fprintf(file, "%" PRIu64 ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%" PRIu32 "\n", step, (double)v.x, (double)v.y,
                (double)v.z, (double)v.ux, (double)v.uy, (double)v.uz, (double)v.mu, v.life);
}

static void record_close(FILE *file, const char *path)
{
    int is_bad = ferror(file);

    if (fclose(file) != 0 || is_bad)
        comm_die("cannot write %s", path);
}

/* ---- The simulation ---- */

static double swarm_energy(const struct swarm *s)
{
    double sum = 0.0;

    for (size_t i = 0; i < s->n; i++)
        sum += push_energy(&s->p[i]);
    return sum;
}

/* Each rank makes an even share of the particles, and gives them to the ranks of their slabs. */
static void make_swarm(struct comm *c, uint64_t particles, struct swarm *out)
{
    uint64_t first = particles * (uint64_t)c->rank / (uint64_t)c->size;
    uint64_t end = particles * ((uint64_t)c->rank + 1) / (uint64_t)c->size;

    *out = (struct swarm){.n = (size_t)(end - first)};
    out->p = comm_grow(NULL, &out->capacity, out->n, sizeof *out->p);
    for (uint64_t id = first; id < end; id++)
        push_birth(id, 0, &out->p[id - first]);
    comm_balance(c, out);
    comm_migrate(c, out);
}

/* Returns the status of the dumps, the same on all ranks. */
static int make_steps(struct comm *c, const struct settings *set, struct swarm *s, struct dump *dump, FILE *record,
                      struct totals *t)
{
    char what[64];

    for (uint64_t step = 1; step <= set->steps; step++) {
        double started = MPI_Wtime();
        push_all(s->p, s->n, PUSH_DT, &t->tally);
        double pushed = MPI_Wtime();
        t->migrated += comm_migrate(c, s);
        double migrated = MPI_Wtime();
        t->push_seconds += pushed - started;
        t->migrate_seconds += migrated - pushed;
        if (step % set->every != 0)
            continue;

        if (set->record_file != NULL)
            record_write(c, record, s, set->record_id, step);
        if (set->output != NULL) {
            double begun = MPI_Wtime();
            int status = dump_write(dump, s, step);
            t->dump_seconds += MPI_Wtime() - begun;
            snprintf(what, sizeof what, "dump of step %" PRIu64, step);
            explain(c, status, what, dump->dir);
            if (status != DELTAFS_OK)
                return status;
            t->dumps++;
        }
        comm_balance(c, s); /* the next migration acts on it */
    }
    return DELTAFS_OK;
}

static void report(const struct comm *c, const struct settings *set, const struct totals *t)
{
    const uint64_t bytes = sizeof(uint64_t) + sizeof(struct dump_value);
    uint64_t counts[2] = {t->migrated, t->tally.lost}, count[2];
    double energies[2] = {t->energy_before, t->energy_after - t->tally.energy}, energy[2];
    double times[3] = {t->push_seconds, t->migrate_seconds, t->dump_seconds}, seconds[3];

    MPI_Reduce(counts, count, 2, MPI_UINT64_T, MPI_SUM, 0, c->mpi);
    MPI_Reduce(energies, energy, 2, MPI_DOUBLE, MPI_SUM, 0, c->mpi);
    MPI_Reduce(times, seconds, 3, MPI_DOUBLE, MPI_MAX, 0, c->mpi);
    if (c->rank != 0)
        return;
    printf("ranks            %d\n", c->size);
    printf("particles        %" PRIu64 "\n", set->particles);
    printf("steps            %" PRIu64 "\n", set->steps);
    printf("dumps            %" PRIu64 "\n", t->dumps);
    printf("migrated         %" PRIu64 "\n", count[0]);
    printf("lost and reborn  %" PRIu64 "\n", count[1]);
    printf("energy drift     %.3g\n", energy[1] / energy[0] - 1.0);
    printf("bytes dumped     %" PRIu64 "\n", t->dumps * set->particles * bytes);
    printf("push seconds     %.3f\n", seconds[0]);
    printf("migrate seconds  %.3f\n", seconds[1]);
    printf("dump seconds     %.3f\n", seconds[2]);
}

/* Returns the code to exit with. */
static int simulate(struct comm *c, const struct settings *set)
{
    struct swarm swarm;
    struct dump dump = {0};
    struct totals totals = {0};
    FILE *record = set->record_file != NULL ? record_open(c, set->record_file) : NULL;
    int status = DELTAFS_OK;

    make_swarm(c, set->particles, &swarm);
    totals.energy_before = swarm_energy(&swarm);
    if (set->output != NULL)
        status = explain(c, dump_create(&dump, c->mpi, set->output, set->options), "create", NULL);
    if (status == DELTAFS_OK) {
        status = make_steps(c, set, &swarm, &dump, record, &totals);
        int closed = set->output != NULL ? dump_close(&dump) : DELTAFS_OK;
        if (status == DELTAFS_OK)
            status = explain(c, closed, "close", NULL);
    }
    totals.energy_after = swarm_energy(&swarm);
    free(swarm.p);
    if (record != NULL)
        record_close(record, set->record_file);
    if (status != DELTAFS_OK)
        return EXIT_DELTAFS;
    if (!set->quiet)
        report(c, set, &totals);
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    struct settings set = {.particles = 40960, .steps = 500, .every = 50, .record_id = UINT64_MAX};
    struct comm comm;
    int code;

    MPI_Init(&argc, &argv);
    comm_init(&comm, MPI_COMM_WORLD);
    /* Options come from each rank's environment too, so this may fail on some ranks only. */
    int status = explain_local(&comm, dump_options(&set.options), "options");
    if (status == DELTAFS_OK)
        code = read_settings(&comm, argc, argv, &set);
    else
        code = status == DELTAFS_ERR_OPTION ? EXIT_OPTIONS : EXIT_DELTAFS;
    if (code == GO_ON)
        code = simulate(&comm, &set);
    deltafs_options_destroy(set.options);
    comm_fini(&comm);
    MPI_Finalize();
    return code;
}
