/* The merged index against an oracle: for each byte of a small file, who wins there. */
#include "logical/read/extent_map.h"
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
    if (characters & 16 && rng_below(r, 2)) { /* the same pieces as others have */
        x.offset = rng_below(r, 2);
        x.size = 2;
        x.count = 20;
        x.stride = 5;
        x.position_stride = 2 + rng_below(r, 20);
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
        size_t n = rng_below(&r, round % 10 ? round & 16 ? 120 : 40 : EXTENT_TOP) + 1;
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
        CHECK_IS(m.order, order);
        CHECK(extent_map_count(&m) <= n);
        extent_map_fini(&m);
    }
    pieces_fini(&p);
}

/* ---- What nothing stands over ---- */

struct on_top {
    struct extent_map *map;
    struct pieces p;
    uint32_t session, writer;
    uint64_t handed, on_top; /* runs of that writer */
};

/* All pieces of a run that is said to be on top are the file's. */
static int check_on_top(void *arg, const struct map_run *run, struct error *e)
{
    struct on_top *t = arg;

    if (run->session != t->session || run->writer != t->writer)
        return DELTAFS_OK;
    t->handed++;
    if (!extent_map_is_on_top(t->map, run))
        return DELTAFS_OK;
    t->on_top++;
    for (uint64_t k = 0; k < run->count; k++) {
        uint64_t from = run->offset + k * run->stride;
        CHECK_IS(extent_map_find(t->map, from, from + run->size, &t->p, e), DELTAFS_OK);
        CHECK(t->p.count == 1 && !t->p.piece[0].is_hole && t->p.piece[0].session == run->session &&
              t->p.piece[0].writer == run->writer &&
              t->p.piece[0].position == run->position + k * run->position_stride);
    }
    return DELTAFS_OK;
}

/* Of writers that write in turn all is on top, until somebody writes over it. */
static void check_turns(struct rng *r, int is_disturbed)
{
    struct extent_map m = {0};
    struct on_top t = {.map = &m};
    uint64_t writers = 2 + rng_below(r, 150), size = 1 + rng_below(r, 20), at = rng_below(r, 100);
    uint64_t hit = rng_below(r, writers);
    struct error e;

    for (uint64_t w = 0; w < writers; w++) {
        struct extent x = {.offset = at + w * size,
                           .size = size,
                           .stride = writers * size,
                           .count = 2 + rng_below(r, 9),
                           .position_stride = size,
                           .order = 7,
                           .session = 1,
                           .writer = (uint32_t)w};
        CHECK_IS(extent_map_add(&m, &x, &e), DELTAFS_OK);
    }
    struct extent over = {
        .offset = at + hit * size + size - 1, .size = 1, .count = 1, .order = is_disturbed ? 8 : 6, .session = 1};
    CHECK_IS(extent_map_add(&m, &over, &e), DELTAFS_OK);
    t.session = 1;
    for (t.writer = 0; t.writer < writers; t.writer++)
        CHECK_IS(extent_map_each(&m, 0, UINT64_MAX, check_on_top, &t, &e), DELTAFS_OK);
    CHECK(t.handed == writers + 1 && t.on_top == writers);
    pieces_fini(&t.p);
    extent_map_fini(&m);
}

static void test_on_top(void **state)
{
    struct rng r = rng_init(77);
    struct error e;
    uint64_t on_top = 0;

    (void)state;
    for (int round = 0; round < 400; round++) {
        struct extent_map m = {0};
        struct on_top t = {.map = &m};
        for (size_t n = rng_below(&r, round & 32 ? 200 : 12) + 1; n > 0; n--) {
            struct extent x = random_extent(&r, round);
            CHECK_IS(extent_map_add(&m, &x, &e), DELTAFS_OK);
        }
        for (uint32_t who = 0; who < 10; who++) {
            t.session = who / 5;
            t.writer = who % 5;
            CHECK_IS(extent_map_each(&m, 0, UINT64_MAX, check_on_top, &t, &e), DELTAFS_OK);
        }
        on_top += t.on_top;
        pieces_fini(&t.p);
        extent_map_fini(&m);
    }
    CHECK(on_top > 400);
    for (int round = 0; round < 100; round++)
        check_turns(&r, round % 2);
}

/* ---- Files: from the calls of writers to the bytes of a reader ---- */

#define WRITERS 4

/* What a reader must find, byte by byte; kept as a file system would, in the order in which things are published. */
struct model_file {
    uint64_t position[FILE_MAX]; /* from 1; 0: a hole */
    uint32_t session[FILE_MAX], writer[FILE_MAX];
    uint64_t size;
};

/* What a writer has done since it published last. */
struct action {
    enum extent_kind kind;
    uint64_t offset, size, position;
};

struct file_writer {
    struct extent_list list;
    struct action action[600];
    size_t count;
    uint64_t position;
};

static void writer_act(struct file_writer *w, enum extent_kind kind, uint64_t offset, uint64_t size)
{
    struct error e;

    CHECK(w->count < sizeof w->action / sizeof w->action[0]);
    w->action[w->count++] = (struct action){kind, offset, size, w->position};
    if (kind == EXTENT_DATA)
        CHECK_IS(extent_list_add(&w->list, offset, size, w->position, &e), DELTAFS_OK);
    else
        CHECK_IS(extent_list_mark(&w->list, kind, offset, w->position, &e), DELTAFS_OK);
    w->position += size;
}

static void writer_pattern(struct file_writer *w, struct rng *r)
{
    uint64_t columns = rng_below(r, 4) + 1, turns = rng_below(r, 8) + 1, at[4], size[4], stride[4];
    uint64_t even = rng_below(r, 2), parts = rng_below(r, 2) + 1;

    for (uint64_t k = 0; k < columns; k++) {
        at[k] = even ? 100 * k : rng_below(r, 500);
        size[k] = even ? 4 : rng_below(r, 12) + 1;
        stride[k] = rng_below(r, 5) ? rng_below(r, 40) : 0;
    }
    for (uint64_t i = 0; i < turns; i++)
        for (uint64_t k = 0; k < columns; k++)
            for (uint64_t p = 0; p < parts; p++)
                writer_act(w, EXTENT_DATA, at[k] + i * stride[k] + p * size[k], size[k]);
}

static void model_act(struct model_file *m, const struct action *a, uint32_t session, uint32_t writer)
{
    if (a->kind == EXTENT_DATA) {
        for (uint64_t i = 0; i < a->size; i++) {
            m->position[a->offset + i] = a->position + i + 1;
            m->session[a->offset + i] = session;
            m->writer[a->offset + i] = writer;
        }
    }
    if (a->kind == EXTENT_TRUNCATE) {
        for (uint64_t i = a->offset; i < FILE_MAX; i++)
            m->position[i] = 0;
        m->size = a->offset;
    } else if (a->offset + a->size > m->size) {
        m->size = a->offset + a->size;
    }
}

static int add_to_map(const struct extent *x, void *arg, struct error *e)
{
    return extent_map_add(arg, x, e);
}

/* Publish all that the writer did, in the model and as a batch. */
static void writer_publish(struct file_writer *w, struct model_file *model, uint32_t session, uint32_t writer,
                           uint64_t order, struct buffer *out, size_t *n)
{
    struct error e;

    CHECK_IS(extent_list_encode(&w->list, 9, session, writer, order, w->position, 0, out, n, &e), DELTAFS_OK);
    for (size_t i = 0; i < w->count; i++)
        model_act(model, &w->action[i], session, writer);
    extent_list_clear(&w->list);
    w->count = 0;
}

static void check_model(struct extent_map *m, const struct model_file *want, uint64_t from, uint64_t to,
                        struct pieces *p)
{
    struct error e;

    CHECK_IS(extent_map_size(m), want->size);
    CHECK_IS(extent_map_find(m, from, to, p, &e), DELTAFS_OK);
    for (size_t i = 0; i < p->count; i++) {
        const struct piece *x = &p->piece[i];
        CHECK(i == 0 ? x->offset == from : x->offset == x[-1].offset + x[-1].size);
        for (uint64_t k = 0, at; k < x->size; k++) {
            at = x->offset + k;
            CHECK_IS(x->is_hole, at >= FILE_MAX || want->position[at] == 0);
            CHECK(x->is_hole || (x->position + k + 1 == want->position[at] && x->session == want->session[at] &&
                                 x->writer == want->writer[at]));
        }
    }
}

/* The batches, from the last to the first or in order, into a new map: the answer is the same. */
static void check_batches(const struct buffer *out, const size_t *begin, size_t batches, struct rng *r,
                          const struct model_file *want, struct pieces *p)
{
    struct extent_map m = {0};
    struct error e;
    size_t used, turn = rng_below(r, batches);
    int is_last, is_back = (int)rng_below(r, 2);

    for (size_t i = 0; i < batches; i++) {
        size_t b = (i + turn) % batches;
        b = is_back ? batches - 1 - b : b;
        CHECK_IS(extent_batches_decode(out->bytes + begin[b], begin[b + 1] - begin[b], 9, "log", 0, add_to_map, &m,
                                       &used, &is_last, &e),
                 DELTAFS_OK);
        if (rng_below(r, 4) == 0)
            CHECK_IS(extent_map_find(&m, rng_below(r, FILE_MAX), rng_below(r, FILE_MAX), p, &e), DELTAFS_OK);
        if (rng_below(r, 4) == 0)
            extent_map_size(&m);
    }
    check_model(&m, want, 0, FILE_MAX + 5, p);
    extent_map_fini(&m);
}

static void test_files(void **state)
{
    static struct file_writer writer[WRITERS];
    static struct model_file model;
    struct rng r = rng_init(72);
    struct pieces p = {0};
    struct buffer out = {0};
    struct error e;

    (void)state;
    for (int round = 0; round < 300; round++) {
        size_t n = 0, used, batches = 0, begin[8 * WRITERS + 1] = {0};
        uint32_t session = 0;
        struct extent_map m = {0};
        int is_last;
        memset(&model, 0, sizeof model);
        for (uint64_t order = 1; order <= 8; order++) {
            /* All writers publish with one order, after patterns and marks. */
            for (uint32_t w = 0; w < WRITERS; w++) {
                for (uint64_t k = rng_below(&r, 4); k > 0; k--) {
                    if (rng_below(&r, 6) == 0)
                        writer_act(&writer[w], EXTENT_TRUNCATE, rng_below(&r, 900), 0);
                    if (rng_below(&r, 6) == 0)
                        writer_act(&writer[w], EXTENT_EXTEND, rng_below(&r, 900), 0);
                    if (rng_below(&r, 6) == 0)
                        writer_act(&writer[w], EXTENT_TRUNCATE, rng_below(&r, 900), 0);
                    writer_pattern(&writer[w], &r);
                }
                begin[batches] = n;
                writer_publish(&writer[w], &model, session, w, order, &out, &n);
                begin[++batches] = n;
            }
            CHECK_IS(extent_batches_decode(out.bytes + begin[batches - WRITERS], n - begin[batches - WRITERS], 9, "log",
                                           0, add_to_map, &m, &used, &is_last, &e),
                     DELTAFS_OK);
            check_model(&m, &model, rng_below(&r, FILE_MAX), FILE_MAX, &p);
            CHECK_IS(m.order <= order, 1);
            if (rng_below(&r, 4) == 0) {
                session++;
                for (uint32_t w = 0; w < WRITERS; w++)
                    writer[w].position = 0;
            }
        }
        check_batches(&out, begin, batches, &r, &model, &p);
        extent_map_fini(&m);
    }
    for (uint32_t w = 0; w < WRITERS; w++)
        extent_list_fini(&writer[w].list);
    buffer_fini(&out);
    pieces_fini(&p);
}

/* ---- Many entries, and great ones ---- */

/* So many that there are several levels; windows of a few bytes are compared with all entries. */
static void test_levels(void **state)
{
    enum { COUNT = 60000 };
    struct extent *x = malloc(COUNT * sizeof *x);
    struct memory memory = {.limit = UINT64_MAX};
    struct extent_map m = {.memory = &memory};
    struct pieces p = {0};
    struct rng r = rng_init(73);
    struct error e;

    (void)state;
    CHECK(x != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (struct extent){.offset = rng_below(&r, 10000000),
                               .size = rng_below(&r, i % 100 ? 100 : 100000) + 1,
                               .count = 1,
                               .position = 1000 * i,
                               .order = rng_below(&r, 100)};
        if (i % 1000 == 0) {
            x[i].count = rng_below(&r, 1000) + 2;
            x[i].stride = x[i].position_stride = x[i].size + rng_below(&r, 1000);
        }
        CHECK_IS(extent_map_add(&m, &x[i], &e), DELTAFS_OK);
        if (i % 4000 == 0 || i > COUNT - 20) {
            uint64_t from = rng_below(&r, 10000000);
            check_window(&m, x, i + 1, from, from + 3, &p);
        }
        CHECK(m.levels < 20);
    }
    for (unsigned i = 1; i < m.levels; i++)
        CHECK(m.level[i].count < m.level[i - 1].count);
    CHECK_IS(extent_map_size(&m), oracle_size(x, COUNT));
    CHECK(memory.used < 2 * COUNT * sizeof(struct map_run));
    extent_map_fini(&m);
    pieces_fini(&p);
    free(x);
}

/* Runs of any count cost no more than what is in the window. */
static void test_great_runs(void **state)
{
    struct extent_map m = {0};
    struct pieces p = {0};
    struct error e;

    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        struct extent x = {.offset = i,
                           .size = 1,
                           .stride = 2 + i,
                           .count = (EXTENT_MAX - 100) / (2 + i),
                           .position_stride = 1,
                           .order = i};
        CHECK_IS(extent_map_add(&m, &x, &e), DELTAFS_OK);
    }
    for (uint64_t at = 1; at < EXTENT_MAX / 3; at = 3 * at + 1)
        CHECK_IS(extent_map_find(&m, at, at + 100, &p, &e), DELTAFS_OK);
    CHECK_IS(extent_map_find(&m, EXTENT_MAX - 200, UINT64_MAX, &p, &e), DELTAFS_OK);
    CHECK(p.count > 1 && p.piece[p.count - 1].is_hole);
    /* A long piece hides them: then a long window is as cheap as a short one. */
    struct extent top = {.offset = 10, .size = EXTENT_MAX - 10, .count = 1, .order = 100, .writer = 1};
    CHECK_IS(extent_map_add(&m, &top, &e), DELTAFS_OK);
    CHECK_IS(extent_map_find(&m, 10, EXTENT_MAX, &p, &e), DELTAFS_OK);
    CHECK_IS(p.count, 1);
    CHECK_IS(p.piece[0].size, EXTENT_MAX - 10);
    /* And so does a truncation. */
    struct extent cut = {.offset = 20, .count = 1, .order = 101, .kind = EXTENT_TRUNCATE};
    CHECK_IS(extent_map_add(&m, &cut, &e), DELTAFS_OK);
    CHECK_IS(extent_map_find(&m, 10, UINT64_MAX, &p, &e), DELTAFS_OK);
    CHECK_IS(p.count, 2);
    CHECK_IS(extent_map_size(&m), 20);
    /* Pieces of one writer and order: the later ones are above. */
    extent_map_fini(&m);
    struct extent slow = {.size = 1, .stride = 2, .count = 1 << 30, .position_stride = 1};
    struct extent late = {.size = 1 << 30, .position = 1 << 20, .count = 1};
    CHECK_IS(extent_map_add(&m, &slow, &e), DELTAFS_OK);
    CHECK_IS(extent_map_add(&m, &late, &e), DELTAFS_OK);
    CHECK_IS(extent_map_find(&m, 0, (1 << 21) + 100, &p, &e), DELTAFS_OK);
    CHECK_IS(p.piece[0].size, 1 << 21);
    CHECK_IS(p.piece[1].size, 1);
    CHECK_IS(p.piece[1].position, 1 << 20);
    extent_map_fini(&m);
    pieces_fini(&p);
}

/* A file that is written in the same way again and again does not grow in memory. */
static void test_again(void **state)
{
    struct extent_map m = {0};
    struct pieces p = {0};
    struct error e;

    (void)state;
    for (uint64_t order = 0; order < 1000; order++) {
        for (uint32_t w = 0; w < 100; w++) {
            struct extent x = {.offset = 10 * w,
                               .size = 10,
                               .stride = 1000,
                               .count = 50,
                               .position = order * 500,
                               .position_stride = 10,
                               .order = order,
                               .writer = w};
            CHECK_IS(extent_map_add(&m, &x, &e), DELTAFS_OK);
        }
    }
    CHECK_IS(extent_map_find(&m, 0, 50000, &p, &e), DELTAFS_OK);
    CHECK_IS(p.count, 5000);
    for (size_t i = 0; i < p.count; i++)
        CHECK(!p.piece[i].is_hole && p.piece[i].writer == i % 100 && p.piece[i].position == 999 * 500 + i / 100 * 10);
    CHECK_IS(extent_map_count(&m), 100);
    extent_map_fini(&m);
    pieces_fini(&p);
}

/* ---- Memory ---- */

/* A look-up like one before allocates nothing. */
static void test_steady(void **state)
{
    struct memory memory = {.limit = 100 << 20};
    struct extent_map m = {.memory = &memory};
    struct pieces p = {.memory = &memory};
    struct rng r = rng_init(74);
    struct error e;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        struct extent x = random_extent(&r, 15);
        CHECK_IS(extent_map_add(&m, &x, &e), DELTAFS_OK);
    }
    CHECK_IS(extent_map_find(&m, 0, FILE_MAX, &p, &e), DELTAFS_OK);
    memory.limit = memory.used;
    for (int i = 0; i < 1000; i++)
        CHECK_IS(extent_map_find(&m, rng_below(&r, FILE_MAX), FILE_MAX, &p, &e), DELTAFS_OK);
    CHECK_IS(memory.used, memory.limit);
    extent_map_fini(&m);
    pieces_fini(&p);
    CHECK_IS(memory.used, 0);
}

/* Without memory an extent is not taken, and a look-up fails; what was there stays right. */
static void test_no_memory(void **state)
{
    struct rng r = rng_init(75);
    static struct extent x[EXTENT_TOP];
    struct error e;

    (void)state;
    for (uint64_t limit = 1000; limit < 60000; limit += 1000) {
        struct memory memory = {.limit = limit};
        struct extent_map m = {.memory = &memory};
        struct pieces p = {.memory = &memory};
        size_t n = 0;
        for (int i = 0; i < 300; i++) {
            x[n] = random_extent(&r, 15);
            int status = extent_map_add(&m, &x[n], &e);
            CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_MEMORY);
            n += status == DELTAFS_OK;
            if (rng_below(&r, 20) == 0 && extent_map_find(&m, 0, FILE_MAX, &p, &e) != DELTAFS_OK)
                CHECK_IS(e.status, DELTAFS_ERR_MEMORY);
        }
        memory.limit = 1 << 20;
        check_window(&m, x, n, 0, FILE_MAX, &p);
        CHECK_IS(extent_map_size(&m), oracle_size(x, n));
        extent_map_fini(&m);
        pieces_fini(&p);
        CHECK_IS(memory.used, 0);
    }
}

static void test_refused(void **state)
{
    struct extent_map m = {0};
    struct pieces p = {0};
    struct error e;
    struct extent x = {.size = 0, .count = 1};

    (void)state;
    CHECK_IS(extent_map_add(&m, &x, &e), DELTAFS_ERR_INVALID);
    CHECK_IS(extent_map_size(&m), 0);
    CHECK_IS(extent_map_find(&m, 5, 5, &p, &e), DELTAFS_OK);
    CHECK_IS(p.count, 0);
    CHECK_IS(extent_map_find(&m, 5, 15, &p, &e), DELTAFS_OK);
    CHECK(p.count == 1 && p.piece[0].is_hole && p.piece[0].offset == 5 && p.piece[0].size == 10);
    extent_map_fini(&m);
    pieces_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),  cmocka_unit_test(test_files),   cmocka_unit_test(test_levels),
        cmocka_unit_test(test_great_runs), cmocka_unit_test(test_again),   cmocka_unit_test(test_steady),
        cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_refused), cmocka_unit_test(test_on_top),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
