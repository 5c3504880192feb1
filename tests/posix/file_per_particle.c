/* A simulation that writes a file for each particle, and knows nothing of DeltaFS.
 *
 *     file_per_particle write FOLDER PARTICLES DUMPS
 *     file_per_particle read FOLDER PARTICLES DUMPS
 *
 * Instead of "write": "sync" waits until each dump is on storage, "plain" does not open the folder, and "killed" does
 * as "sync" and is killed after it has written one more dump.
 *
 * In a job of MPI, if it was compiled with WITH_MPI, particles move: those that a rank writes differ from dump to dump.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

struct state {
    double x, y, z;
    int dump, particle;
};

static int rank, ranks = 1, has_failed;

static void barrier(void)
{
#ifdef WITH_MPI
    MPI_Barrier(MPI_COMM_WORLD);
#endif
}

static void must(int is_true, const char *what)
{
    if (is_true)
        return;
    perror(what);
    exit(1);
}

static struct state state_of(int particle, int dump)
{
    return (struct state){particle * 0.5, dump * 0.25, particle + dump, dump, particle};
}

static void write_particles(const char *folder, int particles, int dump)
{
    char path[4096];

    for (int i = (rank + dump) % ranks; i < particles; i += ranks) {
        struct state s = state_of(i, dump);
        snprintf(path, sizeof path, "%s/%d", folder, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
        must(fd >= 0, path);
        must(write(fd, &s, sizeof s) == sizeof s, path);
        must(close(fd) == 0, path);
    }
}

static void write_dump(const char *folder, int particles, int dump)
{
    DIR *dir = opendir(folder);

    must(dir != NULL, folder);
    barrier();
    write_particles(folder, particles, dump);
    barrier();
    must(closedir(dir) == 0, "closedir");
}

/* The same, and wait until all is on storage. */
static void write_durable_dump(const char *folder, int particles, int dump)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY);

    must(dir >= 0, folder);
    barrier();
    write_particles(folder, particles, dump);
    if (syncfs(dir) != 0) {
        perror("syncfs");
        has_failed = 1;
    }
    must(close(dir) == 0, "close");
    if (rank == 0 && !has_failed) {
        printf("dump %d\n", dump);
        fflush(stdout);
    }
}

static void read_particle(const char *folder, int particle, int dumps)
{
    char path[4096];
    struct state s, wanted;

    snprintf(path, sizeof path, "%s/%d", folder, particle);
    int fd = open(path, O_RDONLY);
    must(fd >= 0, path);
    for (int dump = 0; dump < dumps; dump++) {
        wanted = state_of(particle, dump);
        must(read(fd, &s, sizeof s) == sizeof s && memcmp(&s, &wanted, sizeof s) == 0, path);
    }
    must(read(fd, &s, 1) == 0 && close(fd) == 0, path);
}

static void read_particles(const char *folder, int particles, int dumps)
{
    for (int i = rank; i < particles; i += ranks)
        read_particle(folder, i, dumps);
}

static void write_dumps(const char *how, const char *folder, int particles, int dumps)
{
    int is_killed = strcmp(how, "killed") == 0, is_durable = is_killed || strcmp(how, "sync") == 0;
    int is_left = strcmp(how, "left") == 0;

    for (int dump = 0; dump < dumps; dump++)
        (is_durable                             ? write_durable_dump
         : is_left || strcmp(how, "plain") == 0 ? write_particles
                                                : write_dump)(folder, particles, dump);
    if (is_killed) {
        write_particles(folder, particles, dumps);
        kill(getpid(), SIGKILL);
    }
    if (is_left)
        exit(1);
}

int main(int argc, char **argv)
{
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
    if (argc < 5)
        return 2;
    int particles = atoi(argv[3]), dumps = atoi(argv[4]);
    if (strcmp(argv[1], "read") == 0)
        read_particles(argv[2], particles, dumps);
    else
        write_dumps(argv[1], argv[2], particles, dumps);
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return has_failed;
}
