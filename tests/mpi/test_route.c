/* Layouts, routes and plans: for every small layout all that router.h promises of every pair of ranks, and for large
 * ones the same of random pairs. */
#include "base/options.h"
#include "mpi/shuffle/plan.h"
#include "unit_help.h"

enum { NODES_MAX = 64 };

/* ---- Layouts ---- */

/* The sizes of the nodes, from a layout that has them even. */
static uint32_t sizes_of(uint32_t ranks, uint32_t per_node, uint32_t *sizes)
{
    uint32_t nodes = 0;

    for (; ranks > per_node; ranks -= per_node)
        sizes[nodes++] = per_node;
    sizes[nodes++] = ranks;
    return nodes;
}

/* Against counting. */
static void check_layout(const struct layout *l, const uint32_t *sizes, uint32_t nodes)
{
    uint32_t ranks = 0;

    CHECK_IS(l->nodes, nodes);
    for (uint32_t node = 0; node < nodes; node++) {
        CHECK_IS(layout_first(l, node), ranks);
        CHECK_IS(layout_size(l, node), sizes[node]);
        for (uint32_t i = 0; i < sizes[node]; i++)
            CHECK_IS(layout_node(l, ranks++), node);
    }
    CHECK_IS(layout_first(l, nodes), ranks);
    CHECK_IS(l->ranks, ranks);
}

static void test_layout_even(void **state)
{
    uint32_t sizes[NODES_MAX];
    struct layout made, found;
    struct error e;

    (void)state;
    for (uint32_t ranks = 1; ranks <= 60; ranks++) {
        for (uint32_t per_node = 1; per_node <= 61; per_node++) {
            uint32_t nodes = sizes_of(ranks, per_node, sizes);
            made = layout_even(ranks, per_node);
            check_layout(&made, sizes, nodes);
            /* It is recognised, and takes no memory. */
            assert_int_equal(layout_init(&found, sizes, nodes, &e), DELTAFS_OK);
            check_layout(&found, sizes, nodes);
            CHECK(!found.first && layout_memory(&found) == 0);
            layout_fini(&found);
        }
    }
}

static void test_layout_uneven(void **state)
{
    static const uint32_t all[][4] = {{1, 2, 1, 1}, {2, 1, 2, 2}, {3, 3, 3, 4},
                                      {3, 3, 2, 3}, {1, 4, 2, 3}, {9, 1, 1, 2}};
    struct rng r = rng_init(31);
    uint32_t sizes[NODES_MAX];
    struct layout l;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(layout_init(&l, all[i], 4, &e), DELTAFS_OK);
        check_layout(&l, all[i], 4);
        CHECK(l.first && layout_memory(&l) == 5 * sizeof(uint32_t));
        layout_fini(&l);
    }
    for (int i = 0; i < 200; i++) {
        uint32_t nodes = 1 + (uint32_t)rng_below(&r, NODES_MAX);
        for (uint32_t n = 0; n < nodes; n++)
            sizes[n] = 1 + (uint32_t)rng_below(&r, 5);
        assert_int_equal(layout_init(&l, sizes, nodes, &e), DELTAFS_OK);
        check_layout(&l, sizes, nodes);
        layout_fini(&l);
    }
}

/* ---- Routes ---- */

static const enum router_kind kinds[] = {ROUTER_DIRECT, ROUTER_3HOP, ROUTER_GRID};
static const enum router_stage stages[] = {STAGE_OUT, STAGE_VIA, STAGE_MID, STAGE_NET, STAGE_IN};

/* The i-th peer of a rank is another, where the stage says, and the two find each other. That its number comes back
 * also says that no peer is there twice. */
static void check_peer(const struct router *r, uint32_t rank, enum router_stage stage, uint32_t i)
{
    const struct layout *l = &r->layout;
    uint32_t peer = router_peer(r, rank, stage, i), back;

    CHECK(peer < l->ranks && peer != rank);
    CHECK((layout_node(l, peer) != layout_node(l, rank)) == stage_is_net((int)stage));
    CHECK_IS(router_peer_index(r, rank, stage, peer), i);
    back = router_peer_index(r, peer, stage, rank);
    CHECK(back < router_peers(r, peer, stage));
    CHECK_IS(router_peer(r, peer, stage, back), rank);
}

/* Go the way; returns its hops. As each is of a later stage than the last, nothing can wait for itself. */
static uint32_t check_way(const struct router *r, uint32_t from, uint32_t to)
{
    enum router_stage came = STAGE_OUT;
    uint32_t rank = from, hops = 0;
    int last = -1;

    while (rank != to) {
        struct router_hop hop = router_next(r, rank, came, to);
        CHECK((int)hop.stage > last && hop.stage < STAGES);
        CHECK(router_has_stage(r, hop.stage));
        uint32_t i = router_peer_index(r, rank, hop.stage, hop.rank);
        CHECK(i < router_peers(r, rank, hop.stage));
        CHECK_IS(router_peer(r, rank, hop.stage, i), hop.rank);
        last = (int)hop.stage;
        came = hop.stage;
        rank = hop.rank;
        hops++;
    }
    return hops;
}

static uint32_t hops_bound(enum router_kind kind)
{
    return kind == ROUTER_DIRECT ? 1 : kind == ROUTER_3HOP ? 3 : 5;
}

/* A node's ranks share its peers elsewhere evenly. */
static void check_balance(const struct router *r, enum router_stage stage)
{
    const struct layout *l = &r->layout;

    for (uint32_t node = 0; node < l->nodes; node++) {
        uint32_t least = UINT32_MAX, most = 0;
        for (uint32_t rank = layout_first(l, node); rank < layout_first(l, node + 1); rank++) {
            uint32_t n = router_peers(r, rank, stage);
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        CHECK(most - least <= 1);
    }
}

static void check_stage(const struct router *r, enum router_stage stage)
{
    uint32_t most = 0;

    for (uint32_t rank = 0; rank < r->layout.ranks; rank++) {
        uint32_t n = router_peers(r, rank, stage);
        CHECK(n == 0 || router_has_stage(r, stage));
        for (uint32_t i = 0; i < n; i++)
            check_peer(r, rank, stage, i);
        most = n > most ? n : most;
    }
    CHECK_IS(router_most_peers(r, stage), most);
    check_balance(r, stage);
}

/* All ways of one router. */
static void check_router(const struct router *r)
{
    uint32_t most = 0;

    for (int i = 0; i < STAGES; i++)
        check_stage(r, stages[i]);
    for (uint32_t from = 0; from < r->layout.ranks; from++) {
        for (uint32_t to = 0; to < r->layout.ranks; to++) {
            uint32_t hops = check_way(r, from, to);
            most = hops > most ? hops : most;
        }
    }
    CHECK(most <= hops_bound(r->kind));
    if (r->layout.even > 0 && r->layout.ranks % r->layout.even == 0)
        CHECK_IS(router_hops(r), most);
    else
        CHECK(router_hops(r) >= most);
}

/* All of a small layout. */
static void check_routes(const struct layout *l)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (uint32_t pairs = 1; pairs <= router_most_pairs(kinds[k], l); pairs++) {
            struct router r = router_make(kinds[k], l, pairs);
            check_router(&r);
        }
    }
}

static void test_routes_even(void **state)
{
    (void)state;
    for (uint32_t per_node = 1; per_node <= 4; per_node++) {
        for (uint32_t ranks = 1; ranks <= 13 * per_node; ranks++) {
            struct layout l = layout_even(ranks, per_node);
            check_routes(&l);
        }
    }
}

/* The i-th of all sequences of `nodes` sizes from 1 to `most`; returns whether there is one. */
static int sizes_at(uint32_t i, uint32_t nodes, uint32_t most, uint32_t *sizes)
{
    for (uint32_t n = 0; n < nodes; n++, i /= most)
        sizes[n] = 1 + i % most;
    return i == 0;
}

static void test_routes_uneven(void **state)
{
    uint32_t sizes[NODES_MAX];
    struct layout l;
    struct error e;

    (void)state;
    for (uint32_t nodes = 1; nodes <= 8; nodes++) {
        /* With more than five nodes, sizes 1 and 2 alone: a grid of three rows, the last of them short. */
        for (uint32_t i = 0; sizes_at(i, nodes, nodes > 5 ? 2 : 4, sizes); i++) {
            assert_int_equal(layout_init(&l, sizes, nodes, &e), DELTAFS_OK);
            check_routes(&l);
            layout_fini(&l);
        }
    }
}

/* ---- Large layouts ---- */

/* Nodes of about the same size, but for a few. */
static struct layout large_uneven(uint32_t nodes, uint32_t per_node, struct rng *r)
{
    uint32_t *sizes = malloc(nodes * sizeof *sizes);
    struct layout l;
    struct error e;

    CHECK(sizes != NULL);
    for (uint32_t i = 0; i < nodes; i++)
        sizes[i] = rng_below(r, 8) > 0 ? per_node : 1 + (uint32_t)rng_below(r, 2 * per_node);
    assert_int_equal(layout_init(&l, sizes, nodes, &e), DELTAFS_OK);
    free(sizes);
    return l;
}

static void check_large(const struct layout *l, struct rng *r)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        uint32_t pairs = router_most_pairs(kinds[k], l);
        struct router router = router_make(kinds[k], l, 1 + (uint32_t)rng_below(r, pairs > 4 ? 4 : pairs));
        uint32_t most[STAGES];
        for (int s = 0; s < STAGES; s++)
            most[s] = router_most_peers(&router, stages[s]);
        for (int i = 0; i < 3000; i++) {
            uint32_t from = (uint32_t)rng_below(r, l->ranks), to = (uint32_t)rng_below(r, l->ranks);
            CHECK(check_way(&router, from, to) <= hops_bound(kinds[k]));
            for (int s = 0; s < STAGES; s++) {
                uint32_t n = router_peers(&router, from, stages[s]);
                CHECK(n <= most[s]);
                if (n > 0)
                    check_peer(&router, from, stages[s], (uint32_t)rng_below(r, n));
            }
        }
        CHECK_IS(router_hops(&router), hops_bound(kinds[k]));
    }
}

static void test_routes_large(void **state)
{
    static const struct {
        uint32_t nodes, per_node;
    } sizes[] = {{4096, 32}, {8192, 128}};
    struct rng r = rng_init(32);
    struct layout l;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t missing = 0; missing < 100; missing += 33) {
            l = layout_even(sizes[i].nodes * sizes[i].per_node - missing, sizes[i].per_node);
            check_large(&l, &r);
        }
        l = large_uneven(sizes[i].nodes, sizes[i].per_node, &r);
        check_large(&l, &r);
        layout_fini(&l);
    }
}

/* ---- Plans ---- */

/* What a refusal says is needed. */
static uint64_t refused_need(const struct error *e)
{
    const char *takes = strstr(e->text, " takes ");
    unsigned long long need = 0;

    CHECK(takes && sscanf(takes, " takes %llu at least", &need) == 1);
    return need;
}

/* A plan respects the options. Of a large layout, the ranks where most channels are. */
static void check_plan(const struct plan *p, const struct plan_options *wanted)
{
    const struct layout *l = &p->router.layout;
    uint32_t step = l->ranks > 1000 ? l->ranks / 500 : 1;

    CHECK(wanted->kind == ROUTER_AUTO || p->router.kind == wanted->kind);
    CHECK(p->router.kind != ROUTER_AUTO && p->partitions == wanted->partitions);
    uint64_t longest = wanted->message > 0 ? wanted->message : 512 << 10;
    CHECK(p->message > 0 && p->message <= longest && p->chunk >= 512 && p->chunk % 8 == 0);
    for (uint32_t rank = 0; rank < l->ranks; rank += step) {
        CHECK(plan_bytes(p, rank) <= wanted->memory);
        CHECK(plan_bytes(p, layout_first(l, layout_node(l, rank))) <= wanted->memory);
    }
}

/* One kind with more and more memory: sizes never shrink, and a refusal names the least that does. Returns that least,
 * 0 if the first had enough. */
static uint64_t check_memory(const struct layout *l, struct plan_options wanted)
{
    struct plan p, last = {0};
    uint64_t need = 0;
    struct error e;

    for (wanted.memory = 64; wanted.memory < (uint64_t)1 << 34; wanted.memory += wanted.memory / 3) {
        int status = plan_make(&p, l, &wanted, &e);
        if (status != DELTAFS_OK) {
            CHECK(status == DELTAFS_ERR_MEMORY && last.message == 0);
            CHECK(need == 0 || refused_need(&e) == need);
            need = refused_need(&e);
            CHECK(need > wanted.memory);
            continue;
        }
        CHECK(wanted.memory >= need);
        check_plan(&p, &wanted);
        CHECK(p.message >= last.message && p.chunk >= last.chunk);
        last = p;
    }
    CHECK(last.message > 0);
    if (need == 0)
        return 0;
    wanted.memory = need;
    CHECK_IS(plan_make(&p, l, &wanted, &e), DELTAFS_OK);
    check_plan(&p, &wanted);
    wanted.memory = need - 1;
    CHECK_IS(plan_make(&p, l, &wanted, &e), DELTAFS_ERR_MEMORY);
    return need;
}

#define GOOD ((uint64_t)12 << 20) /* bytes: what a plan takes if it can do with it */

/* Of the routes that fit, the one of fewest hops with long messages; else the one of the longest. */
static void check_choice(const struct layout *l, struct plan_options wanted)
{
    const uint64_t memory = wanted.memory;
    uint32_t good = wanted.message < 8192 ? (uint32_t)wanted.message : 8192, longest = 0;
    struct plan p, one;
    struct error e;
    uint64_t need = UINT64_MAX;
    enum router_kind want = ROUTER_AUTO;

    /* Those that do with little come before those that do not. */
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && memory > GOOD; k++) {
        wanted.kind = kinds[k];
        wanted.memory = GOOD;
        if (plan_make(&one, l, &wanted, &e) == DELTAFS_OK) {
            wanted.kind = ROUTER_AUTO;
            check_choice(l, wanted);
            assert_int_equal(plan_make(&p, l, &wanted, &e), DELTAFS_OK);
            wanted.memory = memory;
            assert_int_equal(plan_make(&one, l, &wanted, &e), DELTAFS_OK);
            CHECK(one.router.kind == p.router.kind && plan_most_bytes(&one) == plan_most_bytes(&p));
            return;
        }
    }
    wanted.memory = memory;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        wanted.kind = kinds[k];
        if (plan_make(&one, l, &wanted, &e) != DELTAFS_OK) {
            need = refused_need(&e) < need ? refused_need(&e) : need;
        } else if (longest < good && one.message > longest) {
            longest = one.message;
            want = kinds[k];
        }
    }
    wanted.kind = ROUTER_AUTO;
    int status = plan_make(&p, l, &wanted, &e);
    CHECK((status == DELTAFS_OK) == (want != ROUTER_AUTO));
    if (status == DELTAFS_OK)
        CHECK(p.router.kind == want && p.message == longest);
    else
        CHECK(refused_need(&e) == need && strstr(e.text, "give more memory") && !strstr(e.text, "route=auto"));
}

static void check_plans(const struct layout *l)
{
    static const uint64_t messages[] = {512, 1024, 1500, 4096, 32768, 1 << 20};

    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        struct plan_options wanted = {.message = messages[i], .partitions = l->ranks};
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            wanted.kind = kinds[k];
            check_memory(l, wanted);
        }
        for (wanted.memory = 64; wanted.memory < (uint64_t)1 << 34; wanted.memory *= 4)
            check_choice(l, wanted);
    }
}

static void test_plans_small(void **state)
{
    static const uint32_t even[][2] = {{1, 1}, {2, 2}, {2, 1}, {7, 3}, {16, 4}, {64, 8}, {100, 1}, {512, 64}};
    static const uint32_t uneven[] = {4, 4, 1, 7, 4};
    struct layout l;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof even / sizeof even[0]; i++) {
        l = layout_even(even[i][0], even[i][1]);
        check_plans(&l);
    }
    assert_int_equal(layout_init(&l, uneven, 5, &e), DELTAFS_OK);
    check_plans(&l);
    layout_fini(&l);
}

/* What the manual promises of large machines: 12 MiB for a rank are enough. */
static void test_plans_large(void **state)
{
    static const uint32_t sizes[][2] = {{131072, 32}, {1048576, 128}};
    struct rng r = rng_init(33);
    struct plan_options wanted = {.memory = 12 << 20, .message = 32 << 10};
    struct layout l;
    struct plan p;
    struct error e;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        const uint32_t *size = sizes[i / 2];
        l = i % 2 ? large_uneven(size[0] / size[1], size[1], &r) : layout_even(size[0], size[1]);
        wanted.kind = ROUTER_AUTO;
        wanted.partitions = l.ranks;
        assert_int_equal(plan_make(&p, &l, &wanted, &e), DELTAFS_OK);
        check_plan(&p, &wanted);
        /* A node with one rank, which stands for all others, is what makes messages shorter. */
        CHECK(p.router.kind != ROUTER_DIRECT && p.message >= (i % 2 ? 4096 : 8192));
        check_choice(&l, wanted);
        wanted.kind = ROUTER_DIRECT;
        assert_int_equal(plan_make(&p, &l, &wanted, &e), DELTAFS_ERR_MEMORY);
        assert_non_null(strstr(e.text, "route=direct"));
        assert_non_null(strstr(e.text, "or route=auto"));
        layout_fini(&l);
    }
}

/* A route that needs more than it would take by itself uses what there is. */
static void test_plans_beyond(void **state)
{
    struct layout l = layout_even(8192, 1);
    struct plan_options wanted = {.kind = ROUTER_DIRECT, .memory = 128 << 20, .message = 32 << 10, .partitions = 8192};
    struct plan p;
    struct error e;

    (void)state;
    assert_int_equal(plan_make(&p, &l, &wanted, &e), DELTAFS_OK);
    check_plan(&p, &wanted);
    CHECK(p.message == 2048);
    CHECK(plan_most_bytes(&p) > wanted.memory / 2);
    wanted.memory *= 8;
    assert_int_equal(plan_make(&p, &l, &wanted, &e), DELTAFS_OK);
    check_plan(&p, &wanted);
    CHECK(p.message == 16384);
}

/* Messages that have no limit are longer where all else is as it is with 32 KiB, and 12 MiB are enough: as long as they
 * can be, with half as many buffers where that makes them longer. */
static void check_longer(const struct layout *l, enum router_kind kind, uint64_t memory)
{
    struct plan_options wanted = {.kind = kind, .memory = memory, .partitions = l->ranks}, given = wanted;
    uint64_t most = memory < GOOD ? memory : GOOD;
    struct plan p, one, next;
    struct error e;

    given.message = 32 << 10;
    int status = plan_make(&p, l, &wanted, &e);
    CHECK_IS(plan_make(&one, l, &given, &e), status);
    if (status != DELTAFS_OK)
        return;
    CHECK(p.router.kind == one.router.kind && p.router.pairs == one.router.pairs);
    CHECK(p.chunk == one.chunk && (p.buffers == one.buffers || p.buffers == PLAN_BUFFERS_MIN));
    next = p;
    next.buffers = one.buffers;
    CHECK(p.buffers == one.buffers || (p.message > one.message && plan_most_bytes(&next) > most));
    CHECK(p.message == one.message || (p.message > one.message && plan_most_bytes(&p) <= most));
    next = p;
    next.message *= 2;
    next.buffers = PLAN_BUFFERS_MIN;
    if (one.message == 32 << 10 && one.buffers == PLAN_BUFFERS_MAX && one.chunk == 64 << 10 &&
        next.message <= 512 << 10 && router_most_pairs(kind, l) == 1)
        CHECK(plan_most_bytes(&next) > most);
    check_plan(&p, &wanted);
}

static void test_plans_longer(void **state)
{
    static const uint32_t sizes[][4] = {{8, 4, 524288, 2},        {16, 4, 131072, 2}, {8, 2, 262144, 2},
                                        {2, 1, 524288, 4},        {64, 32, 32768, 2}, {131072, 32, 16384, 2},
                                        {1048576, 128, 16384, 2}, {1, 1, 524288, 4}};
    struct plan_options wanted = {.kind = ROUTER_AUTO, .memory = 128 << 20};
    struct layout l;
    struct plan p;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        l = layout_even(sizes[i][0], sizes[i][1]);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (uint64_t memory = 1 << 16; memory <= 1 << 28; memory += memory / 3)
                check_longer(&l, kinds[k], memory);
        wanted.partitions = sizes[i][0];
        assert_int_equal(plan_make(&p, &l, &wanted, &e), DELTAFS_OK);
        CHECK_IS(p.message, sizes[i][2]);
        CHECK_IS(p.buffers, sizes[i][3]);
        CHECK(plan_most_bytes(&p) <= GOOD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_even),   cmocka_unit_test(test_layout_uneven), cmocka_unit_test(test_routes_even),
        cmocka_unit_test(test_routes_uneven), cmocka_unit_test(test_routes_large),  cmocka_unit_test(test_plans_small),
        cmocka_unit_test(test_plans_large),   cmocka_unit_test(test_plans_beyond),  cmocka_unit_test(test_plans_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
