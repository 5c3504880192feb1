/* A thread that writes logs' full buffers, so that filling them need not wait for storage. It has a few spare buffers:
 * a log hands over its full one and goes on with a spare; when there is none, it waits. */
#ifndef DELTAFS_IO_FLUSHER_H
#define DELTAFS_IO_FLUSHER_H

#include "base/memory.h"
#include "io/io.h"

struct flusher;

/* All buffers are of `capacity` bytes; `spares` of them are taken from `memory`. */
int flusher_create(size_t capacity, uint32_t spares, struct memory *memory, struct flusher **out, struct error *e);
/* Waits for what is under way. NULL is fine. */
void flusher_destroy(struct flusher *f);

/* A spare for flusher_write; NULL if there is none now. */
uint8_t *flusher_take(struct flusher *f);
/* Write bytes [start, end) of `buffer`, whose first byte belongs at `offset` of the file; returns the spare to go on
 * with, which is `spare` if that is given. The file must stay open until flusher_drain. */
uint8_t *flusher_write(struct flusher *f, struct io_file *file, uint64_t offset, uint8_t *buffer, size_t start,
                       size_t end, uint8_t *spare);
/* Wait until all is written that has been handed over so far; another thread may hand over more meanwhile (an epoch is
 * drained while values of the next are put). Returns the first error since the last call, after which nothing more was
 * written. */
int flusher_drain(struct flusher *f, struct error *e);

#endif
