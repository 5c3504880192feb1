/* Select by a value index: the keys of the records that may pass are looked up in it, and then only these records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/dir.h"
#include "query/bounds.h"
#include "query/select.h"
#include "query/value_index.h"

#define SHARE     16                  /* more than this part of an epoch is found faster by a scan, */
#define FEW       1024                /* but this many never are */
#define TOP_STEP  (UINT64_C(1) << 16) /* of codes: where the largest values are looked for at first */
#define TOP_GROWS 8

/* An index that is open. */
struct value_index {
    const char *name;
    deltafs_dir *dir;
    struct reader *reader;
};

/* Keys of records that were found. */
struct candidates {
    struct buffer keys;
    size_t count, most;
    uint64_t left; /* keys that memory has room for, of all epochs */
};

/* ---- The index ---- */

/* Returns whether there is such an index of the directory. */
static int index_open(const struct reader *r, const char *name, struct value_index *out)
{
    const struct deltafs_attribute *a;
    char path[PATH_ROOM];

    *out = (struct value_index){.name = name};
    io_path_in(path, r->path, "%s/%s", VALUE_INDEX_FOLDER, name);
    if (deltafs_open(path, NULL, &out->dir) != DELTAFS_OK)
        return 0;
    if (dir_reader(out->dir, "deltafs_select_open", NULL, &out->reader, &(struct error *){NULL}) == DELTAFS_OK) {
        a = attributes_find(&out->reader->manifest.attributes, VALUE_INDEX_MADE, UINT64_MAX);
        if (a && a->type == DELTAFS_ATTRIBUTE_TEXT && strcmp(a->value, r->manifest.uuid_text) == 0)
            return 1;
    }
    deltafs_close(out->dir);
    return 0;
}

/* Whether the index has all records of the epoch; *print gets what was computed of them. */
static int index_has(const struct value_index *x, const struct manifest_epoch *epoch, uint32_t *number, uint64_t *print)
{
    const struct manifest *m = &x->reader->manifest;
    const struct deltafs_attribute *a = attributes_find(&m->attributes, VALUE_INDEX_PRINT, epoch->label);
    const struct deltafs_range range = {epoch->label, epoch->label};
    uint32_t end;

    reader_epochs(x->reader, &range, number, &end);
    if (end - *number != 1 || m->epoch[*number].records != epoch->records || !a || a->from != epoch->label ||
        a->type != DELTAFS_ATTRIBUTE_U8)
        return 0;
    *print = *(const uint64_t *)a->value;
    return 1;
}

/* ---- Candidates ---- */

/* A deltafs_record_fn. */
static int candidates_add(const struct deltafs_record *record, void *candidates)
{
    struct candidates *c = candidates;

    if (c->count == c->most || record->size < sizeof(uint64_t) ||
        buffer_reserve(&c->keys, (c->count + 1) * sizeof(uint64_t), "keys", error_ignored()) != DELTAFS_OK)
        return 1;
    ((uint64_t *)(void *)c->keys.bytes)[c->count++] = get_u64(record->value);
    return 0;
}

/* Returns whether all records with these codes were found, and are not too many. */
static int candidates_find(struct candidates *c, const struct value_index *x, uint64_t label, uint64_t low,
                           uint64_t high)
{
    const struct deltafs_range range = {label, label};
    int stopped = 0;

    c->count = 0;
    return deltafs_scan_range(x->dir, low, high, &range, candidates_add, c, &stopped) == DELTAFS_OK && !stopped;
}

/* The largest code of an epoch; 0 if there is none. */
static uint64_t index_largest(const struct value_index *x, uint32_t epoch)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < x->reader->manifest.partitions; i++) {
        struct part_reader *part;
        struct segment *segment;
        uint32_t count;
        if (reader_part(x->reader, i, &part, error_ignored()) != DELTAFS_OK ||
            reader_epoch(x->reader, part, epoch, &segment, &count, error_ignored()) != DELTAFS_OK)
            return 0;
        for (uint32_t k = 0; k < count; k++)
            largest = segment[k].footer.last_key > largest ? segment[k].footer.last_key : largest;
    }
    return largest;
}

/* The records with the `top` largest values, and some more: from the largest down to where there are enough. */
static int candidates_top(struct candidates *c, const struct value_index *x, uint32_t epoch, uint64_t label,
                          uint64_t top)
{
    uint64_t largest = index_largest(x, epoch), nan = value_index_code(NAN);

    largest = largest == nan ? value_index_code(INFINITY) : largest;
    for (uint64_t step = TOP_STEP; step < largest; step = step < largest / TOP_GROWS ? step * TOP_GROWS : largest)
        if (!candidates_find(c, x, label, largest - step, largest))
            return 0;
        else if (c->count >= top)
            return 1;
    return 0;
}

/* ---- The epochs of a select ---- */

/* What the select asks of the value that was indexed: the codes that may pass. Returns 0 if that is anything. */
static int index_range(const struct deltafs_select *s, uint64_t label, uint64_t print, uint64_t *low, uint64_t *high,
                       struct error *e)
{
    struct columns columns = {
        .manifest = &s->reader->manifest, .schema = s->plan.schema, .label = label, .last = UINT64_MAX};
    const struct expr_scope scope = columns_scope(&columns);
    struct bounds b = {0};

    if (!s->plan.where || bounds_find(s->plan.where, &scope, print, &b, e) != DELTAFS_OK || !b.is_found)
        return 0;
    *low = b.low > b.high ? 1 : value_index_code(b.low);
    *high = b.low > b.high ? 0 : value_index_code(b.high);
    return 1;
}

static int index_is_top(const struct deltafs_select *s, uint64_t label, uint64_t print)
{
    uint64_t by;

    return s->plan.by && !s->plan.where && s->except.count == 0 &&
           value_index_fingerprint(&s->reader->manifest, s->plan.schema, s->plan.by, label, &by, error_ignored()) ==
               DELTAFS_OK &&
           by == print;
}

/* Let only the records of an epoch be read that the index finds. Returns whether it could be used. */
static int index_use(struct deltafs_select *s, const struct value_index *x, uint32_t epoch, struct candidates *c)
{
    const struct manifest *m = &s->reader->manifest;
    const struct manifest_epoch *of = &m->epoch[epoch];
    uint64_t print, low, high;
    struct error e;
    uint32_t number;
    int found = 0;

    if (!index_has(x, of, &number, &print))
        return 0;
    c->most = of->records / SHARE > FEW ? of->records / SHARE : FEW;
    c->most = c->most < c->left ? c->most : c->left;
    if (index_range(s, of->label, print, &low, &high, &e))
        found = candidates_find(c, x, of->label, low, high);
    else if (index_is_top(s, of->label, print))
        found = candidates_top(c, x, number, of->label, s->top.most);
    const struct deltafs_key_list list = {.count = c->count, .number = (const uint64_t *)(const void *)c->keys.bytes};
    c->left -= found ? c->count : 0;
    return found && key_set_take(&s->found[epoch - s->begin], &list, m, "keys", &e) == DELTAFS_OK;
}

static int index_try(struct deltafs_select *s, const char *name, struct candidates *c)
{
    struct value_index x;
    int is_used = 0;

    if (!index_open(s->reader, name, &x))
        return 0;
    for (uint32_t i = s->begin; i < s->end; i++)
        is_used |= index_use(s, &x, i, c);
    deltafs_close(x.dir);
    return is_used;
}

void select_use_index(struct deltafs_select *s)
{
    struct bytes names = {{0}, 0};
    struct candidates c = {.left = s->limit / (2 * sizeof(struct set_key))};
    char folder[PATH_ROOM];

    if (s->only.is_given || !(s->plan.where || s->plan.by) || s->reader->manifest.keys == KEYS_BYTES ||
        s->begin == s->end)
        return;
    io_path_in(folder, s->reader->path, "%s", VALUE_INDEX_FOLDER);
    if (io_names(&s->reader->io, folder, &names, error_ignored()) != DELTAFS_OK)
        names.used = 0;
    if (names.used > 0)
        s->found = calloc(s->end - s->begin, sizeof *s->found);
    for (size_t at = 0; s->found && at < names.used && !s->index;) {
        const char *name = (const char *)names.buffer.bytes + at;
        if (index_try(s, name, &c))
            s->index = strdup(name);
        at += strlen(name) + 1;
    }
    buffer_fini(&names.buffer);
    buffer_fini(&c.keys);
}
