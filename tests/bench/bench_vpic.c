/* Reads the dumps of a real VPIC run, eparticle.STEP.RANK; see shared/data/vpic-harris/README.md, or the importer
 * src/tools/import_vpic.c, for the format. Only what the benchmark relies on is checked. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "bench_data.h"
#include "bench_help.h"

#define HEADER_BYTES   115 /* ends with the number of particles */
#define PARTICLE_BYTES 32
#define IDS_HEADER     12
#define ID_BYTES       8

struct dump_file {
    uint64_t step;
    unsigned rank;
    size_t n;
    char path[512];
};

static int dump_compare(const void *a, const void *b)
{
    const struct dump_file *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void dump_read(FILE *f, const struct dump_file *d, long offset, void *out, size_t n)
{
    if (fseek(f, offset, SEEK_SET) != 0 || fread(out, 1, n, f) != n)
        bench_die("read %zu bytes at %ld of %s: %s", n, offset, d->path, feof(f) ? "it ends there" : strerror(errno));
}

static FILE *dump_open(struct dump_file *d)
{
    uint8_t head[HEADER_BYTES];
    FILE *f = fopen(d->path, "rb");

    if (!f)
        bench_die("open %s: %s", d->path, strerror(errno));
    dump_read(f, d, 0, head, sizeof head);
    if (get_u32(head + 103) != PARTICLE_BYTES)
        bench_die("%s: its particles are not of %d bytes", d->path, PARTICLE_BYTES);
    d->n = get_u32(head + 111);
    return f;
}

/* All dump files of `folder`, in the order of steps and ranks. */
static struct dump_file *dumps_find(const char *folder, size_t *count)
{
    struct dump_file *files = NULL;
    DIR *dir = opendir(folder);

    *count = 0;
    if (!dir)
        return NULL;
    for (struct dirent *entry; (entry = readdir(dir));) {
        unsigned long long step;
        unsigned rank;
        int end = 0;
        if (sscanf(entry->d_name, "eparticle.%llu.%u%n", &step, &rank, &end) != 2 || entry->d_name[end] != '\0')
            continue;
        files = bench_grow(files, (*count + 1) * sizeof *files);
        struct dump_file *d = &files[(*count)++];
        *d = (struct dump_file){.step = step, .rank = rank};
        if (snprintf(d->path, sizeof d->path, "%s/%s", folder, entry->d_name) >= (int)sizeof d->path)
            bench_die("%s: the folder's name is too long", folder);
        fclose(dump_open(d));
    }
    closedir(dir);
    if (*count > 0)
        qsort(files, *count, sizeof *files, dump_compare);
    return files;
}

static void dump_load(struct dump_file *d, uint64_t *keys, uint8_t *values)
{
    FILE *f = dump_open(d);
    long ids = HEADER_BYTES + (long)d->n * PARTICLE_BYTES + IDS_HEADER;

    dump_read(f, d, HEADER_BYTES, values, d->n * PARTICLE_BYTES);
    dump_read(f, d, ids, keys, d->n * ID_BYTES);
    for (size_t i = 0; i < d->n; i++)
        keys[i] = get_u64((const uint8_t *)&keys[i]);
    fclose(f);
}

int data_load_vpic(struct dataset *d, const char *folder)
{
    size_t files = 0, total = 0, epochs = 0, at = 0;
    struct dump_file *file = dumps_find(folder, &files);

    for (size_t i = 0; i < files; i++) {
        total += file[i].n;
        epochs += i == 0 || file[i].step != file[i - 1].step;
    }
    if (total == 0) {
        free(file);
        return 0;
    }
    *d = (struct dataset){.value_size = PARTICLE_BYTES, .n = total / epochs, .epochs = epochs};
    d->value_bytes = total * PARTICLE_BYTES;
    d->epoch = bench_grow(NULL, epochs * sizeof *d->epoch);
    d->key_memory = bench_alloc(total * sizeof *d->key_memory);
    d->value_memory = bench_alloc(d->value_bytes);
    d->schema = strcpy(bench_grow(NULL, 64), "dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4");
    snprintf(d->name, sizeof d->name, "real %d B, %zu x %.1fk", 8 + PARTICLE_BYTES, epochs, (double)d->n / 1e3);
    for (size_t i = 0, e = 0; i < files; i++) {
        if (i == 0 || file[i].step != file[i - 1].step) {
            if (at != e * d->n)
                bench_die("%s: dumps of different numbers of particles are not supported", folder);
            d->epoch[e++] = (struct epoch_data){
                .label = file[i].step, .keys = d->key_memory + at, .values = d->value_memory + at * PARTICLE_BYTES};
        }
        dump_load(&file[i], d->key_memory + at, d->value_memory + at * PARTICLE_BYTES);
        at += file[i].n;
    }
    if (at != d->n * epochs)
        bench_die("%s: dumps of different numbers of particles are not supported", folder);
    free(file);
    return 1;
}
