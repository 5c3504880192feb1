/* An MPI-IO program that knows nothing of DeltaFS: all ranks write one shared file of records of 48 bytes a timestep.
 *
 *     rows_program NAME STEPS ROWS MODE [HINT=VALUE...]
 *
 * NAME gets ".STEP" behind it. ROWS are those of a rank; each particle is on another rank in each step, and those of
 * rank 0 are fewer. MODE says how they are written: all, each rank's in one collective call; pieces, in calls that cut
 * records, in an order of their own; twice, other bytes first, by other ranks; again, the file is opened once more,
 * and some of it is written again. "cut" adds half a record. Prints each file's name and each record as
 * "step key x row"; then reads the files back, compares, and exits with 1 if anything is wrong, with 3 if a close has
 * failed (after saying why), in which case it goes on. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD 48

static int rank, ranks;
static MPI_Info info;

static void say(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;

    MPI_Error_string(code, text, &n);
    fprintf(stderr, "%d: %s: %s\n", rank, what, text);
}

static void must(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return;
    say(code, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What fails on all ranks. A launcher may lose what a job that aborts has printed, so this one ends like others. */
static void all_must(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return;
    say(code, what);
    MPI_Finalize();
    exit(1);
}

/* Row i of all, in a step: float x, a double, 12 bytes of something, the key at 24, 16 more bytes. */
static void record(uint8_t *to, uint64_t row, uint64_t total, int step)
{
    uint64_t key = (row * 7919 + (uint64_t)step * 104729) % total; /* total has neither prime as a factor */
    float x = (float)key + 0.25f * (float)step;
    double y = (double)row * 0.5;

    memcpy(to, &x, sizeof x);
    memcpy(to + 4, &y, sizeof y);
    memset(to + 12, (int)(row % 251), 12);
    memcpy(to + 24, &key, sizeof key);
    memset(to + 32, (int)(key % 253), 16);
}

static uint64_t first_row(uint64_t per, int of)
{
    return of == 0 ? 0 : (uint64_t)of * per - per / 3;
}

static void write_step(const char *name, uint64_t per, int step, const char *mode, int flags, int *failed)
{
    uint64_t first = first_row(per, rank), end = first_row(per, rank + 1), total = first_row(per, ranks);
    size_t bytes = (size_t)(end - first) * RECORD;
    uint8_t *buffer = malloc(bytes + RECORD);
    MPI_File f;

    all_must(MPI_File_open(MPI_COMM_WORLD, name, flags, info, &f), name);
    for (uint64_t i = first; i < end; i++)
        record(buffer + (i - first) * RECORD, i, total, step);
    MPI_Offset at = (MPI_Offset)first * RECORD;
    if (strcmp(mode, "twice") == 0) {
        int other = (rank + 1) % ranks;
        uint64_t rows = first_row(per, other + 1) - first_row(per, other);
        uint8_t *wrong = malloc((size_t)rows * RECORD);
        memset(wrong, 1, (size_t)rows * RECORD);
        must(MPI_File_write_at(f, (MPI_Offset)first_row(per, other) * RECORD, wrong, (int)(rows * RECORD), MPI_BYTE,
                               MPI_STATUS_IGNORE),
             "write");
        free(wrong);
        must(MPI_File_sync(f), "sync");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(mode, "pieces") == 0) {
        const size_t piece = 1000; /* no multiple of a record's size */
        size_t n = (bytes + piece - 1) / piece;
        for (size_t k = 0; k < n; k++) {
            size_t i = n - 1 - k, size = i + 1 < n ? piece : bytes - i * piece;
            must(MPI_File_write_at(f, at + (MPI_Offset)(i * piece), buffer + i * piece, (int)size, MPI_BYTE,
                                   MPI_STATUS_IGNORE),
                 "write");
        }
    } else {
        must(MPI_File_write_at_all(f, at, buffer, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    }
    if (strcmp(mode, "cut") == 0 && rank == 0)
        must(MPI_File_write_at(f, (MPI_Offset)total * RECORD, buffer, RECORD / 2, MPI_BYTE, MPI_STATUS_IGNORE),
             "write");
    int code = MPI_File_close(&f);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int n;
        MPI_Error_string(code, text, &n);
        if (rank == 0)
            fprintf(stderr, "close: %s\n", text);
        *failed = 3;
    }
    free(buffer);
}

/* The file as it should be now, by one rank. */
static void read_back(const char *name, uint64_t total, int step)
{
    uint8_t want[RECORD], *all = malloc((size_t)total * RECORD);
    MPI_File f;
    MPI_Offset size;

    must(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), name);
    must(MPI_File_get_size(f, &size), "size");
    must(MPI_File_read_at(f, 0, all, (int)(total * RECORD), MPI_BYTE, MPI_STATUS_IGNORE), "read");
    must(MPI_File_close(&f), "close");
    if (size < (MPI_Offset)total * RECORD || size >= (MPI_Offset)(total + 1) * RECORD) {
        fprintf(stderr, "%s has %lld bytes\n", name, (long long)size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (uint64_t i = 0; i < total; i++) {
        uint64_t key;
        float x;
        record(want, i, total, step);
        if (memcmp(all + i * RECORD, want, RECORD) != 0) {
            fprintf(stderr, "%s: record %llu is not what was written\n", name, (unsigned long long)i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        memcpy(&x, want, sizeof x);
        memcpy(&key, want + 24, sizeof key);
        printf("%d %llu %.9g %llu\n", step, (unsigned long long)key, (double)x, (unsigned long long)i);
    }
    free(all);
}

int main(int argc, char **argv)
{
    int failed = 0;
    char name[1024];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Info_create(&info);
    for (int i = 5; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        *value++ = '\0';
        MPI_Info_set(info, argv[i], value);
    }
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    uint64_t per = strtoull(argv[3], NULL, 10), total = first_row(per, ranks);
    for (int step = 0; step < atoi(argv[2]); step++) {
        snprintf(name, sizeof name, "%s.%d", argv[1], 100 * step);
        write_step(name, per, strcmp(argv[4], "again") == 0 ? step + 1 : step, argv[4],
                   MPI_MODE_CREATE | MPI_MODE_WRONLY, &failed);
        if (strcmp(argv[4], "again") == 0)
            write_step(name, per, step, argv[4], MPI_MODE_WRONLY, &failed);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            read_back(name, total, step);
    }
    MPI_Info_free(&info);
    MPI_Finalize();
    return failed;
}
