/* Sends against MPI_Put. */
#ifndef BENCH_PUT_H
#define BENCH_PUT_H

#include <mpi.h>
#include "bench_run.h"

/* Collective over two ranks: GB/s of messages of so many bytes from the one to the other, by either way. */
void bench_put(MPI_Comm comm, size_t bytes, int runs, struct spread *sends, struct spread *puts);

#endif
