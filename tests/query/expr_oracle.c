/* The oracle of expressions. A tree of integers is made only if the result must be exact by the rules in expr.h, judged
 * by a bound of its magnitude; so the oracle need not know how ranges are computed. */
#include <math.h>
#include "expr_oracle.h"

#define NODES 64
#define TEXT  4096

enum type {
    CONDITION,
    REAL,
    INTEGER, /* of at most 63 bits */
    WIDE     /* a column or an attribute of 64 bits */
};

struct tree {
    enum type type;
    const char *op; /* NULL: a leaf; "f(": a function; "name[": an array */
    int a, b;       /* -1: none */
    int level;      /* how it binds, 9: as an operand */
    char leaf[40];
    int column; /* -1: a constant */
    int is_integer;
    __int128 integer;
    double real;
    unsigned __int128 bound; /* INTEGER: no value is beyond it */
    int may_be_missing, has_zero;
};

struct oracle {
    struct tree tree[NODES];
    int count, root;
    char text[TEXT];
    size_t used;
};

/* What a record gives. An integer may be NaN or infinite, and is in `real` then. */
struct result {
    int is_integer;
    __int128 integer;
    double real;
};

const struct oracle_column oracle_columns[ORACLE_COLUMNS] = {
    {"ux", 'f', 4}, {"pos.x", 'f', 8}, {"i1", 'i', 1}, {"i2", 'i', 2}, {"cell", 'i', 4},
    {"u1", 'u', 1}, {"rank", 'u', 2},  {"u4", 'u', 4}, {"i8", 'i', 8}, {"key", 'u', 8},
};
const int64_t oracle_small[2] = {26, -7};
const uint64_t oracle_big = (1ull << 63) + 12345;
const double oracle_half = -0.5;
const int64_t oracle_cells[ORACLE_ARRAY] = {3, -1, 0, 1 << 20, 7};
const double oracle_origins[ORACLE_ARRAY] = {0.25, -1e300, INFINITY, -0.0, 12};

static const struct {
    const char *name;
    struct expr_meaning meaning;
} attributes[] = {
    {"nx", {.kind = EXPR_SINGLE, .letter = 'i', .size = 8, .values = &oracle_small[0], .count = 1}},
    {"minus", {.kind = EXPR_SINGLE, .letter = 'i', .size = 8, .values = &oracle_small[1], .count = 1}},
    {"big", {.kind = EXPR_SINGLE, .letter = 'u', .size = 8, .values = &oracle_big, .count = 1}},
    {"half", {.kind = EXPR_SINGLE, .letter = 'f', .size = 8, .values = &oracle_half, .count = 1}},
    {"cells", {.kind = EXPR_ARRAY, .letter = 'i', .size = 8, .values = oracle_cells, .count = ORACLE_ARRAY}},
    {"origins", {.kind = EXPR_ARRAY, .letter = 'f', .size = 8, .values = oracle_origins, .count = ORACLE_ARRAY}},
    {"title", {.kind = EXPR_TEXT, .text = "a run"}},
    {"energy", {.kind = EXPR_COMPUTED, .text = "ux*ux + pos.x*pos.x"}},
    {"hot", {.kind = EXPR_COMPUTED, .text = "energy > 1"}},
    {"loop1", {.kind = EXPR_COMPUTED, .text = "1 + loop2"}},
    {"loop2", {.kind = EXPR_COMPUTED, .text = "loop3 * 2"}},
    {"loop3", {.kind = EXPR_COMPUTED, .text = "ux - loop1"}},
    {"bad", {.kind = EXPR_COMPUTED, .text = "ux +* 2"}},
    {"worse", {.kind = EXPR_COMPUTED, .text = "1 + missing"}},
    {"tag", {.kind = EXPR_COLUMN, .letter = 'S', .size = 8, .column = 99}},
};
enum { ATTRIBUTES = sizeof attributes / sizeof attributes[0] };

static int scope_find(void *context, const char *name, struct expr_meaning *out)
{
    (void)context;
    for (uint32_t i = 0; i < ORACLE_COLUMNS; i++)
        if (strcmp(name, oracle_columns[i].name) == 0) {
            *out = (struct expr_meaning){
                .kind = EXPR_COLUMN, .letter = oracle_columns[i].letter, .size = oracle_columns[i].size, .column = i};
            return 1;
        }
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (strcmp(name, attributes[i].name) == 0) {
            *out = attributes[i].meaning;
            return 1;
        }
    return 0;
}

static const char *scope_name(void *context, size_t i)
{
    (void)context;
    if (i < ORACLE_COLUMNS)
        return oracle_columns[i].name;
    return i < ORACLE_COLUMNS + ATTRIBUTES ? attributes[i - ORACLE_COLUMNS].name : NULL;
}

const struct expr_scope oracle_scope = {NULL, scope_find, scope_name};

/* ---- Data ---- */

static void fill_real(struct rng *r, uint8_t *p, uint32_t size)
{
    static const double special[] = {0,   -0.0, 1,    -1,     NAN,   INFINITY,           -INFINITY,
                                     0.5, -2.5, 3e38, 5e-324, 1e-45, 4503599627370497.5, 1.8446744073709552e19};
    uint64_t noise = rng_next(r);
    double v = rng_below(r, 3) == 0 ? special[rng_below(r, sizeof special / sizeof special[0])]
                                    : (double)(int64_t)noise / (double)(1ull << rng_below(r, 63));

    if (rng_below(r, 8) == 0)
        memcpy(p, &noise, size);
    else if (size == 8)
        memcpy(p, &v, 8);
    else
        memcpy(p, &(float){(float)v}, 4);
}

void oracle_fill(struct rng *r, size_t column, uint8_t *first, size_t stride, size_t n)
{
    static const uint64_t special[] = {0,          1,          UINT64_MAX,       1ull << 63,          INT64_MAX,
                                       1ull << 31, INT32_MAX,  1u << 15,         INT16_MAX,           1u << 7,
                                       INT8_MAX,   1ull << 53, (1ull << 53) + 1, (1ull << 63) + 12345};

    for (size_t i = 0; i < n; i++) {
        uint64_t v = rng_below(r, 3) == 0 ? special[rng_below(r, sizeof special / sizeof special[0])]
                                          : rng_next(r) >> rng_below(r, 64);
        if (oracle_columns[column].letter == 'f')
            fill_real(r, first + i * stride, oracle_columns[column].size);
        else
            memcpy(first + i * stride, &v, oracle_columns[column].size);
    }
}

/* ---- Random trees ---- */

static int tree_add(struct oracle *o, struct tree t)
{
    o->tree[o->count] = t;
    return o->count++;
}

static int leaf_column(struct oracle *o, int column)
{
    const struct oracle_column *c = &oracle_columns[column];
    struct tree t = {.type = c->letter == 'f' ? REAL
                             : c->size == 8   ? WIDE
                                              : INTEGER,
                     .a = -1,
                     .b = -1,
                     .level = 9,
                     .column = column,
                     .has_zero = 1,
                     .bound = (unsigned __int128)1 << 8 * c->size};

    snprintf(t.leaf, sizeof t.leaf, "%s", c->name);
    return tree_add(o, t);
}

static int leaf_integer(struct oracle *o, const char *name, __int128 v)
{
    struct tree t = {.type = v > INT64_MAX ? WIDE : INTEGER,
                     .a = -1,
                     .b = -1,
                     .level = 9,
                     .column = -1,
                     .integer = v,
                     .is_integer = 1,
                     .has_zero = v == 0,
                     .bound = (unsigned __int128)(v < 0 ? -v : v)};

    if (name)
        snprintf(t.leaf, sizeof t.leaf, "%s", name);
    else
        snprintf(t.leaf, sizeof t.leaf, "%llu", (unsigned long long)v);
    return tree_add(o, t);
}

static int leaf_real(struct oracle *o, struct rng *r)
{
    struct tree t = {.type = REAL, .a = -1, .b = -1, .level = 9, .column = -1};

    if (rng_below(r, 2)) {
        t.real = oracle_half;
        snprintf(t.leaf, sizeof t.leaf, "half");
    } else {
        snprintf(t.leaf, sizeof t.leaf, "%.17e", (double)rng_below(r, 1000) / 7);
        t.real = strtod(t.leaf, NULL);
    }
    return tree_add(o, t);
}

static int make_real(struct oracle *o, struct rng *r, int depth);

static int leaf_small(struct oracle *o, struct rng *r)
{
    switch (rng_below(r, 4)) {
    case 0:
        return leaf_integer(o, NULL, (__int128)(rng_next(r) >> (1 + rng_below(r, 63))));
    case 1:
        return leaf_integer(o, "nx", oracle_small[0]);
    case 2:
        return leaf_integer(o, "minus", oracle_small[1]);
    default:
        return leaf_column(o, 2 + (int)rng_below(r, 6));
    }
}

static int leaf_wide(struct oracle *o, struct rng *r)
{
    return rng_below(r, 4) == 0 ? leaf_integer(o, "big", oracle_big) : leaf_column(o, 8 + (int)rng_below(r, 2));
}

static int make_integer(struct oracle *o, struct rng *r, int depth);

/* Whether the rules say that it is exact. */
static int is_exact(const struct tree *t)
{
    return t->bound <= (t->may_be_missing ? UINT64_C(1) << 53 : INT64_MAX);
}

static int make_quotient(struct oracle *o, struct rng *r, int depth)
{
    int is_mod = (int)rng_below(r, 2), a = rng_below(r, 2) ? leaf_wide(o, r) : make_integer(o, r, depth - 1);
    int b = make_integer(o, r, rng_below(r, 2) ? 0 : depth - 1);
    const struct tree *x = &o->tree[a], *y = &o->tree[b];
    struct tree t = {.type = INTEGER, .op = is_mod ? "%" : "//", .a = a, .b = b, .level = 6, .has_zero = 1};

    t.may_be_missing = x->may_be_missing || y->may_be_missing || y->has_zero;
    t.bound = is_mod ? y->bound : y->is_integer && !y->has_zero ? x->bound / y->bound + 1 : x->bound;
    int is_small = x->bound + y->bound < UINT64_C(1) << 51 && x->type != WIDE;
    if ((t.may_be_missing && !is_small) || !is_exact(&t))
        return a;
    return tree_add(o, t);
}

static int make_sum(struct oracle *o, struct rng *r, int depth)
{
    static const char *const ops[] = {"+", "-", "*"};
    unsigned op = (unsigned)rng_below(r, 3);
    int a = make_integer(o, r, depth - 1), b = make_integer(o, r, depth - 1);
    const struct tree *x = &o->tree[a], *y = &o->tree[b];
    struct tree t = {.type = INTEGER, .op = ops[op], .a = a, .b = b, .level = op < 2 ? 5 : 6, .has_zero = 1};

    t.may_be_missing = x->may_be_missing || y->may_be_missing;
    t.bound = op < 2 ? x->bound + y->bound : x->bound * y->bound;
    return is_exact(&t) ? tree_add(o, t) : a;
}

static int make_cells(struct oracle *o, struct rng *r, int depth)
{
    int a = make_integer(o, r, depth - 1);

    return tree_add(o, (struct tree){.type = INTEGER,
                                     .op = "cells[",
                                     .a = a,
                                     .b = -1,
                                     .level = 9,
                                     .bound = 1 << 20,
                                     .has_zero = 1,
                                     .may_be_missing = 1});
}

static int make_negative(struct oracle *o, struct rng *r, int depth)
{
    int a = make_integer(o, r, depth - 1);
    struct tree t = {.type = INTEGER,
                     .op = "-",
                     .a = a,
                     .b = -1,
                     .level = 7,
                     .bound = o->tree[a].bound,
                     .may_be_missing = o->tree[a].may_be_missing,
                     .has_zero = o->tree[a].has_zero};

    return tree_add(o, t);
}

/* Never WIDE, but for the leaf that make_quotient gives back, which is not asked for here. */
static int make_integer(struct oracle *o, struct rng *r, int depth)
{
    int made;

    if (depth <= 0 || o->count > NODES / 2)
        return leaf_small(o, r);
    switch (rng_below(r, 6)) {
    case 0:
    case 1:
        made = make_quotient(o, r, depth);
        return o->tree[made].type == WIDE ? leaf_small(o, r) : made;
    case 2:
        return make_cells(o, r, depth);
    case 3:
        return make_negative(o, r, depth);
    default:
        return make_sum(o, r, depth);
    }
}

static int make_call(struct oracle *o, struct rng *r, int depth)
{
    static const char *const ops[] = {"sqrt(", "abs(", "floor(", "log(", "exp(",
                                      "sin(",  "cos(", "atan2(", "min(", "max("};
    unsigned op = (unsigned)rng_below(r, 10);
    int a = make_real(o, r, depth - 1), b = op < 7 ? -1 : make_real(o, r, depth - 1);

    return tree_add(o, (struct tree){.type = REAL, .op = ops[op], .a = a, .b = b, .level = 9});
}

/* An operand that is a number of any type; of operators, one at least must be REAL. */
static int make_number(struct oracle *o, struct rng *r, int depth)
{
    switch (rng_below(r, 5)) {
    case 0:
        return make_integer(o, r, depth);
    case 1:
        return leaf_wide(o, r);
    default:
        return make_real(o, r, depth);
    }
}

static int make_real(struct oracle *o, struct rng *r, int depth)
{
    static const char *const ops[] = {"+", "-", "*", "/", "//", "%", "**"};
    static const int levels[] = {5, 5, 6, 6, 6, 6, 8};

    if (depth <= 0 || o->count > NODES / 2)
        return rng_below(r, 3) == 0 ? leaf_real(o, r) : leaf_column(o, (int)rng_below(r, 2));
    if (rng_below(r, 3) == 0)
        return make_call(o, r, depth);
    unsigned op = (unsigned)rng_below(r, 7);
    int a = make_real(o, r, depth - 1), b = make_number(o, r, depth - 1);
    if (op < 6 && rng_below(r, 2)) {
        int c = a;
        a = b;
        b = c;
    }
    return tree_add(o, (struct tree){.type = REAL, .op = ops[op], .a = a, .b = b, .level = levels[op]});
}

static int make_condition(struct oracle *o, struct rng *r, int depth)
{
    static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};

    if (depth <= 0 || o->count > NODES / 2 || rng_below(r, 3) > 0) {
        int a = make_number(o, r, depth - 1), b = rng_below(r, 4) == 0 ? leaf_wide(o, r) : make_number(o, r, depth - 1);
        return tree_add(o, (struct tree){.type = CONDITION, .op = ops[rng_below(r, 6)], .a = a, .b = b, .level = 4});
    }
    int a = make_condition(o, r, depth - 1);
    if (rng_below(r, 3) == 0)
        return tree_add(o, (struct tree){.type = CONDITION, .op = "not ", .a = a, .b = -1, .level = 3});
    int is_and = (int)rng_below(r, 2), b = make_condition(o, r, depth - 1);
    return tree_add(
        o, (struct tree){.type = CONDITION, .op = is_and ? " and " : " or ", .a = a, .b = b, .level = is_and ? 2 : 1});
}

/* ---- Texts ---- */

static void print(struct oracle *o, const char *s)
{
    o->used += (size_t)snprintf(o->text + o->used, TEXT - o->used, "%s", s);
    assert_true(o->used < TEXT);
}

static void print_tree(struct oracle *o, struct rng *r, int number, int level)
{
    const struct tree *t = &o->tree[number];
    int is_inside = t->level < level || (t->level < 9 && rng_below(r, 6) == 0);
    int is_call = t->op && t->level == 9, is_prefix = t->op && t->b < 0 && !is_call;

    print(o, is_inside ? "(" : rng_below(r, 5) == 0 ? " " : "");
    if (!t->op) {
        print(o, t->leaf);
    } else if (is_call) {
        print(o, t->op);
        print_tree(o, r, t->a, 1);
        if (t->b >= 0)
            print(o, ",");
        if (t->b >= 0)
            print_tree(o, r, t->b, 1);
        print(o, strchr(t->op, '[') ? "]" : ")");
    } else {
        /* The right operand of ** and of prefixes may be of the same level, the left one of all others. */
        if (!is_prefix)
            print_tree(o, r, t->a, t->level == 8 || t->level == 4 ? t->level + 1 : t->level);
        print(o, t->op);
        print_tree(o, r, is_prefix ? t->a : t->b, t->level == 8 || is_prefix ? t->level : t->level + 1);
    }
    print(o, is_inside ? ")" : "");
}

struct oracle *oracle_create(struct rng *r, int is_condition)
{
    struct oracle *o = calloc(1, sizeof *o);

    assert_non_null(o);
    o->root = is_condition ? make_condition(o, r, 4) : rng_below(r, 2) ? make_real(o, r, 4) : make_integer(o, r, 5);
    print_tree(o, r, o->root, 1);
    return o;
}

void oracle_destroy(struct oracle *o)
{
    free(o);
}

const char *oracle_text(const struct oracle *o)
{
    return o->text;
}

/* ---- Values ---- */

static struct result of_integer(__int128 v)
{
    return (struct result){.is_integer = 1, .integer = v, .real = (double)v};
}

static struct result of_real(double v)
{
    return (struct result){.real = v};
}

static struct result load(const struct expr_column *c, int column, size_t record)
{
    const uint8_t *p = (const uint8_t *)c[column].first + record * c[column].stride;
    uint32_t size = oracle_columns[column].size;
    uint64_t v = 0;
    float f;
    double d;

    memcpy(&v, p, size);
    memcpy(&f, &v, sizeof f); /* little-endian, as the columns are */
    memcpy(&d, &v, sizeof d);
    if (oracle_columns[column].letter == 'f')
        return of_real(size == 4 ? (double)f : d);
    if (oracle_columns[column].letter == 'u')
        return of_integer(v);
    return of_integer((int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size));
}

static double python_mod(double a, double b)
{
    double m = fmod(a, b);

    if (m != 0 && (m < 0) != (b < 0))
        m += b;
    return m == 0 ? copysign(0, b) : m;
}

static double python_floordiv(double a, double b)
{
    double whole = (a - python_mod(a, b)) / b;

    if (b == 0)
        return a / b;
    return whole == 0 ? copysign(0, a / b) : whole - floor(whole) > 0.5 ? floor(whole) + 1 : floor(whole);
}

static struct result eval_integer(const char *op, struct result a, struct result b)
{
    int is_exact_pair = a.is_integer && b.is_integer;
    __int128 x = a.integer, y = b.integer;

    switch (op[0]) {
    case '+':
        return is_exact_pair ? of_integer(x + y) : of_real(a.real + b.real);
    case '-':
        return is_exact_pair ? of_integer(x - y) : of_real(a.real - b.real);
    case '*':
        return is_exact_pair ? of_integer(x * y) : of_real(a.real * b.real + 0.0);
    default:
        break;
    }
    if (!is_exact_pair || y == 0) {
        double down = floor(a.real / b.real) + 0.0;
        double v = op[0] == '/' ? down : a.real - down * b.real;
        return isfinite(v) ? of_integer((__int128)v) : of_real(v);
    }
    __int128 down = x / y;
    while (down * y > x ? y > 0 : y < 0 && down * y < x)
        down--;
    if (x % y != 0 && (x < 0) != (y < 0) && x / y == down)
        down--;
    return of_integer(op[0] == '/' ? down : x - down * y);
}

static double eval_real(const char *op, double a, double b)
{
    switch (op[0]) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return op[1] == '*' ? pow(a, b) : a * b;
    case '/':
        return op[1] == '/' ? python_floordiv(a, b) : a / b;
    default:
        return python_mod(a, b);
    }
}

static double eval_call(const char *op, double a, double b)
{
    if (strcmp(op, "sqrt(") == 0)
        return sqrt(a);
    if (strcmp(op, "abs(") == 0)
        return fabs(a);
    if (strcmp(op, "floor(") == 0)
        return floor(a);
    if (strcmp(op, "log(") == 0)
        return log(a);
    if (strcmp(op, "exp(") == 0)
        return exp(a);
    if (strcmp(op, "sin(") == 0)
        return sin(a);
    if (strcmp(op, "cos(") == 0)
        return cos(a);
    if (strcmp(op, "atan2(") == 0)
        return atan2(a, b);
    if (strcmp(op, "min(") == 0)
        return a < b || isnan(b) ? a : b;
    return a > b || isnan(b) ? a : b;
}

/* 1, 0 or -1 as the integer is above the number, equal to it or below it; exact, since what is cut off the number tells
 * the rest. Not by long double: Valgrind has no more than 53 bits of it. */
static int order_mixed(__int128 a, double b)
{
    if (fabs(b) >= 0x1p100)
        return b < 0 ? 1 : -1;
    __int128 whole = (__int128)b;
    double rest = b - (double)whole;

    return a != whole ? (a > whole) - (a < whole) : (rest < 0) - (rest > 0);
}

static int order_results(struct result a, struct result b)
{
    if (a.is_integer && b.is_integer)
        return (a.integer > b.integer) - (a.integer < b.integer);
    if (a.is_integer)
        return order_mixed(a.integer, b.real);
    if (b.is_integer)
        return -order_mixed(b.integer, a.real);
    return (a.real > b.real) - (a.real < b.real);
}

static int eval_comparison(const char *op, struct result a, struct result b)
{
    int is_unordered = isnan(a.real) || isnan(b.real);
    int order = is_unordered ? 0 : order_results(a, b);

    switch (op[0]) {
    case '<':
        return !is_unordered && (op[1] == '=' ? order <= 0 : order < 0);
    case '>':
        return !is_unordered && (op[1] == '=' ? order >= 0 : order > 0);
    case '=':
        return !is_unordered && order == 0;
    default:
        return is_unordered || order != 0;
    }
}

static struct result eval_tree(const struct oracle *o, int number, const struct expr_column *columns, size_t record)
{
    const struct tree *t = &o->tree[number];
    struct result a = {0}, b = {0};

    if (!t->op && t->column >= 0)
        return load(columns, t->column, record);
    if (!t->op)
        return t->is_integer ? of_integer(t->integer) : of_real(t->real);
    a = eval_tree(o, t->a, columns, record);
    if (t->b >= 0)
        b = eval_tree(o, t->b, columns, record);
    if (strcmp(t->op, "cells[") == 0)
        return a.is_integer && a.integer >= 0 && a.integer < ORACLE_ARRAY ? of_integer(oracle_cells[a.integer])
                                                                          : of_real(NAN);
    if (t->type == CONDITION && t->level == 4)
        return of_real(eval_comparison(t->op, a, b));
    if (t->type == CONDITION && t->level == 3)
        return of_real(a.real == 0);
    if (t->type == CONDITION)
        return of_real(t->level == 2 ? a.real != 0 && b.real != 0 : a.real != 0 || b.real != 0);
    if (t->level == 9)
        return of_real(eval_call(t->op, a.real, b.real));
    if (t->type == INTEGER)
        return t->b < 0 ? eval_integer("-", of_integer(0), a) : eval_integer(t->op, a, b);
    if (strcmp(t->op, "**") == 0 && strcmp(o->tree[t->b].leaf, "2") == 0)
        return of_real(a.real * a.real);
    return of_real(eval_real(t->op, a.real, b.real));
}

double oracle_eval(const struct oracle *o, const struct expr_column *columns, size_t record)
{
    return eval_tree(o, o->root, columns, record).real;
}
