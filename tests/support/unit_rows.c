#include <fcntl.h>
#include <deltafs/deltafs_logical.h>
#include "base/coding.h"
#include "unit_rows.h"

void oracle_record(const struct oracle *o, uint64_t row, uint8_t record[RECORD])
{
    uint32_t word = o->seed + (uint32_t)row * 2654435761u;

    put_u32(record, word);
    put_u64(record + 4, o->key[row]);
    put_u32(record + 12, ~word);
    put_u64(record + 16, (uint64_t)word << 17);
}

static uint8_t *oracle_bytes(const struct oracle *o, size_t *n)
{
    *n = o->skip + o->rows * RECORD;
    uint8_t *bytes = malloc(*n + 1);

    memset(bytes, 0xee, o->skip);
    for (uint64_t i = 0; i < o->rows; i++)
        oracle_record(o, i, bytes + o->skip + i * RECORD);
    return bytes;
}

struct oracle oracle_make(struct rng *r, const char *path, uint64_t label, uint64_t rows, uint64_t skip)
{
    struct oracle o = {.label = label, .rows = rows, .skip = skip, .seed = (uint32_t)rng_next(r)};

    snprintf(o.path, sizeof o.path, "%s", path);
    o.key = malloc((size_t)(rows + 1) * sizeof *o.key);
    for (uint64_t i = 0; i < rows; i++)
        o.key[i] = rng_below(r, 4) == 0 ? rng_key(r, KEYS_FEW) : rng_below(r, 2 * rows + 1);
    return o;
}

void oracles_free(struct oracle *file, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(file[i].key);
}

void oracle_write(const struct oracle *o)
{
    size_t n;
    uint8_t *bytes = oracle_bytes(o, &n);

    unit_save(o->path, bytes, n);
    free(bytes);
}

void oracle_write_logical(const struct oracle *o)
{
    deltafs_logical *f;
    size_t n;
    uint8_t *bytes = oracle_bytes(o, &n);

    CHECK_IS(deltafs_logical_open(o->path, O_WRONLY | O_CREAT | O_TRUNC, NULL, &f), DELTAFS_OK);
    /* Cut in the middle of records, and the later half first. */
    size_t half = n / 2 + 5 < n ? n / 2 + 5 : n;
    CHECK_IS(deltafs_logical_write(f, half, bytes + half, n - half), DELTAFS_OK);
    CHECK_IS(deltafs_logical_write(f, 0, bytes, half), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    free(bytes);
}

int oracle_index(const struct oracle *o, deltafs_indexer *ix)
{
    struct deltafs_table *t;

    CHECK_IS(deltafs_table_from_schema(o->path, SCHEMA, "id", o->skip, o->skip + o->rows * RECORD, o->label, &t),
             DELTAFS_OK);
    int status = deltafs_indexer_add(ix, o->path, 1, (const struct deltafs_table *const *)&t);
    deltafs_table_destroy(t);
    return status;
}

/* *is_added: whether that succeeded, whatever the close said. */
int index_and_tell(const char *index, const struct oracle *o, int *is_added)
{
    deltafs_indexer *ix;
    int status = deltafs_indexer_open(index, o->path, NULL, &ix);

    if (status == DELTAFS_OK) {
        status = oracle_index(o, ix);
        *is_added = status == DELTAFS_OK;
        int closed = deltafs_indexer_close(ix);
        status = status == DELTAFS_OK ? closed : status;
    }
    return status;
}

int index_one(const char *index, const struct oracle *o)
{
    int is_added;

    return index_and_tell(index, o, &is_added);
}

void write_and_index(const char *index, const struct oracle *o)
{
    oracle_write(o);
    CHECK_IS(index_one(index, o), DELTAFS_OK);
}

/* The next row that has the key. */
static int answer_next(struct answer *a)
{
    for (; a->at < a->files; a->at++, a->row = 0)
        for (; a->row < a->file[a->at].rows; a->row++)
            if (a->file[a->at].key[a->row] == a->key)
                return 1;
    return 0;
}

int answer_check(const struct deltafs_row *row, void *arg)
{
    struct answer *a = arg;
    uint8_t record[RECORD], value[RECORD - 8];

    CHECK(answer_next(a));
    oracle_record(&a->file[a->at], a->row, record);
    memcpy(value, record, 4);
    memcpy(value + 4, record + 12, 12);
    CHECK(row->key == a->key && row->label == a->file[a->at].label && row->row == a->row);
    CHECK(row->size == sizeof value && memcmp(row->value, value, sizeof value) == 0);
    CHECK(strcmp(row->schema, "x:f4,n:u4,y:f8") == 0);
    a->row++;
    return 0;
}

void check_key(deltafs_fileindex *k, const struct oracle *file, size_t files, uint64_t key)
{
    struct answer a = {file, files, 0, 0, key};
    int has = answer_next(&a), status = deltafs_fileindex_get(k, key, NULL, answer_check, &a, NULL);

    if (status != (has ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND))
        fail_msg("key %llu: %s", (unsigned long long)key, deltafs_errmsg(NULL));
    CHECK(!answer_next(&a));
}

/* After an indexing that did not end verifying may say so. */
void check_some(const char *path, const struct oracle *file, size_t files, int has_ended)
{
    deltafs_fileindex *k;
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    uint64_t want = 0;

    CHECK_IS(deltafs_fileindex_open(path, NULL, &k), DELTAFS_OK);
    for (size_t i = 0; i < files; i++)
        for (uint64_t row = 0; row < file[i].rows; row += 1 + row / 16)
            check_key(k, file, files, file[i].key[row]);
    for (uint64_t key = 0; key < 40; key++)
        check_key(k, file, files, key);
    for (size_t i = 0; i < files; i++)
        want += file[i].rows;
    if (deltafs_fileindex_verify(k, NULL, NULL, &counts) != DELTAFS_OK &&
        (has_ended || !strstr(deltafs_errmsg(NULL), "its indexing did not end")))
        fail_msg("%s", deltafs_errmsg(NULL));
    CHECK_IS(counts.records, want);
    deltafs_fileindex_close(k);
}

void check_all(const char *path, const struct oracle *file, size_t files)
{
    check_some(path, file, files, 1);
}
