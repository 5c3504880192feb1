/* The merged index against an oracle: for each byte of a small file, who wins there. */
#include "core/extent_map.h"
#include "unit_help.h"

#define FILE_MAX   1024
#define EXTENT_TOP 400

/* ---- The oracle ---- */

/* Whether the piece of `a` at `a_at` is above that of `b`. */
static int is_above(const struct extent *a, uint64_t a_at, const struct extent *b, uint64_t b_at)
{
    if (a->order != b->order)
        return a->order > b->order;
    if (a->session != b->session)
        return a->session > b->session;
    if (a->writer != b->writer)
        return a->writer > b->writer;
    if (a_at != b_at)
        return a_at > b_at;
    return a->kind != EXTENT_TRUNCATE && b->kind == EXTENT_TRUNCATE;
}

struct owner {
    const struct extent *extent;
    uint64_t at;       /* position of its piece */
    uint64_t begin;    /* of that in the file */
    uint64_t position; /* of the byte */
};

/* Who has the byte at `offset`, piece by piece. */
static struct owner oracle_find(const struct extent *x, size_t n, uint64_t offset)
{
    struct owner best = {0};

    for (size_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < x[i].count; k++) {
            uint64_t begin = x[i].offset + k * x[i].stride, at = x[i].position + k * x[i].position_stride;
            if (x[i].kind == EXTENT_EXTEND || offset < begin ||
                (x[i].kind == EXTENT_DATA && offset >= begin + x[i].size))
                continue;
            /* No writer puts two pieces at one position, but a forger may. */
            if (!best.extent || is_above(&x[i], at, best.extent, best.at) ||
                (begin > best.begin && !is_above(best.extent, best.at, &x[i], at)))
                best = (struct owner){&x[i], at, begin, at + offset - begin};
        }
    }
    return best;
}

static uint64_t oracle_size(const struct extent *x, size_t n)
{
    const struct extent *top = NULL;
    uint64_t size = 0;

    for (size_t i = 0; i < n; i++)
        if (x[i].kind == EXTENT_TRUNCATE &&
            (!top || is_above(&x[i], x[i].position, top, top->position) ||
             (!is_above(top, top->position, &x[i], x[i].position) && x[i].offset < top->offset)))
            top = &x[i];
    if (top)
        size = top->offset;
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < x[i].count && x[i].kind != EXTENT_TRUNCATE; k++)
            if ((!top || is_above(&x[i], x[i].position + k * x[i].position_stride, top, top->position)) &&
                x[i].offset + k * x[i].stride + x[i].size > size)
                size = x[i].offset + k * x[i].stride + x[i].size;
    return size;
}

static void check_window(struct extent_map *m, const struct extent *x, size_t n, uint64_t from, uint64_t to,
                         struct pieces *p)
{
    struct error e;
    uint64_t at = from;

    CHECK_IS(extent_map_find(m, from, to, p, &e), DELTAFS_OK);
    for (size_t i = 0; i < p->count; i++) {
        const struct piece *piece = &p->piece[i];
        CHECK_IS(piece->offset, at);
        CHECK(piece->size > 0);
        for (uint64_t k = 0; k < piece->size; k++) {
            struct owner want = oracle_find(x, n, at + k);
            CHECK_IS(piece->is_hole, !want.extent || want.extent->kind == EXTENT_TRUNCATE);
            if (piece->is_hole)
                continue;
            CHECK_IS(piece->session, want.extent->session);
            CHECK_IS(piece->writer, want.extent->writer);
            CHECK_IS(piece->position + k, want.position);
        }
        if (i > 0 && piece->is_hole)
            CHECK(!piece[-1].is_hole);
        at += piece->size;
    }
    CHECK_IS(at, to > from ? to : from);
}

/* ---- Histories ---- */

static struct extent random_extent(struct rng *r, int characters)
{
    struct extent x = {.order = rng_below(r, characters & 1 ? 3 : 1000),
                       .session = (uint32_t)rng_below(r, 2),
                       .writer = (uint32_t)rng_below(r, characters & 2 ? 2 : 5),
                       .position = 100 * rng_below(r, characters & 4 ? 4 : 100),
                       .count = 1};

    if (characters & 8 && rng_below(r, 8) == 0) {
        x.kind = rng_below(r, 2) ? EXTENT_TRUNCATE : EXTENT_EXTEND;
        x.offset = rng_below(r, FILE_MAX);
        return x;
    }
    x.offset = rng_below(r, FILE_MAX / 2);
    x.size = rng_below(r, rng_below(r, 2) ? 10 : 100) + 1;
    if (rng_below(r, 2)) {
        x.stride = x.size + rng_below(r, 40);
        x.position_stride = x.size + (rng_below(r, 2) ? 0 : rng_below(r, 40));
        x.count = rng_below(r, (FILE_MAX - x.offset) / x.stride) + 1;
        if (x.count == 1)
            x.stride = x.position_stride = 0;
    }
    return x;
}

static void test_histories(void **state)
{
    struct rng r = rng_init(71);
    struct pieces p = {0};
    static struct extent x[EXTENT_TOP];
    struct error e;

    (void)state;
    for (int round = 0; round < 400; round++) {
        struct extent_map m = {0};
        size_t n = rng_below(&r, round % 10 ? 40 : EXTENT_TOP) + 1;
        uint64_t order = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = random_extent(&r, round);
            order = x[i].order > order ? x[i].order : order;
            CHECK_IS(extent_map_add(&m, &x[i], &e), DELTAFS_OK);
            if (rng_below(&r, 20) == 0) {
                uint64_t from = rng_below(&r, FILE_MAX), to = rng_below(&r, FILE_MAX + 20);
                check_window(&m, x, i + 1, from, to, &p);
                CHECK_IS(extent_map_size(&m), oracle_size(x, i + 1));
            }
        }
        check_window(&m, x, n, 0, FILE_MAX + 10, &p);
        CHECK_IS(extent_map_size(&m), oracle_size(x, n));
        CHECK_IS(extent_map_order(&m), order);
        CHECK(extent_map_count(&m) <= n);
        extent_map_fini(&m);
    }
    pieces_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
