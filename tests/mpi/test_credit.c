/* Flow control, by exhaustion: of small jobs every state that any order of events leads to. In none is a job stuck, and
 * what must hold holds in all (credit_model.c says what): each record comes once, to its rank, in its round; no round
 * ends too early; credits are kept, and buffers are not overrun. Faults that are built in on purpose are found. */
#include "base/hash.h"
#include "credit_model.h"
#include "unit_help.h"

#define STATES_MAX (1u << 20)

/* ---- The explorer ---- */

/* All states found, in order of their distance from the first. */
struct explorer {
    struct credit_model *model;
    int is_reduced; /* where a step is free, nothing else is tried */
    uint8_t *states;
    uint32_t *parents, *table; /* states by their hash; 0: none, else their number + 1 */
    uint32_t count, room, slots;
    uint32_t near; /* states before this one are no farther than the one whose steps are tried */
};

struct found {
    uint32_t states, complete;
    uint64_t steps;
};

static uint8_t *state_at(const struct explorer *x, uint32_t i)
{
    return x->states + (size_t)i * x->model->bytes;
}

static void explorer_grow(struct explorer *x)
{
    x->room = x->room ? x->room * 2 : 1024;
    x->slots = x->room * 2;
    x->states = realloc(x->states, (size_t)x->room * x->model->bytes);
    x->parents = realloc(x->parents, x->room * sizeof *x->parents);
    free(x->table);
    x->table = calloc(x->slots, sizeof *x->table);
    assert_true(x->states && x->parents && x->table);
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t slot = (uint32_t)hash_bytes(state_at(x, i), x->model->bytes) & (x->slots - 1);
        while (x->table[slot] != 0)
            slot = (slot + 1) & (x->slots - 1);
        x->table[slot] = i + 1;
    }
}

/* Add a state, unless it is known. Returns its number. */
static uint32_t explorer_add(struct explorer *x, const uint8_t *state, uint32_t parent)
{
    uint32_t slot;

    if (x->count == x->room)
        explorer_grow(x);
    slot = (uint32_t)hash_bytes(state, x->model->bytes) & (x->slots - 1);
    for (; x->table[slot] != 0; slot = (slot + 1) & (x->slots - 1))
        if (memcmp(state_at(x, x->table[slot] - 1), state, x->model->bytes) == 0)
            return x->table[slot] - 1;
    memcpy(state_at(x, x->count), state, x->model->bytes);
    x->parents[x->count] = parent;
    x->table[slot] = ++x->count;
    return x->count - 1;
}

/* The steps that led to a state. */
static void explorer_print(const struct explorer *x, uint32_t i)
{
    uint8_t next[CREDIT_BYTES];
    char text[128];

    if (i == 0)
        return;
    explorer_print(x, x->parents[i]);
    for (uint32_t a = 0; a < x->model->actions; a++) {
        const uint8_t *state = state_at(x, x->parents[i]);
        if (credit_step(x->model, state, a, next) == 1 && memcmp(next, state_at(x, i), x->model->bytes) == 0) {
            credit_describe(x->model, state, a, text, sizeof text);
            print_message("    %s\n", text);
            return;
        }
    }
}

/* Take step `action` from state i. Returns as credit_step. A step that leads back would mean that a job can go on for
 * ever: every step leads one farther from the begin, by whatever way one came. */
static int explorer_step(struct explorer *x, uint32_t i, uint32_t action, struct found *found)
{
    uint8_t next[CREDIT_BYTES];
    int status = credit_step(x->model, state_at(x, i), action, next);

    if (status != 1)
        return status;
    found->steps++;
    if (explorer_add(x, next, i) < x->near) {
        x->model->violation = "a step leads back";
        return -1;
    }
    return 1;
}

/* The first free step from state i, or m->actions. */
static uint32_t explorer_free_step(const struct explorer *x, uint32_t i)
{
    struct credit_model *m = x->model;
    uint8_t next[CREDIT_BYTES];

    for (uint32_t a = 0; a < m->actions; a++)
        if (credit_is_free(m, state_at(x, i), a) && credit_step(m, state_at(x, i), a, next) != 0)
            return a;
    return m->actions;
}

/* All steps from state i; returns 0 if something is wrong. */
static int explorer_expand(struct explorer *x, uint32_t i, struct found *found)
{
    struct credit_model *m = x->model;
    uint32_t only = x->is_reduced ? explorer_free_step(x, i) : m->actions;
    int has_step = 0;

    for (uint32_t a = only < m->actions ? only : 0; a < m->actions; a++) {
        int status = explorer_step(x, i, a, found);
        if (status < 0)
            return 0;
        has_step |= status;
        if (a == only)
            break;
    }
    if (!has_step && !credit_is_complete(m, state_at(x, i))) {
        m->violation = "stuck";
        return 0;
    }
    found->complete += !has_step;
    return 1;
}

/* Explore. Returns what is wrong, NULL if nothing; then `print` shows how it came to that. */
static const char *explore(const struct credit_setting *s, int is_reduced, int print, struct found *found)
{
    struct credit_model m;
    struct explorer x = {.model = &m, .is_reduced = is_reduced};
    uint8_t first[CREDIT_BYTES];

    credit_init(&m, s);
    credit_begin(&m, first);
    explorer_add(&x, first, 0);
    *found = (struct found){0};
    for (uint32_t i = 0; i < x.count && !m.violation; i++) {
        if (i >= x.near)
            x.near = x.count;
        if (x.count > STATES_MAX)
            m.violation = "too many states";
        else if (!explorer_expand(&x, i, found) && print) {
            print_message("%s; nodes %s, records %s:\n", m.violation, s->nodes, s->records);
            explorer_print(&x, i);
        }
    }
    found->states = x.count;
    free(x.states);
    free(x.parents);
    free(x.table);
    credit_fini(&m);
    return m.violation;
}

static void check_right(const struct credit_setting *s, int is_reduced, struct found *found)
{
    const char *wrong = explore(s, is_reduced, 1, found);

    if (wrong)
        fail_msg("%s; nodes %s, records %s", wrong, s->nodes, s->records);
    CHECK(found->complete > 0);
}

/* ---- What is right ---- */

/* Every order of events, and the same with free steps first, which must come to the same end in far fewer states. */
static void test_all_orders(void **state)
{
    static const struct credit_setting settings[] = {
        {ROUTER_3HOP, "22", "13", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "22", "12 30", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "22", "12+", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "21", "12+ 02+ 20 21", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "21", "12+ 20+ | 20 12", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "21", "12 02 20 21", 2, 2, 1, FAULT_NONE},
        {ROUTER_3HOP, "11", "01 10 01 10 | 10 01+ 10 | 01", 1, 1, 1, FAULT_NONE},
        {ROUTER_DIRECT, "3", "00 11 12 01 02 20 10 00", 1, 1, 1, FAULT_NONE},
        {ROUTER_DIRECT, "3", "12+ 02+ 20+ 01+ | 12 02 20", 1, 1, 1, FAULT_NONE},
        {ROUTER_DIRECT, "21", "12+ 02 20", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "11", "01 10+ 10", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "111", "12", 1, 1, 1, FAULT_NONE},
    };
    struct found all, reduced;

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        check_right(&settings[i], 0, &all);
        check_right(&settings[i], 1, &reduced);
        CHECK(reduced.states < all.states && reduced.steps < all.steps);
    }
}

/* Larger jobs, free steps first. */
static void test_jobs(void **state)
{
    static const struct credit_setting settings[] = {
        /* Relays for one another, all around: no ring may wait for itself. */
        {ROUTER_3HOP, "222", "05 05 43 43 21 21", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "222", "05+ 43+ 21+", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "222", "04 23 40 51 15", 2, 2, 1, FAULT_NONE},
        {ROUTER_3HOP, "33", "14 25 41 52 03", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "212", "03+ 14 30 41 24", 1, 1, 1, FAULT_NONE},
        /* Rounds: who is ahead waits for who is behind. */
        {ROUTER_3HOP, "22", "13 31 12 30 | 13 31 12 30", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "22", "13+ 30+ | 31 02+ 13 | 12", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "111", "01+ 12+ 20+ | 02 10 21", 2, 1, 1, FAULT_NONE},
        /* Ways that turn, also where the last row is short. */
        {ROUTER_GRID, "111", "12+ 21+ 10+ 20+ | 12 21 02+ 01+", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "1111", "03+ 12+ 21 30", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "11111", "04 40 24 42", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "211", "03+ 13+ 31 30 20+ 02", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "212", "34 24+ 43+ 42", 1, 1, 1, FAULT_NONE},
        {ROUTER_GRID, "222", "25 52 34 43", 1, 1, 1, FAULT_NONE},
        /* Values in pieces from all sides to one rank. */
        {ROUTER_3HOP, "22", "10+ 20+ 30+ 20", 1, 1, 1, FAULT_NONE},
        {ROUTER_3HOP, "22", "13+ 03+ 23+ 31", 1, 2, 2, FAULT_NONE},
        {ROUTER_DIRECT, "22", "03+ 13+ 23+ 30+ 20+ 10", 2, 1, 1, FAULT_NONE},
    };
    struct found found;

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        check_right(&settings[i], 1, &found);
}

/* Each rank sends `each` records, to all destinations that there are: every combination. */
static void check_destinations(struct credit_setting s, uint32_t ranks, uint32_t each, const char *kind)
{
    char records[256];
    uint32_t rest = 0;
    struct found found;

    s.records = records;
    for (uint32_t i = 0; rest == 0; i++) {
        size_t used = 0;
        rest = i;
        for (uint32_t from = 0; from < ranks; from++) {
            for (uint32_t k = 0; k < each; k++, rest /= ranks)
                used += (size_t)snprintf(records + used, sizeof records - used, "%u%u%s ", from, rest % ranks, kind);
        }
        if (rest == 0)
            check_right(&s, 1, &found);
    }
}

static void test_destinations(void **state)
{
    (void)state;
    check_destinations((struct credit_setting){ROUTER_3HOP, "22", "", 1, 1, 1, FAULT_NONE}, 4, 1, "");
    check_destinations((struct credit_setting){ROUTER_3HOP, "21", "", 1, 1, 1, FAULT_NONE}, 3, 2, "");
    check_destinations((struct credit_setting){ROUTER_3HOP, "21", "", 1, 1, 1, FAULT_NONE}, 3, 1, "+");
    check_destinations((struct credit_setting){ROUTER_GRID, "111", "", 1, 1, 1, FAULT_NONE}, 3, 2, "");
    check_destinations((struct credit_setting){ROUTER_GRID, "111", "", 1, 1, 1, FAULT_NONE}, 3, 1, "+");
    check_destinations((struct credit_setting){ROUTER_DIRECT, "3", "", 1, 1, 1, FAULT_NONE}, 3, 2, "");
    check_destinations((struct credit_setting){ROUTER_DIRECT, "21", "", 1, 1, 1, FAULT_NONE}, 3, 1, "+");
}

/* ---- What is wrong is found ---- */

static void test_faults(void **state)
{
    static const struct {
        struct credit_setting setting;
        int is_reduced;
        const char *wrong;
    } faults[] = {
        /* Were there not a ring for each stage, six ranks could wait for one another in a circle: of each pair in a
         * node one waits with a record for elsewhere in the ring that a record from elsewhere needs. */
        {{ROUTER_3HOP, "222", "05 05 43 43 21 21", 1, 1, 1, FAULT_ONE_RING}, 1, "stuck"},
        {{ROUTER_3HOP, "22", "13", 1, 1, 1, FAULT_EARLY_END}, 0, "a round ended before all its records had come"},
        {{ROUTER_3HOP, "22", "13", 1, 1, 1, FAULT_EARLY_END}, 1, "a round ended before all its records had come"},
        {{ROUTER_3HOP, "22", "13+ 02", 1, 1, 1, FAULT_NO_HOLD}, 0, "between the pieces of a value came something else"},
        {{ROUTER_3HOP, "22", "13+ 02", 1, 1, 1, FAULT_NO_HOLD}, 1, "between the pieces of a value came something else"},
        {{ROUTER_3HOP, "22", "13 02", 1, 1, 1, FAULT_NO_CREDIT}, 0, "a message came for which there is no buffer"},
        {{ROUTER_3HOP, "22", "13 02", 1, 1, 1, FAULT_NO_CREDIT}, 1, "a message came for which there is no buffer"},
    };
    struct credit_setting right;
    struct found found;

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const char *wrong = explore(&faults[i].setting, faults[i].is_reduced, 0, &found);
        assert_non_null(wrong);
        assert_string_equal(wrong, faults[i].wrong);
        /* It is the fault that was found. */
        right = faults[i].setting;
        right.fault = FAULT_NONE;
        check_right(&right, faults[i].is_reduced, &found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_destinations),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
