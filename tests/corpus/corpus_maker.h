/* Making golden containers: each has a fixed UUID and fixed records. Most come from the writer as every process has it.
 * For those where the cut into runs and segments matters, which there follows from the memory budget, the writer of one
 * partition is driven by hand. */
#ifndef DELTAFS_CORPUS_MAKER_H
#define DELTAFS_CORPUS_MAKER_H

#include "directory/write/partition_writer.h"
#include "directory/write/writer.h"

struct maker {
    struct writer_config config;
    char path[512];
    struct error e;
    struct writer *writer; /* NULL: by hand */
    /* By hand: */
    struct io io;
    struct part_shared shared;
    struct partition_writer part;
    struct memtable table;
    struct io_file manifest;
    uint64_t manifest_size, epochs;
};

/* End the program, if it has failed; so does each of the calls below. */
void maker_must(struct maker *m, int status);
void maker_must_errno(struct maker *m, int failed);

/* A container of `partitions`, whose values have `value_size` bytes (-1: any). */
void maker_configure(struct maker *m, const char *folder, const char *name, enum option_keys keys, uint32_t partitions,
                     int64_t value_size, const char *schema, enum option_codec codec, uint64_t block);
/* Make it, after m->config may have been changed. */
void maker_folder(struct maker *m);
/* Both. */
void maker_init(struct maker *m, const char *folder, const char *name, enum option_keys keys, uint32_t partitions,
                int64_t value_size, const char *schema, enum option_codec codec, uint64_t block);

void maker_begin(struct maker *m);

/* By hand, with one partition; fences of more than `tail_fences_max` bytes are left out of the tail. */
void maker_begin_by_hand(struct maker *m, size_t tail_fences_max);

/* One rank appends a record that stays with it, to the partition of another. */
void maker_put_local(struct maker *m, struct writer *from, struct writer *to, uint64_t key, const void *value,
                     size_t size);

void maker_put(struct maker *m, uint64_t key, const void *value, size_t size);
void maker_put_name(struct maker *m, const void *name, size_t name_size, const void *value, size_t size);

void maker_end_run(struct maker *m);
/* The runs so far; the epoch's end makes the last one. */
void maker_end_segment(struct maker *m);
/* All of the epoch but the line that commits. */
void maker_end_uncommitted(struct maker *m);
void maker_end_epoch(struct maker *m, uint64_t label);
/* End as a job that dies does: what was not committed stays in the logs. */
void maker_abandon(struct maker *m);
void maker_finish(struct maker *m);

/* Noise: splitmix64 of `i`. */
uint64_t maker_noise(uint64_t i);
/* 1000 above the key, in 4 bytes. */
void maker_put_thousand(struct maker *m, uint64_t key);
void maker_put_noise(struct maker *m, uint64_t key, uint64_t i);
/* An epoch of the keys 0 to n - 1, with noise from `i` on. */
void maker_noise_epoch(struct maker *m, uint64_t n, uint64_t i, uint64_t label);
uint32_t maker_float_bits(float v);

/* The containers: each in FOLDER/NAME. */
void make_example(struct maker *m, const char *folder, const char *name);
void make_bounds(struct maker *m, const char *folder, const char *name);
void make_dense(struct maker *m, const char *folder, const char *name);
void make_strips(struct maker *m, const char *folder, const char *name);
void make_plain(struct maker *m, const char *folder, const char *name);
void make_any(struct maker *m, const char *folder, const char *name);
void make_any_plain(struct maker *m, const char *folder, const char *name);
void make_nothing(struct maker *m, const char *folder, const char *name);
void make_structured(struct maker *m, const char *folder, const char *name);
void make_wide(struct maker *m, const char *folder, const char *name);
void make_planes(struct maker *m, const char *folder, const char *name);
void make_names(struct maker *m, const char *folder, const char *name);
void make_names_fixed(struct maker *m, const char *folder, const char *name);
void make_segments(struct maker *m, const char *folder, const char *name);
void make_runs(struct maker *m, const char *folder, const char *name);
void make_repeats(struct maker *m, const char *folder, const char *name);
void make_ends(struct maker *m, const char *folder, const char *name);
void make_no_fences(struct maker *m, const char *folder, const char *name);
void make_empty(struct maker *m, const char *folder, const char *name);
void make_none(struct maker *m, const char *folder, const char *name);
void make_copied(struct maker *m, const char *folder, const char *name);
void make_open(struct maker *m, const char *folder, const char *name);
void make_torn(struct maker *m, const char *folder, const char *name);
void make_later(struct maker *m, const char *folder, const char *name);
void make_attributes(struct maker *m, const char *folder, const char *name);
void make_reopened(struct maker *m, const char *folder, const char *name);
void make_local(struct maker *m, const char *folder, const char *name);
void make_local_names(struct maker *m, const char *folder, const char *name);
void make_compacted(struct maker *m, const char *folder, const char *name);
void make_ranges(struct maker *m, const char *folder, const char *name);

#endif
