/* Several threads that encode a run's blocks, where values are of one size: each takes a batch of blocks into memory of
 * its own, and appends what it made when it is its turn. */
#ifndef DELTAFS_DIRECTORY_ENCODER_H
#define DELTAFS_DIRECTORY_ENCODER_H

#include "base/team.h"
#include "directory/write/sort.h"
#include "directory/write/writer_config.h"
#include "directory/format/run.h"

struct encoder;

/* With `threads` threads beside the caller's, at least one. */
int encoder_create(const struct writer_config *c, uint32_t threads, struct memory *memory, struct encoder **out,
                   struct error *e);
/* What it takes of the memory. */
uint64_t encoder_memory(const struct writer_config *c, uint32_t threads);
/* Its threads, for other work between runs: sorting. */
struct team *encoder_team(const struct encoder *x);
/* NULL is fine. */
void encoder_destroy(struct encoder *x);

/* Append the blocks of a run, whose records are the first of these. */
int encoder_run(struct encoder *x, const struct sorted *records, struct run *run, uint32_t partition, uint32_t epoch,
                struct log *data, struct error *e);

#endif
