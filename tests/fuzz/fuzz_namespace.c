/* The structures of a namespace: a byte (1: the lines of a text get right checksums; the kind times 2), then a record
 * of an entry, a file NAMESPACE, SNAPSHOT, PIN or COMPACTED, or a journal, whose commits get right checksums instead.
 */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "fuzz_target.h"
#include "mem_io.h"
#include "namespace/compacted.h"
#include "namespace/head.h"
#include "namespace/journal.h"
#include "namespace/pin.h"
#include "namespace/registry.h"
#include "structures.h"

enum { ENTRY, HEAD, SNAPSHOT, PIN, COMPACTED, JOURNAL, KINDS };

static void try_entry(const uint8_t *bytes, size_t n)
{
    struct entry entry, again;
    uint8_t copy[ENTRY_SIZE_MAX];

    if (entry_decode(bytes, n, &entry) != 0)
        return;
    FUZZ_CHECK(entry.name_size <= ENTRY_NAME_MAX);
    fuzz_touch(entry.name, entry.name_size);
    if (entry.target_size > 0)
        fuzz_touch(entry.target, entry.target_size);
    /* What is written of it says the same. */
    size_t size = entry_encode(&entry, copy);
    FUZZ_CHECK(size <= ENTRY_SIZE_MAX && entry_decode(copy, size, &again) == 0);
    FUZZ_CHECK(again.inode.stamp == entry.inode.stamp && again.inode.size == entry.inode.size);
    FUZZ_CHECK(again.name_size == entry.name_size && memcmp(again.name, entry.name, entry.name_size) == 0);
    FUZZ_CHECK(again.target_size == entry.target_size);
}

/* A layer is on top of layers before it. */
static void check_layers(const struct layers *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct layer *layer = &l->layer[i];
        FUZZ_CHECK(layer->path ? layer->inputs <= 1 && layer->path[0] == '/' : layer->inputs > 0);
        for (size_t k = 0; k < layer->inputs; k++)
            FUZZ_CHECK(layer->input[k] < i);
        FUZZ_CHECK(layer->path || layer->tables == 0);
        for (size_t k = 0; k < layer->tables; k++)
            FUZZ_CHECK(layer->table[k].from <= layer->table[k].limit);
    }
}

static int try_head(struct io *io, struct error *e)
{
    struct head head = {0};
    int status = head_read(io, "/n", &head, e);

    if (status == DELTAFS_OK)
        check_layers(&head.below);
    layers_fini(&head.below);
    return status;
}

static int try_snapshot(struct io *io, struct error *e)
{
    struct snapshot s;
    int status = registry_read(io, "/r@s", &s, e);

    if (status == DELTAFS_OK) {
        FUZZ_CHECK(s.layers.count > 0);
        check_layers(&s.layers);
        snapshot_fini(&s);
    }
    return status;
}

static int try_pin(struct io *io, struct error *e)
{
    struct pins pins = {0};
    int status = pins_read(io, "/n", &pins, e);

    if (status == DELTAFS_OK)
        FUZZ_CHECK(pins.pins == 1);
    pins_fini(&pins);
    return status;
}

/* The tables are in the order in which they are searched. */
static int try_compacted(struct io *io, struct error *e)
{
    struct compacted c;
    int status = compacted_read(io, "/n", &c, e);

    for (size_t i = 1; status == DELTAFS_OK && i < c.count; i++)
        FUZZ_CHECK(c.table[i - 1].number <= c.table[i].number);
    compacted_fini(&c);
    return status;
}

/* Commits that are where the sizes say get right checksums. */
static void seal_journal(uint8_t *bytes, size_t n)
{
    for (size_t at = 0; n - at >= JOURNAL_HEADER_SIZE;) {
        size_t size = JOURNAL_HEADER_SIZE + (size_t)get_u32(bytes + at + 24);
        if (size > n - at)
            return;
        put_u32(bytes + at + 4, crc32c(0, bytes + at + 8, size - 8));
        at += size;
    }
}

/* What is kept of a journal is one without damage, with the same commits. */
static void try_salvage(const uint8_t *bytes, size_t n)
{
    struct journal kept, again;
    struct error e;
    size_t lost;

    FUZZ_CHECK(journal_salvage(&kept, "/n/journal", bytes, n, 7, &lost, &e) == DELTAFS_OK);
    FUZZ_CHECK(kept.end + lost == n);
    FUZZ_CHECK(journal_parse(&again, "/n/journal", kept.bytes.bytes, kept.end, 7, &e) == DELTAFS_OK);
    FUZZ_CHECK(again.end == kept.end && again.committed == kept.committed && again.last_label == kept.last_label);
    journal_fini(&kept);
    journal_fini(&again);
}

static void try_journal(const uint8_t *bytes, size_t n)
{
    struct journal j;
    struct error e;
    size_t count;
    int status = journal_parse(&j, "/n/journal", bytes, n, 7, &e);

    FUZZ_CHECK(status == DELTAFS_OK || strstr(e.text, "/n/journal") != NULL);
    for (int kind = JOURNAL_ENTRY; kind <= JOURNAL_CHUNK; kind++) {
        const struct journal_record *r = journal_find(&j, kind, 0, UINT64_MAX, &count);
        for (size_t i = 0; i < count; i++) {
            FUZZ_CHECK(r[i].kind == kind && r[i].label > 0 && r[i].label <= j.last_label);
            FUZZ_CHECK(i == 0 || r[i - 1].key <= r[i].key);
            fuzz_touch(journal_bytes(&j, &r[i]), r[i].size);
            const struct journal_record *same = journal_get(&j, kind, r[i].key, NULL);
            FUZZ_CHECK(same && same->kind == kind && same->key == r[i].key);
        }
    }
    try_salvage(bytes, n);
    journal_drop(&j, j.last_label);
    FUZZ_CHECK(j.committed == 0);
    journal_fini(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const path[] = {[HEAD] = "/n/NAMESPACE",
                                       [SNAPSHOT] = "/r/s/SNAPSHOT",
                                       [PIN] = "/n/PIN.00000000-0000-0000-0000-000000000001",
                                       [COMPACTED] = "/n/COMPACTED"};
    static int (*const read[])(struct io * io, struct error * e) = {
        [HEAD] = try_head, [SNAPSHOT] = try_snapshot, [PIN] = try_pin, [COMPACTED] = try_compacted};
    static struct mem_io files;
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1), kind = mode / 2 % KINDS;
    uint8_t *text = fuzz_bytes(&in, SIZE_MAX, &n);
    struct error e = {0};

    if (kind == JOURNAL && (mode & 1))
        seal_journal(text, n);
    if (kind == ENTRY || kind == JOURNAL) {
        (kind == ENTRY ? try_entry : try_journal)(text, n);
        free(text);
        return 0;
    }
    if (mode & 1)
        structures_seal_manifest(text, n);
    mem_io_begin(&files);
    mem_put(&files, path[kind], text, n);
    struct io io = io_default();
    FUZZ_CHECK(read[kind](&io, &e) == DELTAFS_OK || strstr(e.text, kind == SNAPSHOT ? "/r" : "/n") != NULL);
    FUZZ_CHECK(mem_io_end(&files) == 0);
    free(text);
    return 0;
}
