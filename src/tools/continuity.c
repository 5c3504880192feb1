/* A track jumps if a particle is farther from its place in the epoch before than light gets in the time between: then a
 * code has probably mixed up IDs. Records of a partition (by ranges of keys: of all) are read epoch by epoch, so two
 * epochs are compared like two sorted lists. If those need more than the option memory, a partition is read several
 * times, for a slice of its keys each time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_query.h>
#include "tools/continuity.h"
#include "tools/progress.h"
#include "tools/text.h"

#define SHOWN    8    /* jumps */
#define ROUNDING 1e-5 /* of the size of the box: positions are sums of 32-bit floats */

struct place {
    uint64_t key;
    double at[3];
};

struct places {
    uint64_t label;
    struct place *place;
    size_t count, capacity;
    int is_read; /* 0: there is no such epoch */
};

/* What the attributes say of an epoch. */
struct moment {
    uint64_t label;
    double time, speed; /* of light */
};

struct continuity {
    deltafs_dir *dir;
    const char *path;
    int is_all;
    int is_by_range;          /* then a key has no partition of its own, and all are read together */
    deltafs_columns *columns; /* x, y, z */
    int is_double[3];
    double low[3], size[3]; /* of the box; 0: not known */
    struct moment *moment;  /* of each epoch, in the order of labels */
    size_t moments;
    struct places before, now;
    uint32_t slice, slices;
    struct progress bar;
    uint64_t steps, faults;
    int code;
};

/* ---- What the attributes say ---- */

static int get_numbers(const struct continuity *c, const char *name, uint64_t label, struct deltafs_attribute *a)
{
    *a = (struct deltafs_attribute){.struct_size = sizeof *a};
    return deltafs_attribute_get(c->dir, name, label, a) == DELTAFS_OK && a->type <= DELTAFS_ATTRIBUTE_U8;
}

static double number_at(const struct deltafs_attribute *a, size_t i)
{
    i = a->count == 1 ? 0 : i;
    return a->type == DELTAFS_ATTRIBUTE_F8   ? ((const double *)a->value)[i]
           : a->type == DELTAFS_ATTRIBUTE_I8 ? (double)((const int64_t *)a->value)[i]
                                             : (double)((const uint64_t *)a->value)[i];
}

/* The box is that of all ranks together: from x0 on, nx cells of the size hx. */
static void find_box(struct continuity *c, uint64_t label)
{
    static const char *const names[3][3] = {{"x0", "nx", "hx"}, {"y0", "ny", "hy"}, {"z0", "nz", "hz"}};

    for (size_t k = 0; k < 3; k++) {
        struct deltafs_attribute first, cells, size;
        double high = -INFINITY;
        c->low[k] = INFINITY;
        if (!get_numbers(c, names[k][0], label, &first) || !get_numbers(c, names[k][1], label, &cells) ||
            !get_numbers(c, names[k][2], label, &size) || (cells.count > 1 && cells.count != first.count) ||
            (size.count > 1 && size.count != first.count))
            continue;
        for (size_t i = 0; i < first.count; i++) {
            c->low[k] = fmin(c->low[k], number_at(&first, i));
            high = fmax(high, number_at(&first, i) + number_at(&cells, i) * number_at(&size, i));
        }
        c->size[k] = high > c->low[k] ? high - c->low[k] : 0;
    }
}

/* Before the scan, within which the handle cannot be asked. */
static int find_moments(struct continuity *c, uint64_t epochs)
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct deltafs_attribute time, speed;

    c->moment = calloc(epochs + 1, sizeof *c->moment);
    if (!c->moment)
        return text_fail(EXIT_TROUBLE, "verify: no memory for %" PRIu64 " epochs", epochs);
    for (uint64_t i = 0; i < epochs && deltafs_epoch_stat(c->dir, i, &epoch) == DELTAFS_OK; i++) {
        if (!get_numbers(c, "cvac", epoch.label, &speed))
            return text_fail(EXIT_TROUBLE,
                             "verify: %s has no attribute cvac (the speed of light) for epoch %" PRIu64
                             ", which --continuity needs; set it by deltafs attr",
                             c->path, epoch.label);
        c->moment[i].speed = number_at(&speed, 0);
        if (!get_numbers(c, "time", epoch.label, &time))
            return text_fail(EXIT_TROUBLE,
                             "verify: %s has no attribute time for epoch %" PRIu64
                             ", which --continuity needs; set it by deltafs attr",
                             c->path, epoch.label);
        c->moment[i].time = number_at(&time, 0);
        c->moment[i].label = epoch.label;
        c->moments++;
    }
    return EXIT_OK;
}

static int moment_compare(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    return (x->label > y->label) - (x->label < y->label);
}

static const struct moment *find_moment(const struct continuity *c, uint64_t label)
{
    const struct moment wanted = {.label = label};

    return bsearch(&wanted, c->moment, c->moments, sizeof wanted, moment_compare);
}

/* ---- Comparing ---- */

static void report(struct continuity *c, const char *what, uint64_t key)
{
    if (c->is_all || c->faults < SHOWN) {
        progress_wipe(&c->bar);
        text_fail(0, "%s: key %" PRIu64 " %s", c->path, key, what);
    }
    c->faults++;
}

/* The way from one place to the other, the shorter way round in a periodic box. */
static double distance(const struct continuity *c, const struct place *a, const struct place *b, double *rounding)
{
    double sum = 0;

    *rounding = 0;
    for (size_t k = 0; k < 3; k++) {
        double d = fabs(b->at[k] - a->at[k]);
        if (c->size[k] > 0 && d > c->size[k] / 2)
            d = fabs(c->size[k] - d);
        sum += d * d;
        *rounding += ROUNDING * c->size[k];
    }
    return sqrt(sum);
}

static void compare_places(struct continuity *c)
{
    const struct places *before = &c->before, *now = &c->now;
    const struct moment *m = find_moment(c, before->label), *n = find_moment(c, now->label);
    double limit = m && n ? fabs(n->time - m->time) * n->speed : INFINITY;
    char what[160];

    for (size_t i = 0, k = 0; i < now->count; i++) {
        double rounding;
        while (k < before->count && before->place[k].key < now->place[i].key)
            k++;
        if (k == before->count || before->place[k].key != now->place[i].key)
            continue;
        double d = distance(c, &before->place[k], &now->place[i], &rounding);
        c->steps++;
        if (d <= limit + rounding)
            continue;
        snprintf(what, sizeof what, "moves by %.6g from epoch %" PRIu64 " to %" PRIu64 ", in which light moves by %.6g",
                 d, before->label, now->label, limit);
        report(c, what, now->place[i].key);
    }
}

static int place_compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Keys increase only within each part of an epoch that the writer's memory did not hold. */
static void sort_places(struct places *p)
{
    size_t i = 1;

    while (i < p->count && p->place[i - 1].key <= p->place[i].key)
        i++;
    if (i < p->count)
        qsort(p->place, p->count, sizeof *p->place, place_compare);
}

/* An epoch has been read. */
static void end_epoch(struct continuity *c)
{
    const struct places *now = &c->now;
    char what[64];

    sort_places(&c->now);
    for (size_t i = 1; i < now->count; i++)
        if (now->place[i].key == now->place[i - 1].key) {
            snprintf(what, sizeof what, "has two records in epoch %" PRIu64, now->label);
            report(c, what, now->place[i].key);
        }
    if (now->is_read && c->before.is_read)
        compare_places(c);
    struct places other = c->before;
    c->before = c->now;
    c->now = other;
    c->now.count = 0;
    c->now.is_read = 0;
}

/* ---- Reading ---- */

/* Of the key; not the hash by which keys are distributed over partitions. */
static uint32_t slice_of(const struct continuity *c, uint64_t key)
{
    key = (key ^ key >> 31) * 0xd6e8feb86659fd93u;
    return (uint32_t)((key >> 32) % c->slices);
}

static int is_missing(const double *v)
{
    const uint64_t missing = DELTAFS_MISSING_BITS;

    return memcmp(v, &missing, sizeof missing) == 0;
}

static int take_record(const struct deltafs_record *record, void *arg)
{
    struct continuity *c = arg;
    const struct deltafs_record *row;

    progress_add(&c->bar, 1);
    if (c->now.is_read && record->label != c->now.label)
        end_epoch(c);
    c->now.is_read = 1;
    c->now.label = record->label;
    if (slice_of(c, record->key) != c->slice)
        return 0;
    if (c->now.count == c->now.capacity) {
        size_t capacity = c->now.capacity > 0 ? 2 * c->now.capacity : 4096;
        struct place *grown = realloc(c->now.place, capacity * sizeof *grown);
        if (!grown) {
            c->code = text_fail(EXIT_TROUBLE, "verify: no memory for %zu positions", capacity);
            return 1;
        }
        c->now.place = grown;
        c->now.capacity = capacity;
    }
    if (deltafs_columns_rows(c->columns, 1, record, &row) != DELTAFS_OK) {
        c->code = text_fail(EXIT_TROUBLE, "verify: %s", deltafs_errmsg(NULL));
        return 1;
    }
    struct place *p = &c->now.place[c->now.count++];
    const char *value = row->value;
    p->key = record->key;
    for (size_t k = 0; k < 3; k++) {
        float single;
        if (c->is_double[k])
            memcpy(&p->at[k], value, sizeof p->at[k]);
        else
            memcpy(&single, value, sizeof single), p->at[k] = (double)single;
        if (is_missing(&p->at[k])) {
            uint64_t label = record->label;
            c->code = text_fail(EXIT_TROUBLE, "verify: --continuity: the column %c is not set for epoch %" PRIu64,
                                "xyz"[k], label);
            return 1;
        }
        value += c->is_double[k] ? sizeof(double) : sizeof(float);
    }
    return 0;
}

/* Read a partition epoch by epoch, or all. */
static int scan_slice(struct continuity *c, uint32_t partition)
{
    int stopped = 0, status = DELTAFS_OK;

    if (!c->is_by_range)
        return deltafs_scan_partition(c->dir, partition, NULL, take_record, c, &stopped);
    for (size_t i = 0; i < c->moments && !stopped && status == DELTAFS_OK; i++) {
        const struct deltafs_range epoch = {c->moment[i].label, c->moment[i].label};
        status = deltafs_scan(c->dir, &epoch, take_record, c, &stopped);
    }
    return status;
}

static int check_slice(struct continuity *c, uint32_t partition)
{
    int status = scan_slice(c, partition);

    if (status != DELTAFS_OK) {
        progress_wipe(&c->bar);
        text_fail(0, "%s", deltafs_errmsg(NULL));
    }
    end_epoch(c);
    c->before.count = 0;
    c->before.is_read = 0;
    return status == DELTAFS_OK ? c->code : EXIT_TROUBLE;
}

/* How many slices make the places of two epochs fit into the memory. */
static uint32_t count_slices(deltafs_dir *d, const struct deltafs_stat *stat, uint32_t partitions)
{
    struct deltafs_memory_stat memory = {.struct_size = sizeof memory};
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    uint64_t most = 0;

    if (deltafs_memory_stat(d, &memory) != DELTAFS_OK || memory.limit == 0)
        return 1;
    for (uint64_t i = 0; i < stat->epochs && deltafs_epoch_stat(d, i, &epoch) == DELTAFS_OK; i++)
        most = epoch.records > most ? epoch.records : most;
    return (uint32_t)(1 + most / partitions * 2 * sizeof(struct place) / memory.limit);
}

static int check_all(struct continuity *c, const struct deltafs_stat *stat)
{
    uint32_t partitions = c->is_by_range ? 1 : stat->partitions;
    int code = EXIT_OK;

    c->slices = count_slices(c->dir, stat, partitions);
    progress_begin(&c->bar, stat->records * c->slices, 1);
    for (uint32_t p = 0; p < partitions && code == EXIT_OK; p++)
        for (c->slice = 0; c->slice < c->slices && code == EXIT_OK; c->slice++)
            code = check_slice(c, p);
    progress_end(&c->bar);
    return code;
}

/* Columns x, y, z, which are floats. */
static int open_columns(struct continuity *c)
{
    deltafs_schema *schema = NULL;
    int code = EXIT_OK;

    if (deltafs_columns_open(c->dir, "x,y,z", &c->columns) != DELTAFS_OK ||
        deltafs_schema_parse(deltafs_columns_schema(c->columns), &schema) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "verify: --continuity needs columns x, y and z: %s", deltafs_errmsg(NULL));
    for (size_t k = 0; k < 3; k++) {
        const struct deltafs_field *f = deltafs_schema_field(schema, k);
        c->is_double[k] = f->size == sizeof(double);
        if (f->kind != 'f')
            code = text_fail(EXIT_TROUBLE, "verify: --continuity: the column %s has no floats", f->name);
    }
    deltafs_schema_destroy(schema);
    return code;
}

int continuity_check(deltafs_dir *d, const char *path, int is_all)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct continuity c = {.dir = d, .path = path, .is_all = is_all};
    uint64_t label;
    int code = text_of_call(deltafs_stat(d, &stat));

    c.is_by_range = code == EXIT_OK && strcmp(stat.partitioner, "range") == 0;
    if (code == EXIT_OK && strcmp(stat.keys, "bytes") == 0)
        code = text_fail(EXIT_TROUBLE, "verify: %s: --continuity is for keys that are numbers", path);
    if (code == EXIT_OK)
        code = open_columns(&c);
    if (code == EXIT_OK)
        code = find_moments(&c, stat.epochs);
    if (code == EXIT_OK && deltafs_last_label(d, &label) == DELTAFS_OK)
        find_box(&c, label);
    if (code == EXIT_OK)
        code = check_all(&c, &stat);
    if (c.faults > SHOWN && !is_all)
        text_fail(0, "%s: and %" PRIu64 " more, which verify --continuity --all names", path, c.faults - SHOWN);
    if (code == EXIT_OK)
        text_say("%s: %" PRIu64 " step%s of tracks checked, %" PRIu64 " jump%s", path, c.steps, text_plural(c.steps),
                 c.faults, text_plural(c.faults));
    deltafs_columns_close(c.columns);
    free(c.moment);
    free(c.before.place);
    free(c.now.place);
    return code == EXIT_OK && c.faults > 0 ? EXIT_TROUBLE : code;
}
