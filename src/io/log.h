/* An append-only log being written: a buffer in front of a file. The end can be set back to an earlier one, which is
 * how an epoch that failed is discarded: what it wrote is overwritten by the next. */
#ifndef DELTAFS_IO_LOG_H
#define DELTAFS_IO_LOG_H

#include "base/memory.h"
#include "io/flusher.h"
#include "io/io_format.h"

struct log {
    struct io_file file;
    uint64_t base; /* file offset that the buffer's first byte stands for */
    uint8_t *buffer;
    size_t start; /* bytes of it that are written */
    size_t used;
    size_t capacity;
    uint8_t *spare;          /* of the flusher, taken ahead; NULL: none */
    struct flusher *flusher; /* writes full buffers; NULL: they are written at once */
    uint32_t seed;           /* of the container's checksums */
    struct memory *memory;
    uint8_t header[LOG_HEADER_SIZE];
};

/* The checksum that all of a container's structures begin with. */
uint32_t log_seed(const uint8_t uuid[16]);

/* Create the file and write its header. If `is_new` is not set it may exist: then it is begun again, but what it has
 * behind the header stays until log_truncate. `capacity` is the buffer's size; of `flusher`'s, if one is given. */
int log_create(struct log *log, struct io *io, const char *path, int kind, uint32_t partition, const uint8_t uuid[16],
               int is_new, size_t capacity, struct flusher *flusher, struct memory *memory, struct error *e);
/* Open a log that is there, to go on at `end`; log_truncate removes what is behind that. */
int log_open(struct log *log, struct io *io, const char *path, int kind, uint32_t partition, const uint8_t uuid[16],
             uint64_t end, size_t capacity, struct flusher *flusher, struct memory *memory, struct error *e);
/* Cut off, durably if `sync`, what the file has behind the log's end, with nothing in the buffer. */
int log_truncate(struct log *log, int sync, struct error *e);
void log_put_header(uint8_t h[static LOG_HEADER_SIZE], int kind, uint32_t partition, const uint8_t uuid[16]);
/* Open a log for reading; it is damage if there is none. The caller closes `file`, also after an error. */
int log_open_read(struct io *io, const char *path, struct io_file *file, uint64_t *size, struct error *e);
/* Whether the file begins with the header of such a log: DELTAFS_OK, _DAMAGED or _IO. */
int log_check_header(struct io_file *file, int kind, uint32_t partition, const uint8_t uuid[16], struct error *e);
/* Before a file is begun again whose bytes no epoch needs: that it is not another container's, by the UUID in its
 * header. DELTAFS_ERR_DAMAGED. */
int log_check_restart(struct io_file *file, const uint8_t uuid[16], struct error *e);
/* Close without flushing, and free. A log that was never created is fine if it is all zero. */
int log_close(struct log *log, struct error *e);

/* The offset that the next byte gets. */
static inline uint64_t log_end(const struct log *log)
{
    return log->base + log->used;
}

int log_append(struct log *log, const void *bytes, size_t n, struct error *e);
/* See to it that `n` bytes more can be appended without waiting for the flusher, if they are no more than a buffer has
 * (of more the rest may wait); returns whether they can. Without a flusher they are written at once. */
int log_reserve(struct log *log, size_t n);
/* Write what the buffer holds; what the flusher has is not waited for. */
int log_flush(struct log *log, struct error *e);
/* Give it to the flusher instead, if that has a buffer to spare; returns whether there is nothing left to flush. */
int log_hand_over(struct log *log);
/* Go back to an earlier end, and truncate what the file has behind it: a footer left there would be found. The flusher
 * has been drained. A sync that failed may have dropped what was written, and the next would not say so: all behind the
 * end is written again, and where only the header is before it, that too, which may never have been synced. */
int log_rewind(struct log *log, uint64_t end, struct error *e);

/* Write the checksum of bytes[4 .. n) into bytes[0 .. 4). */
void log_seal(uint32_t seed, uint8_t *bytes, size_t n);
/* Whether the checksum of bytes[0 .. n) is right; n >= 4. */
int log_is_sealed(uint32_t seed, const uint8_t *bytes, size_t n);

#endif
