/* A container: a byte (1: everything gets right checksums, 2: it is repaired, 4: it is reopened, and closed, 8: it has
 * a value log), the bytes of its manifest (u16), of the index log of partition 0 (u32) and, if it has a value log, of
 * the data log (u32), then manifest, index log, data log and the value log of writer 0. It is opened and asked in all
 * ways.
 */
#include <stdlib.h>
#include <string.h>
#include "fuzz_target.h"
#include "mem_io.h"
#include "io/log.h"
#include "directory/format/manifest.h"
#include "structures.h"

#define RECORDS_MAX 20000 /* of a scan; more take too long */
#define KEYS_MAX    8     /* to ask for */

struct use {
    uint64_t count;
    uint64_t key[KEYS_MAX];
    char name[KEYS_MAX][255];
    size_t name_size[KEYS_MAX];
};

static int use_record(const struct deltafs_record *record, void *arg)
{
    struct use *u = arg;
    size_t i = (size_t)(u->count % KEYS_MAX);

    fuzz_touch(record->value, record->size);
    fuzz_touch(record->key_bytes, record->key_size);
    u->key[i] = record->key;
    u->name_size[i] = record->key_size;
    if (record->key_size > 0)
        memcpy(u->name[i], record->key_bytes, record->key_size);
    return ++u->count >= RECORDS_MAX;
}

static void use_records(deltafs_records *records)
{
    for (size_t i = 0; records && i < records->count; i++)
        fuzz_touch(records->record[i].value, records->record[i].size);
    deltafs_records_destroy(records);
}

static void get_all(deltafs_dir *d, struct use *u, int is_bytes)
{
    deltafs_records *got[KEYS_MAX] = {0};
    const void *names[KEYS_MAX];

    for (size_t i = 0; i < KEYS_MAX; i++)
        names[i] = u->name[i];
    if (is_bytes)
        deltafs_get_many_bytes(d, KEYS_MAX, names, u->name_size, NULL, got);
    else
        deltafs_get_many(d, KEYS_MAX, u->key, NULL, got);
    for (size_t i = 0; i < KEYS_MAX; i++)
        use_records(got[i]);
    got[0] = NULL;
    if (is_bytes)
        deltafs_get_bytes(d, "particle 1", 10, NULL, &got[0]);
    else
        deltafs_get(d, u->key[0] + 1, NULL, &got[0]);
    use_records(got[0]);
}

static void use_container(void)
{
    deltafs_options *o;
    deltafs_dir *d;
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    struct use use = {.key = {1, 8, 9, 77, 1000, 5, 0, UINT64_MAX}};
    uint64_t stored;

    FUZZ_CHECK(deltafs_options_create(&o) == DELTAFS_OK);
    FUZZ_CHECK(deltafs_options_set(o, "read_threads", "0") == DELTAFS_OK);
    FUZZ_CHECK(deltafs_options_set(o, "read_cache", "64K") == DELTAFS_OK);
    int status = deltafs_open("/c", o, &d);
    deltafs_options_destroy(o);
    if (status != DELTAFS_OK)
        return;
    FUZZ_CHECK(deltafs_stat(d, &stat) == DELTAFS_OK);
    int is_bytes = strcmp(stat.keys, "bytes") == 0;
    get_all(d, &use, is_bytes);
    int stopped = 0;
    deltafs_scan_partition(d, 0, NULL, use_record, &use, &stopped);
    get_all(d, &use, is_bytes);
    /* Partitions are missing but the first: a million of these are only more of the same. */
    if (stat.partitions < 4 && stat.epochs < 100 && !stopped)
        deltafs_verify(d, NULL, NULL, &counts);
    if (stat.partitions < 4)
        deltafs_bytes_stored(d, &stored);
    double balance[100];
    if (stat.partitions < 4 && stat.epochs < 100)
        deltafs_balance(d, balance);
    FUZZ_CHECK(deltafs_close(d) == DELTAFS_OK);
}

/* What has gone well leaves something that can be read. */
static void text_repair_container(uint64_t mode, const struct manifest *m)
{
    const struct deltafs_repair_options wish = {.struct_size = sizeof wish, .has_label = 1, .label = UINT64_MAX};
    deltafs_options *o;
    deltafs_dir *d;
    int status = DELTAFS_OK;

    /* A million partitions or epochs are only more of the same. */
    if (m->partitions > 4 || m->epoch_count > 100)
        return;
    if (mode & 2)
        status = deltafs_repair("/c", &wish, NULL, NULL);
    if (mode & 4) {
        FUZZ_CHECK(deltafs_options_create(&o) == DELTAFS_OK);
        FUZZ_CHECK(deltafs_options_set(o, "memory", "8M") == DELTAFS_OK);
        FUZZ_CHECK(deltafs_options_set(o, "threads", "0") == DELTAFS_OK);
        status = deltafs_reopen("/c", o, &d);
        deltafs_options_destroy(o);
        if (status == DELTAFS_OK)
            status = deltafs_close(d);
    }
    if (status != DELTAFS_OK)
        return;
    FUZZ_CHECK(deltafs_open("/c", NULL, &d) == DELTAFS_OK);
    FUZZ_CHECK(deltafs_close(d) == DELTAFS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct mem_io files;
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1), manifest_n = fuzz_number(&in, 2), index_n = fuzz_number(&in, 4);
    uint64_t data_n = mode & 8 ? fuzz_number(&in, 4) : SIZE_MAX;
    size_t size[4];
    uint8_t *file[4] = {fuzz_bytes(&in, manifest_n, &size[0]), fuzz_bytes(&in, index_n, &size[1]),
                        fuzz_bytes(&in, data_n, &size[2]), fuzz_bytes(&in, SIZE_MAX, &size[3])};
    static const char *const names[4] = {"/c/MANIFEST", "/c/00/p00000000.index", "/c/00/p00000000.data",
                                         "/c/00/v00000000.values"};
    struct manifest m;
    struct error e;

    if (mode & 1)
        structures_seal_manifest(file[0], size[0]);
    mem_io_begin(&files);
    mem_put(&files, names[0], file[0], size[0]);
    struct io io = io_default();
    if (manifest_read(&io, "/c", &m, &e) == DELTAFS_OK) {
        for (int i = 1; i < (mode & 8 ? 4 : 3); i++) {
            if (mode & 1)
                structures_seal_log(log_seed(m.uuid), file[i], size[i]);
            mem_put(&files, names[i], file[i], size[i]);
        }
        use_container();
        text_repair_container(mode, &m);
        manifest_fini(&m);
    }
    FUZZ_CHECK(mem_io_end(&files) == 0);
    for (int i = 0; i < 4; i++)
        free(file[i]);
    return 0;
}
