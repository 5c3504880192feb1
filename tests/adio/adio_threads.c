/* What MPI promises a program whose threads use one file at the same time (MPI_THREAD_MULTIPLE). It knows nothing of
 * DeltaFS.
 *
 *     adio_threads FILE */
#include <mpi.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define RECORDS 3000 /* of each thread */
#define SIZE    96   /* bytes of one */

static int rank, ranks;
static int faults;
static MPI_File file;
static sem_t turn;

static void expect(int is_right, const char *what, long long got)
{
    if (is_right)
        return;
    if (faults++ < 10)
        fprintf(stderr, "rank %d: %s: %lld\n", rank, what, got);
}

struct worker {
    pthread_t thread;
    int number;   /* of all ranks' */
    int failures; /* calls that did not go well */
    MPI_Datatype scattered;
};

static void fill(char *bytes, int worker, int i)
{
    memset(bytes, 'a' + (worker + i) % 26, SIZE);
    memcpy(bytes, &worker, sizeof worker);
    memcpy(bytes + sizeof worker, &i, sizeof i);
}

static MPI_Offset place(int worker, int i)
{
    return ((MPI_Offset)i * ranks * THREADS + worker) * SIZE;
}

static void run(struct worker *w, void *(*function)(void *))
{
    for (int t = 0; t < THREADS; t++) {
        w[t].number = rank * THREADS + t;
        w[t].failures = 0;
        pthread_create(&w[t].thread, NULL, function, &w[t]);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(w[t].thread, NULL);
        expect(w[t].failures == 0, "calls that failed", w[t].failures);
    }
}

/* Each record written and read back, from contiguous memory and from scattered. */
static void *write_places(void *arg)
{
    struct worker *w = arg;
    char wanted[SIZE], memory[2 * SIZE];
    MPI_Status status;

    for (int i = 0; i < RECORDS; i++) {
        int is_scattered = i % 2;
        int size = 0;
        fill(wanted, w->number, i);
        memset(memory, 0, sizeof memory);
        for (int k = 0; k < SIZE; k++)
            memory[is_scattered ? 2 * k : k] = wanted[k];
        w->failures += MPI_File_write_at(file, place(w->number, i), memory, is_scattered ? 1 : SIZE,
                                         is_scattered ? w->scattered : MPI_BYTE, &status) != MPI_SUCCESS;
        memset(memory, 0, sizeof memory);
        w->failures += MPI_File_read_at(file, place(w->number, i), memory, SIZE, MPI_BYTE, &status) != MPI_SUCCESS;
        MPI_Get_count(&status, MPI_BYTE, &size);
        w->failures += size != SIZE || memcmp(memory, wanted, SIZE) != 0;
    }
    return NULL;
}

static void test_places(struct worker *w)
{
    char wanted[SIZE], bytes[SIZE];

    run(w, write_places);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    for (int n = 0; n < ranks * THREADS; n++)
        for (int i = 0; i < RECORDS; i++) {
            fill(wanted, n, i);
            memset(bytes, 0, SIZE);
            MPI_File_read_at(file, place(n, i), bytes, SIZE, MPI_BYTE, MPI_STATUS_IGNORE);
            expect(memcmp(bytes, wanted, SIZE) == 0, "a record is wrong", i);
        }
}

/* All threads move one pointer: their records stand one behind another, each once. */
static void *write_next(void *arg)
{
    struct worker *w = arg;
    char bytes[SIZE];

    for (int i = 0; i < RECORDS; i++) {
        fill(bytes, w->number, i);
        w->failures += MPI_File_write(file, bytes, SIZE, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    }
    return NULL;
}

static void test_pointer(struct worker *w)
{
    int next[THREADS] = {0};
    MPI_Offset from = (MPI_Offset)rank * THREADS * RECORDS * SIZE, to;
    char bytes[SIZE], wanted[SIZE];

    MPI_File_seek(file, from, MPI_SEEK_SET);
    run(w, write_next);
    MPI_File_get_position(file, &to);
    expect(to == from + (MPI_Offset)THREADS * RECORDS * SIZE, "the pointer is", to);
    for (int i = 0; i < THREADS * RECORDS; i++) {
        int n;
        MPI_File_read_at(file, from + (MPI_Offset)i * SIZE, bytes, SIZE, MPI_BYTE, MPI_STATUS_IGNORE);
        memcpy(&n, bytes, sizeof n);
        int t = n - rank * THREADS;
        if (t < 0 || t >= THREADS) {
            expect(0, "a record of nobody", n);
            return;
        }
        fill(wanted, n, next[t]++);
        expect(memcmp(bytes, wanted, SIZE) == 0, "a record is wrong, or comes too early", i);
    }
}

#define ROUNDS 20

/* A collective call is under way, and another rank comes to it only when this has gone well. */
static void *write_meanwhile(void *arg)
{
    struct worker *w = arg;
    MPI_Offset at = (MPI_Offset)ranks * SIZE;
    char bytes[SIZE];

    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&turn);
        fill(bytes, w->number, i);
        w->failures += MPI_File_write_at(file, at, bytes, SIZE, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        for (int other = 1; other < ranks; other++)
            MPI_Send(NULL, 0, MPI_BYTE, other, i, MPI_COMM_WORLD);
    }
    return NULL;
}

static void test_collective(struct worker *w)
{
    char bytes[SIZE];

    sem_init(&turn, 0, 0);
    w->failures = 0;
    if (rank == 0)
        pthread_create(&w->thread, NULL, write_meanwhile, w);
    for (int i = 0; i < ROUNDS; i++) {
        fill(bytes, rank, i);
        if (rank == 0)
            sem_post(&turn);
        else
            MPI_Recv(NULL, 0, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int rc = MPI_File_write_at_all(file, (MPI_Offset)rank * SIZE, bytes, SIZE, MPI_BYTE, MPI_STATUS_IGNORE);
        expect(rc == MPI_SUCCESS, "write_at_all", rc);
    }
    if (rank == 0) {
        pthread_join(w->thread, NULL);
        expect(w->failures == 0, "calls that failed meanwhile", w->failures);
    }
}

int main(int argc, char **argv)
{
    struct worker w[THREADS];
    int provided;
    int all = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || provided != MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "usage: adio_threads FILE, with an MPI that knows MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int t = 0; t < THREADS; t++) {
        MPI_Type_vector(SIZE, 1, 2, MPI_BYTE, &w[t].scattered);
        MPI_Type_commit(&w[t].scattered);
    }
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    test_places(w);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody reads any more what is written now */
    test_pointer(w);
    test_collective(w);
    int rc = MPI_File_close(&file);
    expect(rc == MPI_SUCCESS, "close", rc);
    for (int t = 0; t < THREADS; t++)
        MPI_Type_free(&w[t].scattered);
    MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", all == 0 ? "all is right" : "there are faults");
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
