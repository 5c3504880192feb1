/* Expressions: against an oracle, what is exact, messages, hostile texts. */
#include <math.h>
#include "expr_oracle.h"

/* A bound expression with its columns: of all names, each in memory of its own. */
static uint8_t *memory[ORACLE_COLUMNS];
static struct expr_column columns[ORACLE_COLUMNS];

static void fill_columns(struct rng *r)
{
    for (size_t c = 0; c < ORACLE_COLUMNS; c++) {
        size_t stride = oracle_columns[c].size + (rng_below(r, 2) ? 0 : rng_below(r, 20));
        size_t start = rng_below(r, 8);
        memory[c] = realloc(memory[c], start + ORACLE_RECORDS * stride); /* to the byte, for the sanitizers */
        assert_non_null(memory[c]);
        oracle_fill(r, c, memory[c] + start, stride, ORACLE_RECORDS);
        columns[c] = (struct expr_column){memory[c] + start, stride};
    }
}

static void free_columns(void)
{
    for (size_t c = 0; c < ORACLE_COLUMNS; c++) {
        free(memory[c]);
        memory[c] = NULL;
    }
}

static int bind(const char *text, enum expr_want want, struct expr_bound **out, struct error *e)
{
    struct expr *x;
    int status = expr_parse(text, &x, e);

    if (status != DELTAFS_OK)
        return status;
    status = expr_bind(x, &oracle_scope, want, out, e);
    expr_destroy(x);
    return status;
}

static struct expr_bound *bind_well(const char *text)
{
    struct expr_bound *b = NULL;
    struct error e;

    if (bind(text, EXPR_ANY, &b, &e) != DELTAFS_OK)
        fail_msg("seed %llu: %s: %s", (unsigned long long)unit_seed, text, e.text);
    return b;
}

/* The columns that it needs, in its order, from record `first` on. */
static void pick(const struct expr_bound *b, size_t first, struct expr_column *out)
{
    size_t count;
    const uint32_t *number = expr_columns(b, &count);

    assert_true(count <= ORACLE_COLUMNS);
    for (size_t i = 0; i < count; i++) {
        out[i] = columns[number[i]];
        out[i].first = (const uint8_t *)out[i].first + first * out[i].stride;
    }
}

static void eval(const struct expr_bound *b, size_t first, size_t n, double *out)
{
    struct expr_column some[ORACLE_COLUMNS];
    struct expr_work *w;
    struct error e;

    pick(b, first, some);
    assert_int_equal(expr_work_create(b, &w, &e), DELTAFS_OK);
    expr_eval(w, n, some, out);
    if (expr_is_condition(b)) {
        uint8_t *mask = malloc(n > 0 ? n : 1);
        assert_non_null(mask);
        expr_test(w, n, some, mask);
        for (size_t i = 0; i < n; i++)
            CHECK(mask[i] == out[i]);
        free(mask);
    }
    expr_work_destroy(w);
}

static void check_oracle(struct rng *r, const struct oracle *o)
{
    static double out[ORACLE_RECORDS];
    size_t n = rng_below(r, 4) == 0 ? rng_below(r, ORACLE_RECORDS + 1) : rng_below(r, 70);
    size_t first = rng_below(r, ORACLE_RECORDS - n + 1);
    struct expr_bound *b = bind_well(oracle_text(o));

    eval(b, first, n, out);
    for (size_t i = 0; i < n; i++) {
        double want = oracle_eval(o, columns, first + i);
        if (!(out[i] == want || (isnan(out[i]) && isnan(want))))
            fail_msg("seed %llu: record %zu: %s is %.17g, not %.17g", (unsigned long long)unit_seed, first + i,
                     oracle_text(o), out[i], want);
    }
    expr_bound_destroy(b);
}

static void test_random(void **state)
{
    struct rng r = rng_init(1);

    (void)state;
    for (int i = 0; i < 4000; i++) {
        if (i % 100 == 0)
            fill_columns(&r);
        struct oracle *o = oracle_create(&r, i % 2);
        check_oracle(&r, o);
        oracle_destroy(o);
    }
    free_columns();
}

/* ---- Chosen values ---- */

/* One record: the columns of the oracle, in order. */
static const struct {
    float ux;
    double x;
    int8_t i1;
    int16_t i2;
    int32_t cell;
    uint8_t u1;
    uint16_t rank;
    uint32_t u4;
    int64_t i8;
    uint64_t key;
} one = {0.1f, -2.5, -128, -32768, INT32_MIN, 255, 3, UINT32_MAX, INT64_MIN, UINT64_MAX};

static double value(const char *text)
{
    const void *const first[ORACLE_COLUMNS] = {&one.ux, &one.x,    &one.i1, &one.i2, &one.cell,
                                               &one.u1, &one.rank, &one.u4, &one.i8, &one.key};
    struct expr_bound *b = bind_well(text);
    double out;

    for (size_t c = 0; c < ORACLE_COLUMNS; c++)
        columns[c] = (struct expr_column){first[c], 0};
    eval(b, 0, 1, &out);
    expr_bound_destroy(b);
    return out;
}

static void test_values(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"-2 ** 2", -4},
        {"2 ** 3 ** 2", 512},
        {"2 ** -1", 0.5},
        {"7 - 4 - 2", 1},
        {"64 / 4 / 2", 8},
        {"-7 // 2", -4},
        {"-7 % 3", 2},
        {"7 % -3", -2},
        {"-7.5 // 2", -4},
        {"7.5 % -2", -0.5},
        {"1.0 // 0.1", 9}, /* as in Python: 0.1 is more than a tenth */
        {"0x10 + 1e1 + .5 + 1.", 27.5},
        {" \t1\n+\r1 ", 2},
        {"+1 - -1", 2},
        {"1 < 2", 1},
        {"1 < 2 < 3", 1},
        {"1 < 2 > 3", 0},
        {"3 > 2 > 1 != 0", 1},
        {"not 1 > 2 and 2 > 1", 1},
        {"not (1 > 2 or 2 > 1)", 0},
        {"1 > 2 and 1 > 2 or 2 > 1", 1},
        {"min(3, 1, 2) + max(1, 5, 2, 4)", 6},
        {"min(0/0, 1) + max(1, 0/0)", 2},
        {"abs(-3) + sqrt(16) + floor(-2.5)", 4},
        {"atan2(0, 1) + log(1) + exp(0) + sin(0) + cos(0)", 2},
        {"1 / 0", INFINITY},
        {"-1 // 0", -INFINITY},
        {"1 % 0", NAN},
        {"key // (rank - 3)", INFINITY},
        {"i8 // (rank - 3)", -INFINITY},
        {"key % (rank - 3)", NAN},
        {"0/0 == 0/0", 0},
        {"0/0 != 0/0", 1},
        {"0/0 < 1", 0},
        {"-0.0 == 0", 1},
        {"ux", 0.1f},
        {"pos.x", -2.5},
        {"`pos.x` * 2", -5},
        {"`ux`", 0.1f},
        {"cells[rank]", 1 << 20},
        {"cells[rank - 4]", NAN},
        {"cells[5]", NAN},
        {"nx[rank - rank]", 26},
        {"nx[1]", NAN},
        {"nx[0] + nx", 52},
        {"origins[rank + 1]", 12},
        {"origins[cells[4] - 3]", 12},
        {"energy", 0.1f * (double)0.1f + 6.25},
        {"energy - energy", 0},
        {"hot", 1},
        {"hot and not hot", 0},
        {"nx + minus", 19},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double got = value(cases[i].text);
        if (!(got == cases[i].value || (isnan(got) && isnan(cases[i].value))))
            fail_msg("%s is %.17g, not %.17g", cases[i].text, got, cases[i].value);
    }
}

/* Each is true only if it is computed in integers. */
static void test_exact(void **state)
{
    static const char *const truths[] = {
        "key == 18446744073709551615",
        "key != 18446744073709551614",
        "18446744073709551614 < key",
        "key < 18446744073709551616.0", /* 2^64 */
        "key > i8",
        "i8 < key",
        "i8 < -9223372036854775807",
        "i8 == -9223372036854775807 - 1",
        "i8 >= -9223372036854775808.0",
        "key > 1e308 * -10",
        "key < 1e308 * 10",
        "not key < 0/0",
        "key != 0/0",
        "key % 10 == 5",
        "key % 2**40 == 2**40 - 1",
        "key // 10 == 1844674407370955161",
        "key // 3 > 6148914691236517204",
        "key % -10 == -5",
        "i8 % 10 == 2",
        "i8 % -10 == -8",
        "i8 // 10 == -922337203685477581",
        "i8 // key == -1",
        "i8 % key == 9223372036854775807.0", /* rounded, since a key may be 0 */
        "key // i8 == -2",
        "key % i8 == -1",
        "i8 // -1 == 2.0**63",
        "key // -1 == -2.0**64",
        "cell * cell == 2**62",
        "cell * cell - 1 == 4611686018427387903",
        "(cell * cell - 1) % 10 == 3",
        "u4 * u4 == 18446744065119617025",
        "u4 * u4 % 1000 == 25",
        "i1 * i2 * u4 == 4194304 * 4294967295",
        "-(cell * cell) + 1 == -4611686018427387903",
        "2**63 - 1 == 9223372036854775807",
        "2**64 - 1 > 18446744073709551614",
        "18446744073709551615 ** 2 == 2.0**128",
        "big - 2**63 == 12345",
        "big % 1000 == 153",
        "(i8 // 2**10) % 3 == 1",
        "abs(cell) == 2147483648",
    };

    (void)state;
    for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++)
        if (value(truths[i]) != 1)
            fail_msg("%s is not true", truths[i]);
    assert_true(value("key + 1") == 18446744073709551616.0);
    assert_true(value("key") == 18446744073709551616.0);
    assert_true(value("i8") == -9223372036854775808.0);
}

static void test_columns(void **state)
{
    struct expr_bound *b = bind_well("key % 2 == 0 and ux*ux + ux > half or energy > nx");
    size_t count;
    const uint32_t *number = expr_columns(b, &count);

    (void)state;
    assert_int_equal(count, 3);
    assert_int_equal(number[0], 9);
    assert_int_equal(number[1], 0);
    assert_int_equal(number[2], 1);
    assert_true(expr_is_condition(b));
    expr_bound_destroy(b);
    b = bind_well("1 + 1");
    expr_columns(b, &count);
    assert_int_equal(count, 0);
    expr_bound_destroy(b);
}

/* ---- Messages ---- */

static void check_refused(const char *text, enum expr_want want, const char *message)
{
    struct expr_bound *b = NULL;
    struct error e = {0};

    if (bind(text, want, &b, &e) != DELTAFS_ERR_INVALID)
        fail_msg("'%s' is accepted", text);
    if (strncmp(e.text, message, strlen(message)) != 0)
        fail_msg("'%s': '%s' does not begin with '%s'", text, e.text, message);
}

static void test_messages(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "offset 0: expected a number, a name or '(', found the end"},
        {"  ", "offset 2: expected a number, a name or '(', found the end"},
        {"ux +* 3", "offset 4: expected a number, a name or '(', found '*'"},
        {"ux 3", "offset 3: expected an operator, found '3'"},
        {"(ux", "offset 3: expected ')', found the end"},
        {"ux)", "offset 2: expected an operator, found ')'"},
        {"ux = 3", "offset 3: expected an operator, found '='; compare with '=='"},
        {"ux & 3", "offset 3: expected an operator, found '&'; write 'and'"},
        {"ux ^ 2", "offset 3: expected an operator, found '^'; write '**'"},
        {"!hot", "offset 0: expected a number, a name or '(', found '!'; write 'not'"},
        {"1 + not hot", "offset 4: expected a number, a name or '(', found 'not'"},
        {"\xff\xfe", "offset 0: expected a number, a name or '(', found '\\xff'"},
        {"ux \xc3\xa9", "offset 3: expected an operator, found '\\xc3'"},
        {"ux $", "offset 3: expected an operator, found '$'"},
        {"`ux", "offset 0: expected a name between two backquotes"},
        {"1 + ``", "offset 4: expected a name between two backquotes"},
        {"2ux", "offset 0: expected a number, found '2ux'"},
        {"1e", "offset 0: expected a number, found '1e'"},
        {"1e999", "offset 0: expected a number, found '1e999'"},
        {"0x", "offset 0: expected a number, found '0x'"},
        {"1.2.3", "offset 0: expected a number, found '1.2.3'"},
        {"18446744073709551616", "offset 0: expected a number, found '18446744073709551616'; an integer is below 2^64"},
        {"uxx + 1", "offset 0: no column or attribute is named 'uxx'; did you mean 'ux'? The names are: ux, pos.x, i1"},
        {"1 + enrgy", "offset 4: no column or attribute is named 'enrgy'; did you mean 'energy'? The names are: ux"},
        {"1 + nothing_like_it", "offset 4: no column or attribute is named 'nothing_like_it'; the names are: ux"},
        {"sqr(2)", "offset 0: no function is named 'sqr'; the functions are sqrt"},
        {"sqrt(1, 2)", "offset 0: 'sqrt' takes one value, found 2"},
        {"1 + min(1)", "offset 4: 'min' takes two or more values, found 1"},
        {"atan2(1, 2, 3)", "offset 0: 'atan2' takes two values, found 3"},
        {"sqrt()", "offset 5: expected a number, a name or '(', found ')'"},
        {"sqrt(1", "offset 6: expected ',' or ')', found the end"},
        {"cells[1", "offset 7: expected ']', found the end"},
        {"1 + (ux > 2)", "offset 8: expected a number, found a condition"},
        {"ux and hot", "offset 0: expected a condition such as x > 0, found a number with a fraction"},
        {"not cell", "offset 4: expected a condition such as x > 0, found an integer"},
        {"sqrt(hot)", "offset 5: expected a number, found a condition"},
        {"hot == hot", "offset 0: expected a number, found a condition"},
        {"1 + cells", "offset 4: expected 'cells[...]', since 'cells' is an array of 5 values"},
        {"cells[ux]", "offset 6: expected an integer as the index of 'cells', found a number with a fraction"},
        {"cells[ux > 1]", "offset 9: expected an integer as the index of 'cells', found a condition"},
        {"ux[1]", "offset 0: 'ux' is not an array"},
        {"1 + title", "offset 4: expected a number, but the attribute 'title' is a text"},
        {"tag == 1", "offset 0: expected a number, but the column 'tag' holds bytes (S8)"},
        {"1 + bad", "computed column 'bad': offset 4: expected a number, a name or '(', found '*'"},
        {"worse", "computed column 'worse': offset 4: no column or attribute is named 'missing'"},
        {"1 + loop1", "computed column 'loop1': computed column 'loop2': computed column 'loop3': offset 5: computed "
                      "columns refer to each other in a loop: loop1 -> loop2 -> loop3 -> loop1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_refused(cases[i].text, EXPR_ANY, cases[i].message);
    check_refused("ux", EXPR_CONDITION, "offset 0: expected a condition such as x > 0, found a number with a fraction");
    check_refused("ux + 1", EXPR_CONDITION, "offset 3: expected a condition");
    check_refused("ux > 1", EXPR_NUMBER, "offset 3: expected a number, found a condition");
}

/* ---- Hostile texts ---- */

static char *repeat(const char *head, const char *middle, size_t n, const char *tail)
{
    size_t length = strlen(head) + n * strlen(middle) + strlen(tail);
    char *s = malloc(length + 1), *p = s;

    assert_non_null(s);
    p = stpcpy(p, head);
    for (size_t i = 0; i < n; i++)
        p = stpcpy(p, middle);
    stpcpy(p, tail);
    return s;
}

static void check_limit(const char *head, const char *middle, size_t n, const char *tail, const char *message)
{
    char *text = repeat(head, middle, n, tail);
    struct expr_bound *b = NULL;
    struct error e = {0};

    if (!message)
        expr_bound_destroy(bind_well(text));
    else if (bind(text, EXPR_ANY, &b, &e) != DELTAFS_ERR_INVALID || !strstr(e.text, message))
        fail_msg("%s%s...: '%s' is not '%s'", head, middle, e.text, message);
    free(text);
}

static void test_limits(void **state)
{
    (void)state;
    check_limit("", "(", 10000, "1", "more than 100 levels of parentheses");
    check_limit("", "-", 10000, "1", "more than 100 levels of parentheses");
    check_limit("", "not ", 4000, "1 > 2", "more than 100 levels of parentheses");
    check_limit("", "2**", 4000, "1", "more than 100 levels of parentheses");
    check_limit("", "sqrt(", 3000, "1", "more than 100 levels of parentheses");
    check_limit("", "cells[", 2000, "1", "more than 100 levels of parentheses");
    check_limit("1", "+ux", 2000, "", NULL);
    check_limit("1", "+1", 3000, "", "more than 4096 operations and operands");
    check_limit("1", " ", 100000, "", "longer than 16384 bytes");
    check_limit("", "9", 5000, "", "expected a number");
    check_limit("", "x", 10000, "", "no column or attribute is named 'xxx");
    check_limit("`", "x", 10000, "`", "no column or attribute is named 'xxx");
    check_limit("", "\x80", 10000, "", "offset 0: expected a number, a name or '(', found '\\x80'");
    check_limit("1 < ", "2 < ", 900, "3", NULL);
    check_limit("min(1", ",ux", 1000, ")", NULL);
}

/* Computed columns c0, c1, ...: each of the one before, so often that its text would double. */
static int doubling_find(void *context, const char *name, struct expr_meaning *out)
{
    static char text[64];
    unsigned long number = name[0] == 'c' ? strtoul(name + 1, NULL, 10) : 0;

    (void)context;
    if (name[0] != 'c')
        return 0;
    snprintf(text, sizeof text, "c%lu + c%lu", number - 1, number - 1);
    *out = (struct expr_meaning){.kind = EXPR_COMPUTED, .text = number == 0 ? "1.5" : text};
    return 1;
}

static const char *doubling_name(void *context, size_t i)
{
    (void)context;
    return i < 1000 ? "c0" : NULL;
}

static void test_computed(void **state)
{
    const struct expr_scope scope = {NULL, doubling_find, doubling_name};
    struct expr_bound *b = NULL;
    struct expr *x;
    struct expr_work *w;
    struct error e;
    double out;

    (void)state;
    assert_int_equal(expr_parse("c31", &x, &e), DELTAFS_OK);
    assert_int_equal(expr_bind(x, &scope, EXPR_NUMBER, &b, &e), DELTAFS_OK);
    assert_int_equal(expr_work_create(b, &w, &e), DELTAFS_OK);
    expr_eval(w, 1, NULL, &out);
    assert_true(out == 1.5 * 2147483648.0);
    expr_work_destroy(w);
    expr_bound_destroy(b);
    expr_destroy(x);
    assert_int_equal(expr_parse("c32 + c1", &x, &e), DELTAFS_OK);
    assert_int_equal(expr_bind(x, &scope, EXPR_NUMBER, &b, &e), DELTAFS_ERR_INVALID);
    assert_non_null(strstr(e.text, "more than 32 computed columns refer to each other"));
    expr_destroy(x);
    assert_int_equal(expr_parse("nothing", &x, &e), DELTAFS_OK);
    assert_int_equal(expr_bind(x, &scope, EXPR_NUMBER, &b, &e), DELTAFS_ERR_INVALID);
    assert_non_null(strstr(e.text, "c0, c0, c0"));
    assert_non_null(strstr(e.text, "..."));
    expr_destroy(x);
}

/* Words, bytes and pieces of good expressions in any order: refused with a message that has an offset, or evaluated. */
static void test_hostile(void **state)
{
    static const char *const words[] = {"ux", "key",  "cells[", "]",   "(",    ")",     "+",     "-",
                                        "**", "//",   "%",      "<",   "==",   " and ", " not ", ",",
                                        "1",  "2.5",  "0x7",    "1e9", "min(", "hot",   "loop1", "`",
                                        "i8", "rank", "\xff",   "=",   "&",    "e",     ".",     "origins[rank]"};
    static double out[600];
    struct rng r = rng_init(2);
    unsigned good = 0;

    (void)state;
    fill_columns(&r);
    for (int i = 0; i < 30000; i++) {
        char text[400] = "";
        struct expr_bound *b = NULL;
        struct error e = {0};
        for (uint64_t n = 1 + rng_below(&r, 9); n > 0; n--)
            strcat(text, words[rng_below(&r, sizeof words / sizeof words[0])]);
        if (rng_below(&r, 8) == 0)
            text[rng_below(&r, strlen(text))] = (char)rng_next(&r);
        if (bind(text, EXPR_ANY, &b, &e) == DELTAFS_OK) {
            eval(b, 0, 1 + rng_below(&r, 600), out);
            expr_bound_destroy(b);
            good++;
        } else {
            CHECK(e.status == DELTAFS_ERR_INVALID);
            CHECK(strstr(e.text, "offset ") != NULL);
        }
    }
    CHECK(good > 100);
    free_columns();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),   cmocka_unit_test(test_values),   cmocka_unit_test(test_exact),
        cmocka_unit_test(test_columns),  cmocka_unit_test(test_messages), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_computed), cmocka_unit_test(test_hostile),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
