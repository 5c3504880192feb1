/* Two ways for messages between two ranks that share no memory: nonblocking sends into posted receives, as
 * src/mpi/shuffle/link.c has them, and MPI_Put into the receiver's window with a counter behind it. Both with as many
 * buffers, and with acknowledgements when half of them are free. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "bench_help.h"
#include "bench_put.h"

#define BUFFERS 8
#define TAG     1
#define TAG_ACK 2

static double stream_sends(MPI_Comm comm, int rank, uint8_t *memory, size_t bytes, int messages)
{
    MPI_Request request[BUFFERS], ack = MPI_REQUEST_NULL;
    int peer = 1 - rank, done, credits = BUFFERS, owed = 0, given = 0, sum = 0;

    for (int i = 0; i < BUFFERS; i++)
        request[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < BUFFERS && rank == 1; i++)
        MPI_Irecv(memory + (size_t)i * bytes, (int)bytes, MPI_BYTE, peer, TAG, comm, &request[i]);
    MPI_Barrier(comm);
    double start = bench_now();
    if (rank == 0)
        MPI_Irecv(&given, 1, MPI_INT, peer, TAG_ACK, comm, &ack);
    for (int i = 0; i < messages; i++) {
        int slot = i % BUFFERS;
        if (rank == 0) {
            for (done = 0; !done || credits == 0;) {
                int has_ack = 0;
                MPI_Test(&request[slot], &done, MPI_STATUS_IGNORE);
                MPI_Test(&ack, &has_ack, MPI_STATUS_IGNORE);
                if (has_ack) {
                    credits += given;
                    MPI_Irecv(&given, 1, MPI_INT, peer, TAG_ACK, comm, &ack);
                } else if (!done || credits == 0) {
                    sched_yield();
                }
            }
            memset(memory + (size_t)slot * bytes, i, bytes);
            MPI_Isend(memory + (size_t)slot * bytes, (int)bytes, MPI_BYTE, peer, TAG, comm, &request[slot]);
            credits--;
        } else {
            for (done = 0; !done;)
                if (MPI_Test(&request[slot], &done, MPI_STATUS_IGNORE), !done)
                    sched_yield();
            sum += memory[(size_t)slot * bytes + bytes - 1] == (uint8_t)i;
            if (i + BUFFERS < messages)
                MPI_Irecv(memory + (size_t)slot * bytes, (int)bytes, MPI_BYTE, peer, TAG, comm, &request[slot]);
            if (++owed == BUFFERS / 2) {
                MPI_Send(&owed, 1, MPI_INT, peer, TAG_ACK, comm);
                owed = 0;
            }
        }
    }
    for (int i = 0; i < BUFFERS; i++)
        MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    if (ack != MPI_REQUEST_NULL) {
        /* The last acknowledgements may be on their way. */
        for (int all = BUFFERS - credits; all >= BUFFERS / 2;) {
            MPI_Wait(&ack, MPI_STATUS_IGNORE);
            all -= given;
            MPI_Irecv(&given, 1, MPI_INT, peer, TAG_ACK, comm, &ack);
        }
        MPI_Cancel(&ack);
        MPI_Wait(&ack, MPI_STATUS_IGNORE);
    }
    if (rank == 1 && sum != messages)
        bench_die("sends: %d messages of %d arrived as they were sent", sum, messages);
    return bench_now() - start;
}

/* The window: a counter that the peer puts, then the slots. */
static uint64_t counter(const uint8_t *window, MPI_Win win)
{
    uint64_t v;
    int flag;

    MPI_Win_sync(win);
    memcpy(&v, window, sizeof v);
    if (v == 0)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    return v;
}

static void wait_counter(const uint8_t *window, MPI_Win win, MPI_Comm comm, uint64_t least)
{
    int flag;

    while (counter(window, win) < least) {
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, comm, &flag, MPI_STATUS_IGNORE);
        sched_yield();
    }
}

static double stream_puts(MPI_Comm comm, int rank, uint8_t *memory, size_t bytes, int messages)
{
    uint8_t *window;
    uint64_t count;
    int peer = 1 - rank, sum = 0;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)(64 + BUFFERS * bytes), 1, MPI_INFO_NULL, comm, (void *)&window, &win);
    memset(window, 0, 64 + BUFFERS * bytes);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(comm);
    double start = bench_now();
    for (int i = 0; i < messages; i++) {
        size_t slot = (size_t)(i % BUFFERS);
        count = (uint64_t)i + 1;
        if (rank == 0) {
            if (i >= BUFFERS)
                wait_counter(window, win, comm, (uint64_t)(i - BUFFERS + 1));
            memset(memory + slot * bytes, i, bytes);
            MPI_Put(memory + slot * bytes, (int)bytes, MPI_BYTE, peer, (MPI_Aint)(64 + slot * bytes), (int)bytes,
                    MPI_BYTE, win);
            MPI_Win_flush(peer, win);
            MPI_Put(&count, 8, MPI_BYTE, peer, 0, 8, MPI_BYTE, win);
            MPI_Win_flush(peer, win);
        } else {
            wait_counter(window, win, comm, count);
            sum += window[64 + slot * bytes + bytes - 1] == (uint8_t)i;
            if (count % (BUFFERS / 2) == 0) {
                MPI_Put(&count, 8, MPI_BYTE, peer, 0, 8, MPI_BYTE, win);
                MPI_Win_flush(peer, win);
            }
        }
    }
    MPI_Barrier(comm);
    double seconds = bench_now() - start;
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    if (rank == 1 && sum != messages)
        bench_die("puts: %d messages of %d arrived as they were sent", sum, messages);
    return seconds;
}

void bench_put(MPI_Comm comm, size_t bytes, int runs, struct spread *sends, struct spread *puts)
{
    double rate[2][99];
    int rank, messages = (int)((UINT64_C(512) << 20) / bytes);
    uint8_t *memory = bench_alloc(BUFFERS * bytes);

    MPI_Comm_rank(comm, &rank);
    for (int run = -1; run < runs; run++) {
        double a = stream_sends(comm, rank, memory, bytes, messages);
        double b = stream_puts(comm, rank, memory, bytes, messages);
        if (run >= 0) {
            rate[0][run] = (double)bytes * messages / a / 1e9;
            rate[1][run] = (double)bytes * messages / b / 1e9;
        }
    }
    *sends = spread_of(rate[0], (unsigned)runs);
    *puts = spread_of(rate[1], (unsigned)runs);
    bench_free(memory, BUFFERS * bytes);
}
