/* An extent log: a byte (1: its header and batches get right checksums, 2: its session is closed), an offset (u64) to
 * look at, then the log of session 0, writer 0 and the UUID 0. What is taken is added to an index, which must say the
 * same as a look at one entry after the other. */
#include <stdlib.h>
#include <string.h>
#include "logical/read/extent_map.h"
#include "fuzz_target.h"
#include "mem_io.h"
#include "io/log.h"
#include "structures.h"

#define EXTENTS_MAX 256  /* that are compared */
#define WINDOW      1000 /* bytes that are looked up at once */

static const uint8_t uuid[FORMAT_UUID_SIZE];

struct taken {
    struct extent extent[EXTENTS_MAX];
    size_t count;
    struct extent_map map;
};

static int take(const struct extent *x, void *arg, struct error *e)
{
    struct taken *t = arg;

    FUZZ_CHECK(extent_is_valid(x) && x->session == 0 && x->writer == 0);
    if (t->count < EXTENTS_MAX)
        t->extent[t->count++] = *x;
    return t->count < EXTENTS_MAX ? extent_map_add(&t->map, x, e) : DELTAFS_OK;
}

/* What stands at `offset`: UINT64_MAX for a hole, else the byte's position. */
static uint64_t look(const struct taken *t, uint64_t offset)
{
    uint64_t found = UINT64_MAX, order = 0, at = 0, begin = 0;
    int is_cut = 1, is_any = 0;

    for (size_t i = 0; i + (t->count == EXTENTS_MAX) < t->count; i++) {
        const struct extent *x = &t->extent[i];
        uint64_t k = x->count > 1 ? (offset - x->offset) / x->stride : 0;
        if (x->kind == EXTENT_EXTEND || offset < x->offset || k >= x->count ||
            (x->kind == EXTENT_DATA && offset - x->offset - k * x->stride >= x->size))
            continue;
        uint64_t position = x->position + k * x->position_stride, from = x->offset + k * x->stride;
        int cuts = x->kind == EXTENT_TRUNCATE;
        if (is_any && (x->order < order || (x->order == order && position < at) ||
                       (x->order == order && position == at && (cuts > is_cut || (cuts == is_cut && from < begin)))))
            continue;
        is_any = 1;
        order = x->order;
        at = position;
        begin = from;
        is_cut = cuts;
        found = cuts ? UINT64_MAX : position + offset - from;
    }
    return found;
}

static void check_window(struct taken *t, uint64_t from, struct pieces *p)
{
    uint64_t to = from < UINT64_MAX - WINDOW ? from + WINDOW : UINT64_MAX, at = from;
    struct error e;

    FUZZ_CHECK(extent_map_find(&t->map, from, to, p, &e) == DELTAFS_OK);
    for (size_t i = 0; i < p->count; i++) {
        const struct piece *x = &p->piece[i];
        FUZZ_CHECK(x->offset == at && x->size > 0 && x->size <= to - at);
        at += x->size;
        uint64_t first = look(t, x->offset), last = look(t, at - 1);
        FUZZ_CHECK(x->is_hole ? first == UINT64_MAX && last == UINT64_MAX
                              : first == x->position && last == x->position + x->size - 1);
    }
    FUZZ_CHECK(at == to);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct mem_io files;
    static struct taken taken;
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1), offset = fuzz_number(&in, 8), from = 0;
    uint8_t *log = fuzz_bytes(&in, SIZE_MAX, &n);
    struct buffer out = {0};
    struct pieces p = {0};
    struct error e = {0};
    size_t got = 0, used;
    int is_last = 0;

    if (mode & 1)
        structures_seal_extents(log_seed(uuid), log, n);
    mem_io_begin(&files);
    mem_put(&files, "x", log, n);
    struct io io = io_default();
    taken.count = 0;
    if (extent_log_read(&io, "x", 0, 0, uuid, (int)(mode & 2), &from, &is_last, &out, &got, &e) == DELTAFS_OK) {
        FUZZ_CHECK(from <= n && (got == 0 || from == LOG_HEADER_SIZE + got));
        FUZZ_CHECK(extent_batches_decode(out.bytes, got, log_seed(uuid), "x", 0, take, &taken, &used, &is_last, &e) ==
                   DELTAFS_OK);
        FUZZ_CHECK(used == got);
        check_window(&taken, offset, &p);
        check_window(&taken, 0, &p);
        check_window(&taken, taken.count > 0 ? taken.extent[taken.count - 1].offset : 0, &p);
        FUZZ_CHECK(extent_map_size(&taken.map) <= EXTENT_MAX);
    } else {
        FUZZ_CHECK(e.status == DELTAFS_ERR_DAMAGED && strncmp(e.text, "x: ", 3) == 0 && strstr(e.text, "offset"));
    }
    extent_map_fini(&taken.map);
    pieces_fini(&p);
    buffer_fini(&out);
    FUZZ_CHECK(mem_io_end(&files) == 0);
    free(log);
    return 0;
}
