#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "directory/format/partition.h"
#include "unit_help.h"

extern char **environ;

uint64_t unit_seed;
char unit_folder[256];

/* ---- Random numbers: splitmix64 ---- */

struct rng rng_init(uint64_t seed)
{
    const char *given = getenv("UNIT_SEED");

    unit_seed = given ? strtoull(given, NULL, 0) : seed;
    return (struct rng){unit_seed};
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    return (uint64_t)((unsigned __int128)rng_next(r) * n >> 64);
}

void rng_fill(struct rng *r, void *bytes, size_t n)
{
    uint8_t *p = bytes;

    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v = rng_next(r);
        memcpy(p, &v, 8);
    }
    for (uint64_t v = rng_next(r); n > 0; n--, v >>= 8)
        *p++ = (uint8_t)v;
}

uint64_t rng_key(struct rng *r, enum key_kind kind)
{
    switch (kind) {
    case KEYS_DENSE:
        return rng_below(r, 20000);
    case KEYS_CLUSTERED:
        return rng_below(r, 64) << 46 | rng_below(r, 500);
    case KEYS_FEW:
        return rng_below(r, 5) * 1000003;
    case KEYS_ENDS:
        return rng_below(r, 2) ? UINT64_MAX - rng_below(r, 3) : rng_below(r, 3);
    default:
        return rng_next(r);
    }
}

/* ---- Files ---- */

static pid_t unit_owner;

int unit_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    for (char **v = environ; *v;) {
        char name[64];
        int is_ours = strncmp(*v, "DELTAFS_", 8) == 0 && sscanf(*v, "%63[^=]", name) == 1;
        if (is_ours)
            unsetenv(name);
        v = is_ours ? environ : v + 1;
    }
    snprintf(unit_folder, sizeof unit_folder, "%s/deltafs-unit.XXXXXX", tmp ? tmp : "/tmp");
    unit_owner = getpid();
    return mkdtemp(unit_folder) ? 0 : -1;
}

/* Each path once. */
static char *paths[256];

const char *unit_path(const char *fmt, ...)
{
    char name[128], path[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    snprintf(path, sizeof path, "%s/%s", unit_folder, name);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (!paths[i])
            paths[i] = strdup(path);
        if (paths[i] && strcmp(paths[i], path) == 0)
            return paths[i];
    }
    fail_msg("too many paths");
    return NULL;
}

int unit_teardown(void **state)
{
    (void)state;
    if (getpid() == unit_owner) /* and not a child in which a test has failed */
        unit_remove(unit_folder);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        free(paths[i]);
    return 0;
}

uint8_t *unit_load(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    struct stat st;

    if (!f || fstat(fileno(f), &st) != 0)
        fail_msg("%s: %s", path, strerror(errno));
    *n = (size_t)st.st_size;
    uint8_t *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_true(fread(bytes, 1, *n, f) == *n);
    fclose(f);
    return bytes;
}

void unit_save(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    assert_true(fwrite(bytes, 1, n, f) == n);
    assert_true(fclose(f) == 0);
}

void unit_poke(const char *path, size_t offset, uint8_t byte)
{
    int fd = open(path, O_WRONLY);

    assert_true(fd >= 0);
    assert_true(pwrite(fd, &byte, 1, (off_t)offset) == 1);
    close(fd);
}

int unit_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

int unit_failed(int status, const char *call)
{
    if (status != DELTAFS_OK)
        fprintf(stderr, "%s: %s\n", call, deltafs_errmsg(NULL));
    return status != DELTAFS_OK;
}

void unit_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct {
    size_t skip; /* bytes of the folder's name */
    const char *to;
} copying;

static int copy_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    char to[1024];
    size_t n;

    (void)st;
    (void)ftw;
    snprintf(to, sizeof to, "%s%s", copying.to, path + copying.skip);
    if (flag == FTW_D)
        return mkdir(to, 0777);
    uint8_t *bytes = unit_load(path, &n);
    unit_save(to, bytes, n);
    free(bytes);
    return 0;
}

void unit_copy(const char *from, const char *to)
{
    copying.skip = strlen(from);
    copying.to = to;
    assert_int_equal(nftw(from, copy_one, 16, FTW_PHYS), 0);
}

deltafs_options *unit_options(const char *name, ...)
{
    deltafs_options *o;
    va_list ap;

    CHECK_IS(deltafs_options_create(&o), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "sync", "none"), DELTAFS_OK);
    va_start(ap, name);
    for (; name; name = va_arg(ap, const char *))
        CHECK_IS(deltafs_options_set(o, name, va_arg(ap, const char *)), DELTAFS_OK);
    va_end(ap);
    return o;
}

deltafs_dir *unit_create(const char *path, deltafs_options *options)
{
    deltafs_dir *d = NULL;

    CHECK_IS(deltafs_create(path, options, &d), DELTAFS_OK);
    deltafs_options_destroy(options);
    return d;
}

deltafs_dir *unit_open(const char *path)
{
    deltafs_dir *d = NULL;

    CHECK_IS(deltafs_open(path, NULL, &d), DELTAFS_OK);
    return d;
}

/* ---- The model ---- */

void model_fini(struct model *m)
{
    free(m->record);
    *m = (struct model){0};
}

void model_value(uint64_t serial, uint8_t *bytes, size_t size)
{
    struct rng r = {serial};

    if (serial & 1)
        rng_fill(&r, bytes, size);
    else
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(i < 8 ? serial >> 8 * i : serial);
}

/* Note a record; returns its value. */
static const uint8_t *model_note(struct model *m, const struct model_record *record)
{
    static uint8_t value[1 << 20];

    if (m->count == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 1024;
        m->record = realloc(m->record, m->capacity * sizeof *m->record);
        assert_non_null(m->record);
    }
    struct model_record *r = &m->record[m->count++];
    *r = *record;
    r->serial = m->count;
    model_value(r->serial, value, r->size);
    return r->size > 0 ? value : NULL;
}

int model_append(struct model *m, deltafs_dir *d, uint64_t key, uint32_t size)
{
    const uint8_t *value = model_note(m, &(struct model_record){.key = key, .size = size});

    return d ? deltafs_append(d, key, value, size) : DELTAFS_OK;
}

int model_append_bytes(struct model *m, deltafs_dir *d, const void *name, size_t name_size, uint32_t size)
{
    struct model_record r = {
        .key = hash_bytes(name, name_size), .size = size, .name_size = (uint32_t)name_size, .name = name};
    const uint8_t *value = model_note(m, &r);

    m->is_bytes = 1;
    return d ? deltafs_append_bytes(d, name, name_size, value, size) : DELTAFS_OK;
}

static int model_compare(const void *a, const void *b)
{
    const struct model_record *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

void model_keep(struct model *m, uint64_t label)
{
    for (size_t i = m->committed; i < m->count; i++)
        m->record[i].label = label;
    m->committed = m->count;
    m->epochs++;
    m->is_sorted = 0;
}

void model_discard(struct model *m)
{
    m->count = m->committed;
}

int model_is_value(const struct model_record *want, const struct deltafs_record *got)
{
    static uint8_t value[1 << 20];

    model_value(want->serial, value, want->size);
    return got->size == want->size && memcmp(got->value, value, want->size) == 0;
}

static int model_is_name(const struct model_record *want, const struct deltafs_record *got)
{
    if (want->name_size == 0)
        return !got->key_bytes && got->key_size == 0;
    return got->key_size == want->name_size && memcmp(got->key_bytes, want->name, want->name_size) == 0;
}

/* The first committed record that is not before (key, label). */
static size_t model_lower(const struct model *m, uint64_t key, uint64_t label)
{
    size_t low = 0, high = m->committed;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct model_record *r = &m->record[middle];
        if (r->key < key || (r->key == key && r->label < label))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t model_find(struct model *m, uint64_t key, uint64_t first, uint64_t last, const struct model_record **out)
{
    size_t n = 0;

    if (!m->is_sorted && m->committed > 0)
        qsort(m->record, m->committed, sizeof *m->record, model_compare);
    m->is_sorted = 1;
    size_t at = model_lower(m, key, first);
    *out = m->record + at;
    while (at + n < m->committed && m->record[at + n].key == key && m->record[at + n].label <= last)
        n++;
    return n;
}

static void model_check_records(struct model *m, uint64_t key, const struct deltafs_range *range,
                                const deltafs_records *got)
{
    const struct model_record *want;
    size_t n = model_find(m, key, range ? range->first : 0, range ? range->last : UINT64_MAX, &want);

    CHECK((got != NULL) == (n > 0));
    CHECK_IS(got ? got->count : 0, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(got->record[i].key == key);
        CHECK(got->record[i].label == want[i].label);
        CHECK(model_is_name(&want[i], &got->record[i]));
        CHECK(model_is_value(&want[i], &got->record[i]));
    }
}

void model_check_name(struct model *m, deltafs_dir *d, const void *name, size_t name_size,
                      const struct deltafs_range *range)
{
    deltafs_records *got = NULL;
    int status = deltafs_get_bytes(d, name, name_size, range, &got);

    CHECK_CALL(d, status, got ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
    model_check_records(m, hash_bytes(name, name_size), range, got);
    deltafs_records_destroy(got);
}

void model_check_key(struct model *m, deltafs_dir *d, uint64_t key, const struct deltafs_range *range)
{
    deltafs_records *got = NULL;
    int status = deltafs_get(d, key, range, &got);

    CHECK_CALL(d, status, got ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
    model_check_records(m, key, range, got);
    deltafs_records_destroy(got);
}

/* Ask for the keys of some of the model's records. */
static int model_get(const struct model *m, deltafs_dir *d, size_t n, const size_t *which, deltafs_records **out)
{
    uint64_t *keys = malloc((n + 1) * sizeof *keys);
    const void **names = malloc((n + 1) * sizeof *names);
    size_t *sizes = malloc((n + 1) * sizeof *sizes);

    CHECK(keys && names && sizes);
    for (size_t i = 0; i < n; i++) {
        keys[i] = m->record[which[i]].key;
        names[i] = m->record[which[i]].name;
        sizes[i] = m->record[which[i]].name_size;
    }
    int status =
        m->is_bytes ? deltafs_get_many_bytes(d, n, names, sizes, NULL, out) : deltafs_get_many(d, n, keys, NULL, out);
    free(keys);
    free(names);
    free(sizes);
    return status;
}

void model_check_all(struct model *m, deltafs_dir *d, struct rng *r)
{
    enum { BATCH = 20000 };
    const struct model_record *ignored;
    size_t *which = malloc((m->committed + 1) * sizeof *which);
    static deltafs_records *got[BATCH];
    size_t n = 0;

    CHECK(which != NULL);
    model_find(m, 0, 0, 0, &ignored);
    for (size_t i = 0; i < m->committed; i++)
        if (i == 0 || m->record[i].key != m->record[i - 1].key)
            which[n++] = i;
    for (size_t i = n; i > 1; i--) {
        size_t other = (size_t)rng_below(r, i), swapped = which[i - 1];
        which[i - 1] = which[other];
        which[other] = swapped;
    }
    for (size_t at = 0; at < n; at += BATCH) {
        size_t batch = n - at < BATCH ? n - at : BATCH;
        CHECK_CALL(d, model_get(m, d, batch, which + at, got), DELTAFS_OK);
        for (size_t i = 0; i < batch; i++) {
            model_check_records(m, m->record[which[at + i]].key, NULL, got[i]);
            deltafs_records_destroy(got[i]);
        }
    }
    free(which);
}

struct scanned {
    struct model *model;
    const struct deltafs_range *range;
    uint32_t partitions;
    int is_by_hash; /* else the partition of a key is not known here */
    uint32_t partition;
    uint64_t label;
    size_t count;
    uint32_t *seen; /* at the first record of each (key, epoch) */
};

static int model_scan_record(const struct deltafs_record *record, void *arg)
{
    struct scanned *s = arg;
    struct model *m = s->model;
    uint32_t partition = partition_by_hash(record->key, s->partitions);
    size_t first = model_lower(m, record->key, record->label), at = first + s->seen[first]++;

    CHECK(at < m->committed && m->record[at].key == record->key && m->record[at].label == record->label);
    CHECK(model_is_name(&m->record[at], record));
    CHECK(model_is_value(&m->record[at], record));
    CHECK(!s->is_by_hash || partition > s->partition || (partition == s->partition && record->label >= s->label));
    CHECK(!s->range || (record->label >= s->range->first && record->label <= s->range->last));
    s->partition = partition;
    s->label = record->label;
    s->count++;
    return 0;
}

void model_check_scan(struct model *m, deltafs_dir *d, const struct deltafs_range *range)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct scanned s = {.model = m, .range = range, .seen = calloc(m->committed + 1, sizeof *s.seen)};
    const struct model_record *ignored;
    size_t want = 0;

    CHECK(s.seen != NULL);
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    s.partitions = stat.partitions;
    s.is_by_hash = strcmp(stat.partitioner, "hash") == 0;
    model_find(m, 0, 0, 0, &ignored);
    for (size_t i = 0; i < m->committed; i++)
        want += !range || (m->record[i].label >= range->first && m->record[i].label <= range->last);
    CHECK_CALL(d, deltafs_scan(d, range, model_scan_record, &s, NULL), DELTAFS_OK);
    CHECK_IS(s.count, want);
    free(s.seen);
}

/* The records of one key, of which epochs may be missing as a whole. */
static void model_check_partial(struct model *m, uint64_t key, const deltafs_records *got)
{
    const struct model_record *want;
    size_t n = model_find(m, key, 0, UINT64_MAX, &want);

    for (size_t i = 0, at = 0; got && i < got->count; i++, at++) {
        while (at < n && want[at].label < got->record[i].label)
            at++;
        int begins = i == 0 || got->record[i].label != got->record[i - 1].label;
        int ends = i + 1 == got->count || got->record[i].label != got->record[i + 1].label;
        CHECK(at < n && want[at].label == got->record[i].label && got->record[i].key == key);
        CHECK(model_is_name(&want[at], &got->record[i]));
        CHECK(!begins || at == 0 || want[at - 1].label != want[at].label);
        CHECK(!ends || at + 1 == n || want[at + 1].label != want[at].label);
        CHECK(model_is_value(&want[at], &got->record[i]));
    }
}

static void check_failure(deltafs_dir *d, int status)
{
    if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_IO && status != DELTAFS_ERR_NO_SPACE)
        fail_msg("seed %llu: status %d: %s", (unsigned long long)unit_seed, status, deltafs_errmsg(d));
    if (status == DELTAFS_ERR_DAMAGED)
        CHECK(strstr(deltafs_errmsg(d), unit_folder) && strstr(deltafs_errmsg(d), "at offset "));
}

static int honest_record(const struct deltafs_record *record, void *arg)
{
    struct scanned *s = arg;
    struct model *m = s->model;
    size_t first = model_lower(m, record->key, record->label), at = first + s->seen[first];

    /* Records of a damaged block are left out; the others come in their order. */
    while (at < m->committed && m->record[at].key == record->key && m->record[at].label == record->label &&
           !model_is_value(&m->record[at], record))
        at++;
    CHECK(at < m->committed && m->record[at].key == record->key && m->record[at].label == record->label);
    CHECK(model_is_name(&m->record[at], record));
    s->seen[first] = (uint32_t)(at + 1 - first);
    s->count++;
    return 0;
}

unsigned model_check_honest(struct model *m, deltafs_dir *d)
{
    struct scanned s = {.model = m, .seen = calloc(m->committed + 1, sizeof *s.seen)};
    const struct model_record *ignored;
    deltafs_records *got;
    unsigned failed = 0;

    CHECK(s.seen != NULL);
    model_find(m, 0, 0, 0, &ignored);
    for (size_t i = 0; i < m->committed; i++) {
        uint64_t key = m->record[i].key;
        if (i > 0 && key == m->record[i - 1].key)
            continue;
        got = NULL;
        int status = model_get(m, d, 1, &i, &got);
        if (status == DELTAFS_OK) {
            model_check_records(m, key, NULL, got);
        } else {
            check_failure(d, status);
            model_check_partial(m, key, got);
            failed++;
        }
        deltafs_records_destroy(got);
    }
    int status = deltafs_scan(d, NULL, honest_record, &s, NULL);
    if (status == DELTAFS_OK) {
        CHECK_IS(s.count, m->committed);
    } else {
        check_failure(d, status);
        failed++;
    }
    free(s.seen);
    return failed;
}

void model_check_facts(struct model *m, deltafs_dir *d)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct deltafs_verify_counts verified = {.struct_size = sizeof verified};
    uint64_t raw = 0, records = 0, last = 0;

    for (size_t i = 0; i < m->committed; i++)
        raw += (m->is_bytes ? m->record[i].name_size : 8) + m->record[i].size;
    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    CHECK_IS(stat.version, 1);
    CHECK_IS(stat.epochs, m->epochs);
    CHECK_IS(stat.records, m->committed);
    CHECK_IS(stat.bytes_raw, raw);
    for (uint64_t i = 0; i < stat.epochs; i++) {
        CHECK_CALL(d, deltafs_epoch_stat(d, i, &epoch), DELTAFS_OK);
        CHECK(i == 0 || epoch.label > last);
        last = epoch.label;
        records += epoch.records;
        raw -= epoch.bytes_raw;
    }
    CHECK(records == m->committed && raw == 0);
    CHECK_CALL(d, deltafs_epoch_stat(d, stat.epochs, &epoch), DELTAFS_ERR_INVALID);
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &verified), DELTAFS_OK);
    CHECK(verified.records == m->committed && verified.damages == 0);
}

static uint32_t random_size(struct rng *r, int64_t value_size)
{
    if (value_size >= 0)
        return (uint32_t)value_size;
    return (uint32_t)(rng_below(r, 20) == 0 ? rng_below(r, 20000) : rng_below(r, 80));
}

void model_append_some(struct model *m, deltafs_dir *d, struct rng *r, enum key_kind kind, uint32_t n,
                       int64_t value_size)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK_CALL(d, model_append(m, d, rng_key(r, kind), random_size(r, value_size)), DELTAFS_OK);
}

void model_end_epoch(struct model *m, deltafs_dir *d, uint64_t label)
{
    CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    model_keep(m, label);
}

void model_check_directory(struct model *m, const char *path, struct rng *r)
{
    deltafs_dir *d = unit_open(path);

    model_check_all(m, d, r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    for (int i = 0; i < 50; i++)
        model_check_key(m, d, rng_key(r, (enum key_kind)(i % KEYS_KINDS)), NULL);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

void unit_cut_manifest(const char *folder, size_t n)
{
    char file[300], copy[310];
    size_t size;

    snprintf(file, sizeof file, "%s/MANIFEST", folder);
    snprintf(copy, sizeof copy, "%s.copy", file);
    uint8_t *bytes = unit_load(file, &size);
    CHECK(n <= size);
    unit_save(file, bytes, n);
    while (n > 0 && bytes[n - 1] != '\n')
        n--;
    if (unit_exists(copy))
        unit_save(copy, bytes, n);
    free(bytes);
}
