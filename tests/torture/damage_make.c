#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "damage.h"
#include "directory/format/directory_format.h"

#define LOG_NAMES_MAX 4 /* partitions of a container, at most */

void damage_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("torture-damage: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(3);
}

uint64_t damage_next(struct damage_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t damage_below(struct damage_rng *r, uint64_t n)
{
    return (uint64_t)((unsigned __int128)damage_next(r) * n >> 64);
}

static void must(int status, const char *what)
{
    if (status != DELTAFS_OK)
        damage_die("%s: %s", what, deltafs_errmsg(NULL));
}

static void *room(size_t n)
{
    void *p = calloc(1, n + 1);

    if (!p)
        damage_die("no memory");
    return p;
}

/* ---- States ---- */

static void state_add(struct damage_state *s, const char *name, const void *bytes, size_t n)
{
    if (s->count == DAMAGE_FILES_MAX)
        damage_die("a container of too many files");
    struct damage_file *f = &s->file[s->count++];
    snprintf(f->name, sizeof f->name, "%s", name);
    f->bytes = room(n);
    memcpy(f->bytes, bytes, n);
    f->n = n;
}

static void state_free(struct damage_state *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->file[i].bytes);
    s->count = 0;
}

/* What the files in memory are now; the lease is for writers. */
static void state_take(struct damage_state *s, const struct mem_io *m)
{
    static const size_t folder = sizeof DAMAGE_PATH;

    for (int i = 0; i < MEM_FILES_MAX; i++)
        if (m->file[i].name[0] && strcmp(m->file[i].name + folder, LEASE_NAME) != 0)
            state_add(s, m->file[i].name + folder, m->file[i].bytes, m->file[i].n);
}

const struct damage_file *damage_file_of(const struct damage_state *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->file[i].name, name) == 0)
            return &s->file[i];
    return NULL;
}

void damage_show(struct mem_io *m, const struct damage_state *s)
{
    char path[MEM_NAME_MAX + 8];

    for (int i = 0; i < MEM_FILES_MAX; i++)
        if (m->file[i].name[0] && !damage_file_of(s, m->file[i].name + sizeof DAMAGE_PATH))
            mem_remove(m, m->file[i].name);
    for (size_t i = 0; i < s->count; i++) {
        snprintf(path, sizeof path, DAMAGE_PATH "/%s", s->file[i].name);
        mem_put(m, path, s->file[i].bytes, s->file[i].n);
    }
}

/* ---- What is in them ---- */

static int take_record(const struct deltafs_record *record, void *arg)
{
    struct damage_container *c = arg;

    if (c->records == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 256;
        c->record = realloc(c->record, c->capacity * sizeof *c->record);
        if (!c->record)
            damage_die("no memory");
    }
    struct damage_record *to = &c->record[c->records];
    *to = (struct damage_record){.key = record->key,
                                 .epoch = record->label,
                                 .value = room(record->size),
                                 .size = record->size,
                                 .name = room(record->key_size),
                                 .name_size = record->key_size,
                                 .order = c->records++};
    memcpy(to->value, record->value, record->size);
    if (record->key_size > 0)
        memcpy(to->name, record->key_bytes, record->key_size);
    return 0;
}

static int record_compare(const void *a, const void *b)
{
    const struct damage_record *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* A container's records and epochs, from a scan of it as it is undamaged: that a scan is right is what the unit tests
 * and the golden containers are for. */
static void container_refresh(struct damage_container *c, struct mem_io *m)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    deltafs_dir *d;

    damage_show(m, &c->now);
    must(deltafs_open(DAMAGE_PATH, NULL, &d), c->name);
    if (deltafs_stat(d, &stat) != DELTAFS_OK || deltafs_scan(d, NULL, take_record, c, NULL) != DELTAFS_OK)
        damage_die("%s: %s", c->name, deltafs_errmsg(d));
    if (c->records != stat.records)
        damage_die("%s: a scan gives %zu records, not %llu", c->name, c->records, (unsigned long long)stat.records);
    c->is_bytes = strcmp(stat.keys, "bytes") == 0;
    c->partitions = stat.partitions;
    c->epochs = (size_t)stat.epochs;
    c->label = room(c->epochs * sizeof *c->label);
    for (size_t i = 0; i < c->epochs && deltafs_epoch_stat(d, i, &epoch) == DELTAFS_OK; i++)
        c->label[i] = epoch.label;
    must(deltafs_close(d), c->name);
    if (c->records > 0)
        qsort(c->record, c->records, sizeof *c->record, record_compare);
}

/* ---- Making them ---- */

struct recipe {
    const char *name;
    const char *partitions, *keys, *value_size, *codec;
    int is_closed;
    unsigned epochs, records; /* records of an epoch */
    uint64_t keys_below;
    unsigned reopened; /* closed and reopened before this epoch; 0: never */
    int is_local;      /* with layout=local */
};

static const struct recipe recipes[] = {
    {"one", "1", "u64", "8", "none", 1, 3, 40, 30, 0, 0},
    {"packed", "2", "u64", "16", "snappy", 1, 4, 150, 400, 0, 0},
    {"any", "3", "u64", "any", "snappy", 1, 3, 60, 50, 0, 0},
    {"any open", "2", "u64", "any", "none", 0, 4, 40, 40, 0, 0},
    {"open", "1", "u64", "8", "snappy", 0, 5, 40, 60, 0, 0},
    {"names", "2", "bytes", "any", "snappy", 1, 3, 50, 30, 0, 0},
    {"names open", "1", "bytes", "4", "none", 0, 3, 40, 30, 0, 0},
    {"nothing", "2", "u64", "0", "none", 1, 2, 60, 90, 0, 0},
    {"leaves", "1", "u64", "1", "snappy", 1, 2, 5000, 100000, 0, 0},
    {"reopened", "2", "u64", "8", "snappy", 1, 4, 50, 60, 2, 0},
    {"reopened open", "1", "bytes", "any", "none", 0, 4, 40, 30, 3, 0},
    {"local", "2", "u64", "8", "snappy", 1, 3, 60, 50, 0, 1},
    {"local any", "1", "u64", "any", "none", 1, 3, 50, 40, 2, 1},
    {"local open", "2", "u64", "16", "none", 0, 4, 60, 60, 3, 1},
    {"local names", "2", "bytes", "any", "snappy", 1, 3, 50, 30, 1, 1},
};

static deltafs_dir *recipe_begin(const struct recipe *r, int is_made)
{
    const char *const options[][2] = {
        {"partitions", r->partitions},
        {"keys", r->keys},
        {"value_size", r->value_size},
        {"codec", r->codec},
        {"block", "256"},
        {"memory", "8M"},
        {"threads", "0"},
        {"sync", "none"},
        {"layout", r->is_local ? "local" : "partitioned"},
    };
    deltafs_options *o;
    deltafs_dir *d;

    must(deltafs_options_create(&o), r->name);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        must(deltafs_options_set(o, options[i][0], options[i][1]), r->name);
    must(is_made ? deltafs_reopen(DAMAGE_PATH, o, &d) : deltafs_create(DAMAGE_PATH, o, &d), r->name);
    deltafs_options_destroy(o);
    return d;
}

/* Values that pack and values that do not; their sizes differ where they may. */
static void recipe_append(const struct recipe *r, deltafs_dir *d, struct damage_rng *rng)
{
    uint8_t value[64];
    char name[32];
    uint64_t key = damage_below(rng, r->keys_below);
    size_t size = strcmp(r->value_size, "any") == 0 ? (size_t)damage_below(rng, 40) : (size_t)atoi(r->value_size);
    int is_noise = damage_below(rng, 2) == 0, status;

    for (size_t i = 0; i < size; i++)
        value[i] = (uint8_t)(is_noise ? damage_next(rng) : key + i / 8);
    if (strcmp(r->keys, "bytes") == 0)
        status =
            deltafs_append_bytes(d, name, (size_t)snprintf(name, sizeof name, "particle %d", (int)key), value, size);
    else
        status = deltafs_append(d, key * 7, value, size);
    if (status != DELTAFS_OK)
        damage_die("%s: %s", r->name, deltafs_errmsg(d));
}

static void recipe_make(const struct recipe *r, struct damage_container *c)
{
    static struct mem_io m;
    struct damage_rng rng = {r->records};

    snprintf(c->name, sizeof c->name, "%s", r->name);
    mem_io_begin(&m);
    deltafs_dir *d = recipe_begin(r, 0);
    for (unsigned epoch = 0; epoch < r->epochs; epoch++) {
        if (r->reopened > 0 && epoch == r->reopened) {
            must(deltafs_close(d), r->name);
            state_take(&c->earlier[c->earlier_count++], &m);
            d = recipe_begin(r, 1);
        }
        for (unsigned i = 0; i < r->records; i++)
            recipe_append(r, d, &rng);
        if (deltafs_epoch_end(d, 10 * epoch + 10) != DELTAFS_OK)
            damage_die("%s: %s", r->name, deltafs_errmsg(d));
        state_take(&c->earlier[c->earlier_count++], &m);
    }
    if (!r->is_closed) {
        c->now = c->earlier[--c->earlier_count];
        c->earlier[c->earlier_count] = (struct damage_state){0};
    }
    must(deltafs_close(d), r->name);
    if (r->is_closed)
        state_take(&c->now, &m);
    container_refresh(c, &m);
    if (c->records != (size_t)r->epochs * r->records)
        damage_die("%s: %zu records, not %u", r->name, c->records, r->epochs * r->records);
    mem_io_end(&m);
}

/* ---- The golden ones ---- */

/* Of several segments and runs, without fences in the tail, with planes, truncated: what takes more than a recipe. */
static const char *const golden[] = {"ends",   "example", "names",    "names_fixed", "no_fences", "local",
                                     "planes", "runs",    "segments", "torn",        "wide"};

static int golden_file(struct damage_container *c, const char *corpus, const char *name)
{
    char path[1024];
    static uint8_t bytes[1 << 20];

    snprintf(path, sizeof path, "%s/%s/%s", corpus, c->name, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    size_t n = fread(bytes, 1, sizeof bytes, f);
    int is_whole = feof(f) && !ferror(f);
    fclose(f);
    if (!is_whole)
        damage_die("%s: cannot be read, or is too long", path);
    state_add(&c->now, name, bytes, n);
    return 1;
}

static void golden_load(struct damage_container *c, const char *corpus, const char *name)
{
    static struct mem_io m;
    char log[MEM_NAME_MAX];

    snprintf(c->name, sizeof c->name, "%s", name);
    if (!golden_file(c, corpus, MANIFEST_NAME))
        damage_die("%s/%s: no golden container", corpus, name);
    for (unsigned p = 0; p < LOG_NAMES_MAX; p++) {
        snprintf(log, sizeof log, LOG_NAME_DATA, p, p);
        golden_file(c, corpus, log);
        snprintf(log, sizeof log, LOG_NAME_INDEX, p, p);
        golden_file(c, corpus, log);
        snprintf(log, sizeof log, LOG_NAME_VALUES, p % 2, p); /* of one that has two partitions */
        golden_file(c, corpus, log);
    }
    mem_io_begin(&m);
    container_refresh(c, &m);
    mem_io_end(&m);
}

size_t damage_containers(struct damage_container **out, const char *corpus)
{
    const size_t made = sizeof recipes / sizeof recipes[0];
    size_t n = made + (corpus ? sizeof golden / sizeof golden[0] : 0);
    struct damage_container *c = room(n * sizeof *c);

    for (size_t i = 0; i < n; i++) {
        if (i < made)
            recipe_make(&recipes[i], &c[i]);
        else
            golden_load(&c[i], corpus, golden[i - made]);
    }
    *out = c;
    return n;
}

void damage_containers_free(struct damage_container *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < c[i].records; k++) {
            free(c[i].record[k].value);
            free(c[i].record[k].name);
        }
        for (size_t k = 0; k < c[i].earlier_count; k++)
            state_free(&c[i].earlier[k]);
        state_free(&c[i].now);
        free(c[i].record);
        free(c[i].label);
    }
    free(c);
}
