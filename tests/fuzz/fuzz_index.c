/* An index log: a byte (1: its structures get right checksums, 2: the manifest says that it was closed, 4:
 * that the first epoch is a compacted one), the epochs
 * that are committed (u8), the length of the tails (u32), then the log of partition 0 and the UUID 0. */
#include <stdlib.h>
#include <string.h>
#include "fuzz_target.h"
#include "mem_io.h"
#include "directory/format/index.h"
#include "structures.h"

static const uint8_t uuid[FORMAT_UUID_SIZE];

/* The two ways to a record's place agree. */
static void check_places(const struct leaf *leaf)
{
    for (uint32_t i = 0; i < leaf->count && i < 64; i++) {
        struct leaf_place a = {0}, b = {0};
        uint32_t run = leaf_run_of(leaf, i), rank = leaf_rank(leaf, run, i);
        FUZZ_CHECK(rank <= i);
        int found = leaf_place(leaf, run, rank, &a);
        FUZZ_CHECK(leaf_seek(leaf, run, rank, &b) == found);
        FUZZ_CHECK(found != 0 || (a.at.offset == b.at.offset && a.at.length == b.at.length && a.run == b.run &&
                                  a.block == b.block && a.record == b.record && a.record < a.at.count));
    }
}

static void check_leaf(const struct leaf *leaf)
{
    uint32_t first;
    uint64_t *keys = malloc(leaf->count * sizeof *keys);

    FUZZ_CHECK(keys != NULL);
    leaf_keys(leaf, keys);
    for (uint32_t i = 0; i < leaf->count && i < 64; i++) {
        first = 0;
        uint32_t found = leaf_find(leaf, keys[i], &first);
        FUZZ_CHECK((uint64_t)first + found <= leaf->count);
    }
    if (leaf->epochs) {
        struct leaf_epochs epochs = leaf_epochs_begin(leaf);
        for (uint32_t i = 0; i < leaf->count; i++)
            leaf_epochs_next(&epochs, i, i == 0 || keys[i] != keys[i - 1]);
    }
    free(keys);
    check_places(leaf);
}

static void read_segment(struct index_reader *r, const struct segment *s, struct error *e)
{
    struct window window = {.ahead = 256};
    struct buffer buffer = {0};
    struct leaf leaf = {0};
    uint32_t leaves;

    index_verify_segment(r, s, e);
    uint32_t of = index_leaf_of(s, s->footer.first_key, &leaves);
    FUZZ_CHECK((uint64_t)of + leaves <= s->footer.leaves);
    for (uint32_t i = 0; i < s->footer.leaves; i++)
        if (index_read_leaf(r, s, i, &window, &buffer, &leaf, e) == DELTAFS_OK)
            check_leaf(&leaf);
    leaf_fini(&leaf);
    buffer_fini(&buffer);
    window_fini(&window);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct mem_io files;
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1), epochs = fuzz_number(&in, 1), tail_length = fuzz_number(&in, 4);
    uint8_t *log = fuzz_bytes(&in, SIZE_MAX, &n);
    struct index_reader r;
    struct segment *s;
    uint32_t count;
    struct error tail = {0}, e = {0};

    if (mode & 1)
        structures_seal_log(log_seed(uuid), log, n);
    mem_io_begin(&files);
    mem_put(&files, "i", log, n);
    struct io io = io_default();
    int status = index_reader_open(&r, &io, "i", 0, uuid, (uint32_t)epochs, (uint32_t)epochs,
                                   mode & 2 ? tail_length : 0, &tail, &e);
    r.compacted = mode & 4 ? 1 : 0;
    for (uint32_t epoch = 0; status == DELTAFS_OK && epoch < epochs; epoch++) {
        if (index_epoch(&r, epoch, &s, &count, &e) == DELTAFS_OK)
            for (uint32_t i = 0; i < count; i++)
                read_segment(&r, &s[i], &e);
        else
            FUZZ_CHECK(strncmp(e.text, "i: ", 3) == 0 && strstr(e.text, "offset"));
    }
    index_reader_close(&r, &e);
    FUZZ_CHECK(mem_io_end(&files) == 0);
    free(log);
    return 0;
}
