/* A simulation that writes a file for each particle, and knows nothing of DeltaFS.
 *
 *     file_per_particle write FOLDER PARTICLES DUMPS [sync]
 *     file_per_particle read FOLDER PARTICLES DUMPS
 *
 * In a job of MPI, if it was compiled with WITH_MPI, particles move: those that a rank writes differ from dump
 * to dump. */
#include <dirent.h>
#include <fcntl.h>
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

static int rank, ranks = 1;

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

static void write_dump(const char *folder, int particles, int dump, int is_sync)
{
    char path[4096];
    DIR *dir = opendir(folder);

    must(dir != NULL, folder);
    barrier();
    for (int i = (rank + dump) % ranks; i < particles; i += ranks) {
        struct state s = state_of(i, dump);
        snprintf(path, sizeof path, "%s/%d", folder, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
        must(fd >= 0, path);
        must(write(fd, &s, sizeof s) == sizeof s && close(fd) == 0, path);
    }
    barrier();
    must(!is_sync || syncfs(dirfd(dir)) == 0, "sync");
    must(closedir(dir) == 0, "closedir");
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
    if (strcmp(argv[1], "write") == 0)
        for (int dump = 0; dump < dumps; dump++)
            write_dump(argv[2], particles, dump, argc > 5);
    else
        for (int i = rank; i < particles; i += ranks)
            read_particle(argv[2], i, dumps);
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
