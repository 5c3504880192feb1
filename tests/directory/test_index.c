/* The index log as one reads what the other wrote: segments, tail or no tail, too many fences for it; and files forged
 * with right checksums, which must be refused or read, but never beyond their bytes (run this under a sanitizer). */
#include "base/coding.h"
#include "base/crc32c.h"
#include "directory/format/directory_format.h"
#include "directory/format/index.h"
#include "unit_help.h"

static struct index_scratch scratch;
static struct keys_store store;
static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
#define PARTITION 5u

/* One sorted run of one-record blocks, each of 40 bytes, so that what a leaf must say is plain. */
static void make_run(struct run *run, uint32_t number, uint64_t first, uint64_t step, uint32_t n, uint64_t offset)
{
    struct error e;

    CHECK_IS(run_init(run, number, n, offset, &store, &e), DELTAFS_OK);
    run->blocks = malloc((n + 1) * sizeof *run->blocks);
    CHECK(run->blocks != NULL);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_IS(keys_put(&store, i == 0 ? first : step, &e), DELTAFS_OK);
        run->blocks[i] = (struct run_block){40, 1};
    }
    run->block_count = n;
}

/* Two runs, of even and of odd numbers, times the segment's own scale. */
static void write_segment(struct index_writer *w, uint32_t epoch, uint32_t segment, int is_last, uint32_t n)
{
    struct footer f = {.epoch = epoch, .segment = segment, .is_last = is_last, .records = 2 * n, .bytes_raw = 16 * n};
    struct run run[2];
    struct error e;
    uint64_t scale = epoch + segment + 1;

    make_run(&run[0], 2 * segment, 0, 2 * scale, n, LOG_HEADER_SIZE);
    make_run(&run[1], 2 * segment + 1, scale, 2 * scale, n, LOG_HEADER_SIZE + 40 * (uint64_t)n);
    CHECK_IS(index_write_segment(w, run, n > 0 ? 2 : 0, &f, &e), DELTAFS_OK);
    run_fini(&run[0]);
    run_fini(&run[1]);
    keys_clear(&store);
}

static int read_leaf(struct index_reader *r, const struct segment *s, uint32_t i, struct buffer *bytes,
                     struct leaf *leaf, struct error *e)
{
    struct window window = {0};
    int status = index_read_leaf(r, s, i, &window, bytes, leaf, e);

    window_fini(&window);
    return status;
}

struct made {
    const char *path;
    uint32_t epochs;
    uint64_t tail; /* bytes of it, 0 for none */
};

/* Epoch e has e % 3 + 1 segments; the one with e % 5 == 3 is empty. */
static struct made make_log(const char *name, uint32_t epochs, int with_tail, uint32_t n)
{
    struct made made = {unit_path("%s", name), epochs, 0};
    struct io io = io_default();
    struct index_writer w;
    struct error e;

    unit_remove(made.path);
    CHECK_IS(index_writer_open(&w, &io, made.path, PARTITION, uuid, NULL, 1, 4096, 4 << 20, &scratch, NULL, &e),
             DELTAFS_OK);
    for (uint32_t epoch = 0; epoch < epochs; epoch++)
        for (uint32_t s = 0; s <= epoch % 3; s++)
            write_segment(&w, epoch, s, s == epoch % 3, epoch % 5 == 3 ? 0 : n);
    if (with_tail)
        CHECK_IS(index_write_tail(&w, &made.tail, &e), DELTAFS_OK);
    CHECK_IS(log_flush(&w.log, &e), DELTAFS_OK);
    CHECK_IS(log_close(&w.log, &e), DELTAFS_OK);
    return made;
}

static int open_log(struct index_reader *r, struct io *io, const struct made *m, uint32_t epochs, struct error *tail)
{
    struct error e;

    *tail = (struct error){0};
    int status = index_reader_open(r, io, m->path, PARTITION, uuid, epochs, epochs, m->tail, tail, &e);
    if (status != DELTAFS_OK)
        CHECK_IS(status, DELTAFS_ERR_DAMAGED);
    return status;
}

/* Every key of a segment, and none between. */
static void check_segment(struct index_reader *r, const struct segment *s, uint32_t n)
{
    struct buffer bytes = {0};
    struct leaf leaf = {0};
    struct error e;
    uint64_t scale = s->footer.epoch + s->footer.segment + 1;
    uint32_t leaves, first, last = UINT32_MAX;

    for (uint64_t i = 0; i < 2 * n + 5; i++) {
        for (uint64_t off = 0; off < 2; off++) {
            uint64_t key = i * scale + off;
            uint32_t want = i < 2 * n && (off == 0 || scale == 1) && key / scale < 2 * n ? 1 : 0, found = 0;
            uint32_t at = index_leaf_of(s, key, &leaves);
            CHECK(leaves <= 1 && at + leaves <= s->footer.leaves);
            if (leaves == 1 && at != last)
                CHECK_IS(read_leaf(r, s, at, &bytes, &leaf, &e), DELTAFS_OK);
            last = leaves == 1 ? at : last;
            if (leaves == 1)
                found = leaf_find(&leaf, key, &first);
            CHECK_IS(found, want);
        }
    }
    CHECK_IS(index_verify_segment(r, s, &e), DELTAFS_OK);
    buffer_fini(&bytes);
    leaf_fini(&leaf);
}

static void check_log(struct index_reader *r, const struct made *m, uint32_t epochs, uint32_t n)
{
    struct segment *s;
    struct error e;
    uint32_t count;

    (void)m;
    for (uint32_t epoch = 0; epoch < epochs; epoch++) {
        CHECK_IS(index_epoch(r, epoch, &s, &count, &e), DELTAFS_OK);
        CHECK_IS(count, epoch % 3 + 1);
        for (uint32_t i = 0; i < count; i++)
            check_segment(r, &s[i], epoch % 5 == 3 ? 0 : n);
    }
    CHECK_IS(index_epoch(r, epochs, &s, &count, &e), DELTAFS_ERR_DAMAGED);
}

/* With a tail: one read. Without: footers are found from the end, and later ones than asked for are passed over. */
static void test_tail_or_none(void **state)
{
    static const uint32_t sizes[] = {1, 100, 3000};
    struct io io = io_default();
    struct index_reader r;
    struct error tail, e;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (int with_tail = 0; with_tail < 2; with_tail++) {
            struct made m = make_log("log", 9, with_tail, sizes[i]);
            for (uint32_t epochs = 1; epochs <= 9; epochs += 4) {
                uint64_t before = io.reads;
                if (with_tail && epochs < 9)
                    continue;
                CHECK_IS(open_log(&r, &io, &m, epochs, &tail), DELTAFS_OK);
                CHECK_IS(tail.status, DELTAFS_OK);
                CHECK(!with_tail || io.reads == before + 1);
                check_log(&r, &m, epochs, sizes[i]);
                CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
            }
        }
    }
}

/* So many segments that their fences make too long a tail: it has footers alone, and no segment is lost. */
static void test_fences_left_out(void **state)
{
    enum { EPOCHS = 20000 };
    struct io io = io_default();
    struct index_writer w;
    struct index_reader r;
    struct made m = {unit_path("fences"), EPOCHS, 0};
    struct error tail, e;
    struct segment *s;
    uint32_t count;

    (void)state;
    CHECK_IS(index_writer_open(&w, &io, m.path, PARTITION, uuid, NULL, 1, 1 << 20, 100000, &scratch, NULL, &e),
             DELTAFS_OK);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        struct index_end mark = index_mark(&w);
        write_segment(&w, epoch, 0, 1, epoch % 10000 == 77);
        /* Some epochs are discarded once. */
        if (epoch % 1000 == 0) {
            CHECK_IS(index_rewind(&w, &mark, &e), DELTAFS_OK);
            write_segment(&w, epoch, 0, 1, epoch % 10000 == 77);
        }
    }
    CHECK_IS(index_write_tail(&w, &m.tail, &e), DELTAFS_OK);
    CHECK_IS(m.tail, (uint64_t)EPOCHS * FOOTER_SIZE + TAIL_TRAILER_SIZE);
    CHECK_IS(log_close(&w.log, &e), DELTAFS_OK);
    CHECK_IS(open_log(&r, &io, &m, EPOCHS, &tail), DELTAFS_OK);
    CHECK_IS(tail.status, DELTAFS_OK);
    CHECK_IS(r.count, EPOCHS);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch += epoch % 10000 == 77 ? 1 : 11) {
        CHECK_IS(index_epoch(&r, epoch, &s, &count, &e), DELTAFS_OK);
        CHECK_IS(count, 1);
        check_segment(&r, s, epoch % 10000 == 77);
    }
    CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
}

/* An epoch that is discarded leaves no footer behind, with or without another in its place. */
static void test_rewind(void **state)
{
    struct io io = io_default();
    struct index_writer w;
    struct index_reader r;
    struct made m = {unit_path("rewind"), 2, 0};
    struct error tail, e;
    struct segment *s;
    uint32_t count;

    (void)state;
    for (int again = 0; again < 2; again++) {
        unit_remove(m.path);
        CHECK_IS(index_writer_open(&w, &io, m.path, PARTITION, uuid, NULL, 1, 4096, 4 << 20, &scratch, NULL, &e),
                 DELTAFS_OK);
        write_segment(&w, 0, 0, 1, 500);
        struct index_end mark = index_mark(&w);
        write_segment(&w, 1, 0, 0, 3000);
        write_segment(&w, 1, 1, 0, 4000);
        write_segment(&w, 1, 2, 1, 10);
        CHECK_IS(log_flush(&w.log, &e), DELTAFS_OK);
        CHECK_IS(index_rewind(&w, &mark, &e), DELTAFS_OK);
        if (again)
            write_segment(&w, 1, 0, 1, 20);
        CHECK_IS(log_flush(&w.log, &e), DELTAFS_OK);
        CHECK_IS(log_close(&w.log, &e), DELTAFS_OK);
        CHECK_IS(open_log(&r, &io, &m, 2, &tail), DELTAFS_OK);
        CHECK_IS(r.count, 1 + again);
        CHECK_IS(index_epoch(&r, 0, &s, &count, &e), DELTAFS_OK);
        check_segment(&r, s, 500);
        CHECK_IS(index_epoch(&r, 1, &s, &count, &e), again ? DELTAFS_OK : DELTAFS_ERR_DAMAGED);
        if (again)
            check_segment(&r, s, 20);
        CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    }
}

/* ---- Damage ---- */

/* Each byte of the tail, and the file cut at each length: the segments are found by their footers, or missed. */
static void test_damaged_tail(void **state)
{
    struct io io = io_default();
    struct made m = make_log("damaged", 4, 1, 3);
    struct index_reader r;
    struct error tail, e;
    struct segment *s;
    uint32_t count;
    size_t n;
    uint8_t *bytes = unit_load(m.path, &n);

    (void)state;
    for (size_t at = n - m.tail; at < n; at++) {
        unit_poke(m.path, at, bytes[at] ^ (uint8_t)(1u << at % 8));
        CHECK_IS(open_log(&r, &io, &m, 4, &tail), DELTAFS_OK);
        CHECK_IS(tail.status, DELTAFS_ERR_DAMAGED);
        for (uint32_t epoch = 0; epoch < 4; epoch++)
            CHECK_IS(index_epoch(&r, epoch, &s, &count, &e), DELTAFS_OK);
        CHECK_IS(r.count, 1 + 2 + 3 + 1);
        CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
        unit_poke(m.path, at, bytes[at]);
    }
    for (size_t cut = 0; cut < n; cut++) {
        uint32_t whole = 0;
        unit_save(m.path, bytes, cut);
        CHECK_IS(open_log(&r, &io, &m, 4, &tail), DELTAFS_OK);
        CHECK_IS(tail.status, DELTAFS_ERR_DAMAGED);
        for (uint32_t epoch = 0; epoch < 4; epoch++)
            whole += index_epoch(&r, epoch, &s, &count, &e) == DELTAFS_OK && count == epoch % 3 + 1;
        CHECK(cut < n - m.tail || whole == 4);
        CHECK(whole < 4 || cut >= n - m.tail);
        CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    }
    free(bytes);
}

/* A footer or fence damaged, of any segment, with no tail to help: just its epoch is lost, and never only a part of it.
 */
static void test_damaged_segment(void **state)
{
    struct io io = io_default();
    struct rng rng = rng_init(43);
    struct made m = make_log("damaged", 7, 0, 3);
    struct index_reader r;
    struct error tail, e;
    struct footer footer[32];
    uint32_t footers, count;
    size_t n;
    uint8_t *bytes = unit_load(m.path, &n);

    (void)state;
    CHECK_IS(open_log(&r, &io, &m, 7, &tail), DELTAFS_OK);
    footers = r.count;
    for (uint32_t i = 0; i < footers; i++)
        footer[i] = r.segment[i].footer;
    CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    for (uint32_t i = 0; i < 2 * footers; i++) {
        const struct footer *f = &footer[i / 2];
        size_t at = (size_t)(i % 2 ? f->offset + rng_below(&rng, FOOTER_SIZE)
                                   : f->fence_offset + rng_below(&rng, f->fence_length));
        unit_poke(m.path, at, (uint8_t)(bytes[at] ^ 0x10));
        CHECK_IS(open_log(&r, &io, &m, 7, &tail), DELTAFS_OK);
        for (uint32_t epoch = 0; epoch < 7; epoch++) {
            struct segment *s;
            int status = index_epoch(&r, epoch, &s, &count, &e);
            CHECK_IS(status, epoch == f->epoch ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
            CHECK(status != DELTAFS_OK || count == epoch % 3 + 1);
        }
        CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
        unit_poke(m.path, at, bytes[at]);
    }
    free(bytes);
}

/* Do whatever a reader may, whatever the file holds. Returns how much could be used. */
static unsigned use_log(struct index_reader *r, uint32_t epochs, struct rng *rng)
{
    struct buffer bytes = {0};
    struct leaf leaf = {0};
    struct segment *s;
    struct error e;
    unsigned used = 0;
    uint32_t count, leaves, first;

    for (uint32_t epoch = 0; epoch < epochs; epoch++) {
        if (index_epoch(r, epoch, &s, &count, &e) != DELTAFS_OK)
            continue;
        for (; count > 0; count--, s++) {
            used++;
            index_verify_segment(r, s, &e);
            for (uint32_t i = 0; i < s->footer.leaves; i++)
                if (read_leaf(r, s, i, &bytes, &leaf, &e) == DELTAFS_OK)
                    leaf_find(&leaf, rng_below(rng, 1000), &first);
            for (int i = 0; i < 10; i++) {
                uint32_t at = index_leaf_of(s, i < 5 ? rng_below(rng, 1000) : rng_next(rng), &leaves);
                CHECK(leaves <= s->footer.leaves && at <= s->footer.leaves - leaves);
            }
        }
    }
    buffer_fini(&bytes);
    leaf_fini(&leaf);
    return used;
}

/* Where one structure stands. */
struct part {
    size_t at, n;
};

static void mutate(uint8_t *p, size_t n, struct rng *r)
{
    for (uint64_t k = rng_below(r, 3) + 1; k > 0; k--)
        p[4 + rng_below(r, n - 4)] = (uint8_t)(rng_below(r, 3) ? rng_next(r) : rng_below(r, 2) * 0xff);
}

/* Seal a tail again: its trailer's checksum covers all of it. */
static void seal_tail(uint8_t *p, size_t n)
{
    uint8_t *t = p + n - TAIL_TRAILER_SIZE;

    put_u32(t, crc32c(crc32c(log_seed(uuid), p, n - TAIL_TRAILER_SIZE), t + 4, TAIL_TRAILER_SIZE - 4));
}

static void check_forged(const struct made *m, struct rng *rng, unsigned *used)
{
    struct io io = io_default();
    struct index_reader r;
    struct error tail, e;

    if (open_log(&r, &io, m, m->epochs, &tail) == DELTAFS_OK)
        *used += use_log(&r, m->epochs, rng);
    index_reader_close(&r, &e);
}

/* Fences and footers where they were written. */
static void test_forged_segments(void **state)
{
    struct io io = io_default();
    struct rng rng = rng_init(41);
    struct made m = make_log("forged", 4, 0, 40);
    struct index_reader r;
    struct part part[32];
    struct error tail, e;
    size_t n, parts = 0;
    uint8_t *bytes = unit_load(m.path, &n), *forged = malloc(n);
    unsigned used = 0;

    (void)state;
    CHECK(forged != NULL);
    CHECK_IS(open_log(&r, &io, &m, 4, &tail), DELTAFS_OK);
    for (uint32_t i = 0; i < r.count; i++) {
        const struct footer *f = &r.segment[i].footer;
        part[parts++] = (struct part){(size_t)f->offset, FOOTER_SIZE};
        part[parts++] = (struct part){(size_t)f->fence_offset, f->fence_length};
    }
    CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    for (int round = 0; round < 2000; round++) {
        memcpy(forged, bytes, n);
        for (uint64_t k = rng_below(&rng, 2) + 1; k > 0; k--) {
            struct part p = part[rng_below(&rng, parts)];
            mutate(forged + p.at, p.n, &rng);
            log_seal(log_seed(uuid), forged + p.at, p.n);
        }
        unit_save(m.path, forged, n);
        check_forged(&m, &rng, &used);
    }
    CHECK(used > 2000);
    free(bytes);
    free(forged);
}

/* The tail: its trailer, and the footers and fences in it. */
static void test_forged_tail(void **state)
{
    struct rng rng = rng_init(42);
    struct made m = make_log("forged", 4, 1, 40);
    struct part part[32];
    size_t n, parts = 0;
    uint8_t *bytes = unit_load(m.path, &n), *forged = malloc(n);
    unsigned used = 0;

    (void)state;
    CHECK(forged != NULL);
    for (size_t at = n - m.tail; at < n - TAIL_TRAILER_SIZE;) {
        size_t fence = get_u32(bytes + at + 28);
        part[parts++] = (struct part){at, FOOTER_SIZE};
        part[parts++] = (struct part){at + FOOTER_SIZE, fence};
        at += FOOTER_SIZE + fence;
    }
    part[parts++] = (struct part){n - TAIL_TRAILER_SIZE, TAIL_TRAILER_SIZE};
    for (int round = 0; round < 2000; round++) {
        memcpy(forged, bytes, n);
        struct part p = part[rng_below(&rng, 3) ? rng_below(&rng, parts) : parts - 1];
        mutate(forged + p.at, p.n, &rng);
        log_seal(log_seed(uuid), forged + p.at, p.n);
        seal_tail(forged + n - m.tail, m.tail);
        unit_save(m.path, forged, n);
        /* The manifest's bound of the tail's length is only a bound. */
        struct made said = m;
        said.tail += rng_below(&rng, 4) == 0 ? rng_below(&rng, 2 * n) : 0;
        check_forged(&said, &rng, &used);
    }
    CHECK(used > 2000);
    free(bytes);
    free(forged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tail_or_none),    cmocka_unit_test(test_fences_left_out),
        cmocka_unit_test(test_rewind),          cmocka_unit_test(test_damaged_tail),
        cmocka_unit_test(test_damaged_segment), cmocka_unit_test(test_forged_segments),
        cmocka_unit_test(test_forged_tail),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
