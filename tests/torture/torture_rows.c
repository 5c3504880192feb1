#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_query.h>
#include "torture_rows.h"

struct row {
    uint64_t key, label, serial;
    float v;
    double w;
    int32_t n;
};

struct rows {
    struct row *row; /* by label, key and serial */
    size_t count, epochs;
    const struct torture_epoch *epoch;
};

/* ---- Records ---- */

/* What the values of an epoch look like. */
enum skew { SKEW_NONE, SKEW_EQUAL, SKEW_GIANT, SKEW_SPECIAL, SKEW_FEW, SKEW_POWER, SKEWS };

static double some_value(struct torture_rng *r, enum skew skew)
{
    static const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-45, -1e-45, 3e38, -3e38};
    double u = (double)(torture_next(r) >> 11) * 0x1p-53;

    switch (skew) {
    case SKEW_EQUAL:
        return 2.5;
    case SKEW_GIANT:
        return torture_below(r, 100) == 0 ? 3e30 : 2.5;
    case SKEW_SPECIAL:
        return torture_below(r, 2) ? special[torture_below(r, sizeof special / sizeof special[0])] : 8 * u - 4;
    case SKEW_FEW:
        return (double)torture_below(r, 4);
    case SKEW_POWER:
        return 1 / (u * u + 1e-9);
    default:
        return 8 * u - 4;
    }
}

static uint64_t some_key(struct torture_rng *r, uint64_t seed, uint32_t i)
{
    switch (seed % 3) {
    case 0:
        return i * UINT64_C(7919) % 10007; /* each once */
    case 1:
        return torture_below(r, 50);
    default:
        return torture_next(r);
    }
}

static struct row row_at(const struct torture_epoch *epoch, uint32_t i)
{
    struct torture_rng r = {epoch->seed + i * UINT64_C(0x2545f4914f6cdd1d)};
    enum skew skew = (enum skew)(epoch->seed / 3 % SKEWS);
    struct row out = {.key = some_key(&r, epoch->seed, i), .label = epoch->label, .serial = i};

    out.v = (float)some_value(&r, skew);
    out.w = some_value(&r, skew == SKEW_EQUAL ? SKEW_NONE : skew);
    out.n = (int32_t)torture_below(&r, 12) - 4;
    return out;
}

static void row_value(const struct row *row, uint8_t value[ROWS_SIZE])
{
    memcpy(value, &row->v, 4);
    memcpy(value + 4, &row->w, 8);
    memcpy(value + 12, &row->n, 4);
}

int rows_append(const struct torture_epoch *epoch, uint32_t rank, uint32_t ranks, deltafs_dir *dir)
{
    uint8_t value[ROWS_SIZE];
    int first_error = DELTAFS_OK;

    for (uint32_t i = 0; i < epoch->records; i++) {
        struct row row = row_at(epoch, i);
        if (row.key % ranks != rank)
            continue;
        row_value(&row, value);
        int status = deltafs_append(dir, row.key, value, sizeof value);
        first_error = first_error != DELTAFS_OK ? first_error : status;
    }
    return first_error;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

struct torture_epoch rows_epoch(uint64_t seed, uint64_t label, uint32_t most)
{
    struct torture_rng r = {seed ^ label * UINT64_C(0xd1342543de82ef95)};
    uint64_t epoch_seed = torture_next(&r);

    return (struct torture_epoch){.label = label, .seed = epoch_seed, .records = (uint32_t)torture_below(&r, most)};
}

struct rows *rows_create(const struct torture_epoch *epochs, size_t n)
{
    struct rows *m = calloc(1, sizeof *m);
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += epochs[i].records;
    if (m)
        m->row = calloc(count + 1, sizeof *m->row);
    if (!m || !m->row) {
        fputs("torture: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    m->epochs = n;
    m->epoch = epochs;
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < epochs[i].records; k++)
            m->row[m->count++] = row_at(&epochs[i], k);
    qsort(m->row, m->count, sizeof *m->row, compare_rows);
    return m;
}

void rows_destroy(struct rows *m)
{
    if (m)
        free(m->row);
    free(m);
}

int rows_fit(const struct rows *m, deltafs_dir *dir)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};

    if (deltafs_stat(dir, &stat) != DELTAFS_OK || stat.epochs != m->epochs)
        return 0;
    for (size_t i = 0; i < m->epochs; i++)
        if (deltafs_epoch_stat(dir, i, &epoch) != DELTAFS_OK || epoch.label != m->epoch[i].label ||
            epoch.records != m->epoch[i].records)
            return 0;
    return 1;
}

/* ---- Questions ---- */

static double value_square(const struct row *r)
{
    return (double)r->v * (double)r->v;
}

static double value_mixed(const struct row *r)
{
    return (double)r->v + (double)r->n;
}

static double value_plain(const struct row *r)
{
    return r->w;
}

static const struct {
    const char *text;
    double (*of)(const struct row *r);
} values[] = {{"v*v", value_square}, {"v + n", value_mixed}, {"w", value_plain}};
enum { VALUES = sizeof values / sizeof values[0] };

const char *const rows_index[ROWS_INDEXES] = {"size:v*v", "big:v*v +w +n", "mixed:v + n +v", "plain:w"};
static const size_t value_of_index[ROWS_INDEXES] = {0, 0, 1, 2};

const char *rows_indexes(struct torture_rng *r, char text[128])
{
    size_t one = (size_t)torture_below(r, ROWS_INDEXES), two = (size_t)torture_below(r, ROWS_INDEXES);

    if (one == two)
        snprintf(text, 128, "%s", rows_index[one]);
    else
        snprintf(text, 128, "%s;%s", rows_index[one], rows_index[two]);
    return text;
}

enum ask { ASK_ALL, ASK_GE, ASK_GT, ASK_LT, ASK_EQ, ASK_BETWEEN, ASK_AND, ASK_OR, ASK_TOP, ASK_TOP_WHERE, ASKS };

struct question {
    enum ask ask;
    size_t value;
    double low, high;
    struct deltafs_range range;
    uint64_t top;
    const char *fields; /* names of one letter */
    char where[200];
};

/* A number that some record has, or almost; one that can be written in an expression. */
static double some_bound(const struct rows *m, size_t value, struct torture_rng *r)
{
    double x = m->count > 0 ? values[value].of(&m->row[torture_below(r, m->count)]) : 0;

    if (isnan(x) || isinf(x))
        x = isnan(x) ? 0 : copysign(1e300, x);
    return torture_below(r, 3) == 0 ? nextafter(x, torture_below(r, 2) ? INFINITY : -INFINITY) : x;
}

static struct question question_make(const struct rows *m, struct torture_rng *r)
{
    static const char *const fields[] = {"v,w,n", "w", "n,w", "v"};
    struct question q = {.ask = (enum ask)torture_below(r, ASKS),
                         .value = (size_t)torture_below(r, VALUES),
                         .range = {0, UINT64_MAX},
                         .fields = fields[torture_below(r, 4)]};
    const char *text = values[q.value].text;

    q.low = some_bound(m, q.value, r);
    q.high = some_bound(m, q.value, r);
    q.top = q.ask >= ASK_TOP ? 1 + torture_below(r, 30) : 0;
    if (m->epochs > 0 && torture_below(r, 3) == 0)
        q.range.first = q.range.last = m->epoch[torture_below(r, m->epochs)].label;
    static const char *const how[] = {NULL,
                                      "%s >= %.17g",
                                      "%s > %.17g",
                                      "%s < %.17g",
                                      "%s == %.17g",
                                      NULL,
                                      "%s > %.17g and n != 3",
                                      "%s >= %.17g or n == 2",
                                      NULL,
                                      "%s <= %.17g"};
    if (q.ask == ASK_BETWEEN)
        snprintf(q.where, sizeof q.where, "%.17g <= %s < %.17g", q.low, text, q.high);
    else if (how[q.ask])
        snprintf(q.where, sizeof q.where, how[q.ask], text, q.low);
    return q;
}

static int is_wanted(const struct question *q, const struct row *row)
{
    double x = values[q->value].of(row);

    if (row->label < q->range.first || row->label > q->range.last)
        return 0;
    switch (q->ask) {
    case ASK_GE:
        return x >= q->low;
    case ASK_GT:
        return x > q->low;
    case ASK_LT:
        return x < q->low;
    case ASK_EQ:
        return x == q->low;
    case ASK_BETWEEN:
        return q->low <= x && x < q->high;
    case ASK_AND:
        return x > q->low && row->n != 3;
    case ASK_OR:
        return x >= q->low || row->n == 2;
    case ASK_TOP_WHERE:
        return x <= q->low;
    default:
        return 1;
    }
}

static size_t sorted_by; /* the value */

/* The largest first, NaN last; then by key and epoch. */
static int compare_values(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double p = values[sorted_by].of(x), q = values[sorted_by].of(y);
    int nan = (isnan(p) != 0) - (isnan(q) != 0);

    if (nan != 0)
        return nan;
    if (!isnan(p) && p != q)
        return p > q ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return compare_rows(a, b);
}

static size_t question_answer(const struct question *q, const struct rows *m, struct row *out)
{
    size_t n = 0;

    for (size_t i = 0; i < m->count; i++)
        if (is_wanted(q, &m->row[i]))
            out[n++] = m->row[i];
    if (q->top == 0)
        return n;
    sorted_by = q->value;
    qsort(out, n, sizeof *out, compare_values);
    return n < q->top ? n : (size_t)q->top;
}

/* ---- Comparing ---- */

static int is_row(const struct question *q, const struct row *want, const struct deltafs_record *got)
{
    uint8_t value[ROWS_SIZE];
    size_t n = 0;

    for (const char *p = q->fields; *p; p++) {
        const void *from = *p == 'v' ? (const void *)&want->v : *p == 'w' ? (const void *)&want->w : &want->n;
        size_t size = *p == 'w' ? 8 : 4;
        if (*p == ',')
            continue;
        memcpy(value + n, from, size);
        n += size;
    }
    return got->key == want->key && got->label == want->label && got->size == n && memcmp(got->value, value, n) == 0;
}

/* Returns whether an index was used. */
static int question_ask(const struct question *q, const struct rows *m, deltafs_dir *dir, struct row *want,
                        struct torture_verdict *v)
{
    const struct deltafs_select_options o = {.struct_size = sizeof o,
                                             .where = q->where[0] ? q->where : NULL,
                                             .by = q->top > 0 ? values[q->value].text : NULL,
                                             .top = q->top,
                                             .fields = q->fields,
                                             .range = &q->range};
    size_t n = question_answer(q, m, want), at = 0, count = 1;
    const struct deltafs_record *row;
    deltafs_select *s;
    int status = deltafs_select_open(dir, &o, &s);

    if (status != DELTAFS_OK) {
        torture_lost(v, "select where '%s' returns %d: %s", q->where, status, deltafs_errmsg(dir));
        return 0;
    }
    const char *index = deltafs_select_index(s);
    int is_used = index != NULL;
    while (status == DELTAFS_OK && count > 0 && !v->is_wrong) {
        status = deltafs_select_next(s, &row, &count);
        if (status != DELTAFS_OK)
            torture_lost(v, "select where '%s' (index %s) returns %d: %s", q->where, is_used ? index : "none", status,
                         deltafs_errmsg(dir));
        for (size_t i = 0; status == DELTAFS_OK && i < count && !v->is_wrong; i++, at++)
            if (at >= n || !is_row(q, &want[at], &row[i]))
                torture_wrong(v,
                              "select where '%s' top %" PRIu64 " by %s (index %s): row %zu of %zu, key %" PRIu64
                              ", epoch %" PRIu64 ", is another one",
                              q->where, q->top, values[q->value].text, is_used ? index : "none", at, n, row[i].key,
                              row[i].label);
    }
    if (status == DELTAFS_OK && !v->is_wrong && at < n)
        torture_lost(v, "select where '%s' top %" PRIu64 " by %s (index %s): %zu rows of %zu", q->where, q->top,
                     values[q->value].text, is_used ? index : "none", at, n);
    deltafs_select_close(s);
    return is_used;
}

static struct row *open_to_ask(const struct rows *m, const char *path, deltafs_dir **dir, struct torture_verdict *v)
{
    struct row *want = calloc(m->count + 1, sizeof *want);
    int status = want ? deltafs_open(path, NULL, dir) : DELTAFS_ERR_MEMORY;

    if (status == DELTAFS_OK)
        return want;
    torture_lost(v, "deltafs_open returns %d: %s", status, deltafs_errmsg(NULL));
    free(want);
    return NULL;
}

unsigned rows_check(const struct rows *m, const char *path, unsigned questions, struct torture_rng *r,
                    struct torture_verdict *v)
{
    unsigned used = 0;
    deltafs_dir *dir;
    struct row *want = open_to_ask(m, path, &dir, v);

    if (!want)
        return 0;
    for (unsigned i = 0; i < questions; i++) {
        struct question q = question_make(m, r);
        if (i == 0)
            q = (struct question){.ask = ASK_ALL, .range = {0, UINT64_MAX}, .fields = "v,w,n"};
        used += (unsigned)question_ask(&q, m, dir, want, v);
    }
    deltafs_close(dir);
    free(want);
    return used;
}

unsigned rows_check_epochs(const struct rows *m, const char *path, size_t i, struct torture_verdict *v)
{
    struct question q = {.ask = ASK_GT, .value = value_of_index[i], .low = 1e301, .fields = "v,w,n"};
    unsigned used = 0;
    deltafs_dir *dir;
    struct row *want = open_to_ask(m, path, &dir, v);

    if (!want)
        return 0;
    snprintf(q.where, sizeof q.where, "%s > 1e301", values[q.value].text);
    for (size_t k = 0; k < m->epochs; k++) {
        q.range.first = q.range.last = m->epoch[k].label;
        used += (unsigned)question_ask(&q, m, dir, want, v);
    }
    deltafs_close(dir);
    free(want);
    return used;
}
