/* A simulation of several ranks that writes dumps by stdio, and knows nothing of DeltaFS.
 *
 *     posix_dumps write FOLDER DUMPS
 *     posix_dumps read FOLDER DUMPS
 *
 * In each dump, which is a folder, a rank has a file of its own, and a part of a file that all ranks share. "read"
 * reads what another rank has written. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NUMBERS 5000 /* of each part */

static int rank, ranks;

static void must(int is_true, const char *what)
{
    if (is_true)
        return;
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static FILE *open_dump(const char *folder, int dump, int of_rank, const char *mode)
{
    char path[4096];

    if (of_rank < 0)
        snprintf(path, sizeof path, "%s/dump.%d/shared", folder, dump);
    else
        snprintf(path, sizeof path, "%s/dump.%d/rank.%d", folder, dump, of_rank);
    FILE *f = fopen(path, mode);
    must(f != NULL, path);
    return f;
}

static void make_numbers(double *numbers, int dump, int of_rank)
{
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = dump * 1e6 + of_rank * 1e5 + i * 0.5;
}

/* A text line, and the numbers in pieces. */
static void write_own(const char *folder, int dump, const double *numbers)
{
    FILE *f = open_dump(folder, dump, rank, "w");

    must(fprintf(f, "dump %d of rank %d\n", dump, rank) > 0, "fprintf");
    for (size_t at = 0, n; at < NUMBERS; at += n) {
        n = NUMBERS - at < 777 ? NUMBERS - at : 777;
        must(fwrite(numbers + at, sizeof *numbers, n, f) == n, "fwrite");
    }
    must(fclose(f) == 0, "fclose");
}

static void seek_part(FILE *f, int of_rank)
{
    must(fseek(f, of_rank * (long)(NUMBERS * sizeof(double)), SEEK_SET) == 0, "fseek");
}

static void write_dump(const char *folder, int dump)
{
    double numbers[NUMBERS];
    char path[4096];

    make_numbers(numbers, dump, rank);
    snprintf(path, sizeof path, "%s/dump.%d", folder, dump);
    if (rank == 0) {
        must(mkdir(path, 0755) == 0, path);
        must(fclose(open_dump(folder, dump, -1, "w")) == 0, "fclose");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_own(folder, dump, numbers);
    FILE *f = open_dump(folder, dump, -1, "r+");
    seek_part(f, rank);
    must(fwrite(numbers, sizeof *numbers, NUMBERS, f) == NUMBERS && fclose(f) == 0, "fwrite");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void read_numbers(FILE *f, const double *wanted)
{
    double numbers[NUMBERS];

    must(fread(numbers, sizeof *numbers, NUMBERS, f) == NUMBERS, "fread");
    must(memcmp(numbers, wanted, sizeof numbers) == 0, "other numbers");
}

static void read_dump(const char *folder, int dump, int of_rank)
{
    double wanted[NUMBERS];
    int d, r;

    make_numbers(wanted, dump, of_rank);
    FILE *f = open_dump(folder, dump, of_rank, "r");
    must(fscanf(f, "dump %d of rank %d", &d, &r) == 2 && d == dump && r == of_rank && fgetc(f) == '\n', "fscanf");
    read_numbers(f, wanted);
    must(fgetc(f) == EOF && fclose(f) == 0, "the end of a file");
    f = open_dump(folder, dump, -1, "r");
    seek_part(f, of_rank);
    read_numbers(f, wanted);
    must(fclose(f) == 0, "fclose");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int dump = 0; dump < atoi(argv[3]); dump++)
        if (strcmp(argv[1], "write") == 0)
            write_dump(argv[2], dump);
        else
            read_dump(argv[2], dump, (rank + 1) % ranks);
    MPI_Finalize();
    return 0;
}
