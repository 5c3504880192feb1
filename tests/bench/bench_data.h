/* The workloads: keys and values of some epochs, in memory before any clock starts, the same for all engines. */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

struct epoch_data {
    uint64_t label;
    const uint64_t *keys;
    const uint8_t *values; /* value i belongs to key i */
};

/* Every key has one record in every epoch. */
struct dataset {
    char name[64];
    size_t value_size;
    size_t n; /* records of an epoch */
    size_t epochs;
    struct epoch_data *epoch;
    char *schema;
    uint64_t *key_memory; /* all epochs' keys */
    uint8_t *value_memory;
    size_t value_bytes;
};

/* IDs of synthetic particles: all epochs have the same, in an order of their own. */
enum id_kind {
    ID_DENSE, /* 0 .. n-1 */
    ID_VPIC,  /* rank << 46 | counter, for 64 ranks */
    ID_GAPS,  /* those dense IDs that 4,096 partitions would put into the first one */
};

/* Values are random floats in [-1, 1). All epochs share one array of them: as the order of the keys differs, so do a
 * key's values, and the input of a large run takes a third of the memory. */
void data_make(struct dataset *d, enum id_kind kind, size_t epochs, size_t n, size_t value_size);
/* The dumps of a real VPIC run in `folder`; 0 if there are none. */
int data_load_vpic(struct dataset *d, const char *folder);
void data_free(struct dataset *d);

static inline size_t data_record(const struct dataset *d)
{
    return 8 + d->value_size;
}

static inline uint64_t data_records(const struct dataset *d)
{
    return (uint64_t)d->n * d->epochs;
}

static inline uint64_t data_raw(const struct dataset *d)
{
    return data_records(d) * data_record(d);
}

/* Keys to be asked for, and the right answers. */
struct probes {
    size_t n;
    uint64_t *keys;
    uint8_t *values; /* of key i: epochs * value_size bytes from i * epochs * value_size */
};

void probes_make(struct probes *p, const struct dataset *d, size_t n);
void probes_free(struct probes *p);
/* Death unless `values`, of `found` epochs, is what key number i has. */
void probes_check(const struct probes *p, const struct dataset *d, size_t i, const uint8_t *values, size_t found,
                  const char *engine);

#endif
