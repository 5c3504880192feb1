/* Select by a value index: the keys of the records that may pass are looked up in it, and then only these records. A
 * record is taken from the index alone if the columns that it carries are enough: for the rows, and for the condition,
 * or if the code tells that it passes.
 *
 * It is asked about one epoch of a directory after the other; of files, about one table after the other, and it has
 * numbers of rows instead of keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/number.h"
#include "base/short_copy.h"
#include "directory/dir.h"
#include "directory/format/directory_format.h"
#include "query/bounds.h"
#include "query/select.h"
#include "query/value_index.h"

#define SHARE      16   /* more than this part of an epoch is found faster by a scan, */
#define FEW        1024 /* but this many never are */
#define TOP_GROWS  2    /* the largest values are looked for in so many times more leaves, */
#define TOP_HALVES 24   /* and then in at most so many halves of one step */
#define DOUBT      1    /* codes: another processor may compute the last bit of a value otherwise */

/* An index that is open. */
struct value_index {
    const char *name;
    deltafs_dir *dir;
    struct reader *reader;
    struct expr *value; /* of an index of files: what was computed */
};

/* Where leaves of an epoch begin. */
struct heads {
    uint64_t *code;
    size_t count, capacity;
    uint64_t largest; /* code of all records in these leaves, and in those of NaN alone */
};

/* What an index is asked about. */
struct subject {
    uint32_t number;  /* of the epoch, or table */
    uint64_t label;   /* of its records */
    uint64_t indexed; /* of the epoch that an index has of it */
    uint64_t records;
    int is_lost; /* it cannot be told what an index has */
};

/* Records that were found. */
struct candidates {
    const struct manifest *manifest; /* of the directory; NULL: rows of files */
    const struct carried *carried;
    size_t key_size; /* bytes of the key of a row, in front of what is carried */
    struct set_key *key;
    size_t count, capacity, most;
    struct buffer records; /* as in struct found */
    uint64_t left;         /* bytes of memory that there are for them, of all epochs */
    /* Of an epoch: */
    int has_rows;                   /* records come from the index, */
    size_t size;                    /* so many bytes of each, */
    int is_tested;                  /* also if they are to be tested; otherwise only those that pass for sure, */
    uint64_t sure_first, sure_last; /* which have these codes */
};

/* ---- The index ---- */

static void index_close(struct value_index *x)
{
    expr_destroy(x->value);
    deltafs_close(x->dir);
}

/* Whether it is an index of the directory, or index of files, that `r` reads. */
static int index_is_of(const struct reader *r, int has_files, struct value_index *x)
{
    const struct attributes *all = &x->reader->manifest.attributes;
    const struct deltafs_attribute *a = attributes_find(all, VALUE_INDEX_MADE, UINT64_MAX);

    if (!a || a->type != DELTAFS_ATTRIBUTE_TEXT || strcmp(a->value, r->manifest.uuid_text) != 0)
        return 0;
    a = attributes_find(all, VALUE_INDEX_VALUE, UINT64_MAX);
    return !has_files ||
           (a && a->type == DELTAFS_ATTRIBUTE_TEXT && expr_parse(a->value, &x->value, error_ignored()) == DELTAFS_OK);
}

/* Returns whether there is such an index. */
static int index_open(const struct reader *r, int has_files, const char *name, struct value_index *out)
{
    char path[PATH_ROOM];

    *out = (struct value_index){.name = name};
    io_path_in(path, r->path, "%s/%s", VALUE_INDEX_FOLDER, name);
    if (dir_is_being_removed(path) || deltafs_open(path, NULL, &out->dir) != DELTAFS_OK)
        return 0;
    if (dir_reader(out->dir, "deltafs_select_open", NULL, &out->reader, &(struct error *){NULL}) == DELTAFS_OK &&
        index_is_of(r, has_files, out))
        return 1;
    index_close(out);
    return 0;
}

/* Number `i` of the epochs or tables that are selected from. */
static struct subject select_subject(const struct deltafs_select *s, size_t i)
{
    struct subject of = {.number = (uint32_t)i};

    if (s->files) {
        of.is_lost = !select_files_subject(s->files, s->begin, i, &of.label, &of.indexed, &of.records);
    } else {
        const struct manifest_epoch *epoch = &s->manifest->epoch[s->begin + i];
        of.label = of.indexed = epoch->label;
        of.records = epoch->records;
    }
    return of;
}

/* Whether the index has all records; *number is that of its epoch, *print gets what was computed of them. */
static int index_has(const struct deltafs_select *s, const struct value_index *x, const struct subject *of,
                     uint32_t *number, uint64_t *print)
{
    const struct manifest *m = &x->reader->manifest;
    const struct deltafs_attribute *a = attributes_find(&m->attributes, VALUE_INDEX_PRINT, of->indexed);
    const struct deltafs_range range = {of->indexed, of->indexed};
    uint32_t end;
    uint64_t own;

    reader_epochs(x->reader, &range, number, &end);
    if (of->is_lost || end - *number != 1 || m->epoch[*number].records != of->records || !a || a->from != of->indexed ||
        a->type != DELTAFS_ATTRIBUTE_U8)
        return 0;
    *print = *(const uint64_t *)a->value;
    if (!s->files)
        return 1;
    /* What was computed is said by columns of the table, whose numbers are others than in the select. */
    return select_files_print(s->files, s->begin, of->number, x->value, &own) && own == *print &&
           value_index_fingerprint(s->manifest, s->plan.schema, x->value, of->label, print, error_ignored()) ==
               DELTAFS_OK;
}

/* ---- Candidates ---- */

static void candidates_fini(struct candidates *c)
{
    free(c->key);
    buffer_fini(&c->records);
}

static int candidates_reserve(struct candidates *c)
{
    int status = memory_extend(NULL, &c->key, c->count, &c->capacity, sizeof *c->key, "keys", error_ignored());

    return status == DELTAFS_OK ? buffer_reserve(&c->records, (c->count + 1) * c->size + 1, "records", error_ignored())
                                : status;
}

/* A deltafs_record_fn. */
static int candidates_add(const struct deltafs_record *record, void *candidates)
{
    struct candidates *c = candidates;
    const uint8_t *value = record->value;

    if (c->count == c->most || record->size != sizeof(uint64_t) + c->key_size + c->carried->size ||
        candidates_reserve(c) != DELTAFS_OK)
        return 1;
    struct set_key *key = &c->key[c->count];
    *key = c->manifest ? key_set_number(c->manifest, get_u64(value)) : (struct set_key){.number = get_u64(value)};
    int is_sure = record->key >= c->sure_first && record->key <= c->sure_last;
    key->is_sure = (uint8_t)is_sure;
    key->code = (uint32_t)record->key;
    if (c->has_rows && (c->is_tested || is_sure)) {
        copy_short(c->records.bytes + c->count * c->size, value + sizeof(uint64_t), c->size);
        key->record = (uint32_t)c->count + 1;
    }
    c->count++;
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

/* Add where the leaves of a segment begin that may have numbers. */
static int heads_add(struct heads *h, const struct segment *s)
{
    const uint64_t nan = value_index_code(NAN);
    int status = DELTAFS_OK;

    h->largest = s->footer.last_key > h->largest ? s->footer.last_key : h->largest;
    for (uint32_t i = 0; i < s->footer.leaves && status == DELTAFS_OK; i++) {
        uint64_t code = fence_leaf(&s->fence, i).first_key;
        if (code >= nan)
            break;
        status = memory_extend(NULL, &h->code, h->count, &h->capacity, sizeof *h->code, "leaves", error_ignored());
        if (status == DELTAFS_OK)
            h->code[h->count++] = code;
    }
    return status;
}

/* Find so many of an epoch's leaves, or more, or all that there are. */
static int heads_find(struct heads *h, const struct value_index *x, uint32_t epoch, size_t count)
{
    const struct partitioner by = manifest_partitioner(&x->reader->manifest, epoch, NULL);
    int status = DELTAFS_OK;

    /* With ranges, the last partitions have the largest codes. */
    for (uint32_t i = by.partitions; i-- > 0 && status == DELTAFS_OK && !(by.pivots && h->count >= count);) {
        struct part_reader *part;
        struct segment *segment;
        uint32_t segments = 0;
        status = reader_part(x->reader, i, &part, error_ignored());
        if (status == DELTAFS_OK)
            status = reader_epoch(x->reader, part, epoch, &segment, &segments, error_ignored());
        for (uint32_t k = 0; k < segments && status == DELTAFS_OK; k++)
            status = heads_add(h, &segment[k]);
    }
    if (h->count > 0)
        qsort(h->code, h->count, sizeof *h->code, compare_u64);
    return status;
}

/* Leave out all but the `top` records with the largest codes, and those that may be as large. Those of a scan of a
 * range are in the order of codes. */
static void candidates_cut(struct candidates *c, uint64_t top)
{
    size_t from = c->count - (size_t)top;
    uint32_t least = c->key[from].code;

    while (from > 0 && c->key[from - 1].code + DOUBT >= least)
        from--;
    c->count -= from;
    memmove(c->key, c->key + from, c->count * sizeof *c->key);
    memmove(c->records.bytes, c->records.bytes + from * c->size, c->count * c->size);
    for (size_t i = 0; i < c->count && c->has_rows; i++)
        c->key[i].record -= (uint32_t)from;
}

/* Give them to an epoch, in no more memory than they take. */
static void candidates_give(struct candidates *c, struct found *f)
{
    struct set_key *key = realloc(c->key, (c->count + 1) * sizeof *key);
    uint8_t *records = realloc(c->records.bytes, c->count * c->size + 1);

    c->left -= c->count * (sizeof *key + c->size);
    key_set_own(&f->keys, key ? key : c->key, c->count);
    f->records = (struct buffer){.bytes = records ? records : c->records.bytes, .capacity = c->count * c->size + 1};
    f->size = c->size;
    c->key = NULL;
    c->capacity = 0;
    c->records = (struct buffer){0};
}

/* What is found from a code up. */
enum enough { TOO_FEW, TOO_MANY, ENOUGH };

/* There are enough if there are `top` records, and none below `low` can be as large as they are. */
static enum enough candidates_from(struct candidates *c, const struct value_index *x, uint64_t label, uint64_t low,
                                   uint64_t largest, uint64_t top)
{
    if (!candidates_find(c, x, label, low, largest))
        return TOO_MANY;
    return c->count >= top && c->key[c->count - (size_t)top].code >= low + DOUBT ? ENOUGH : TOO_FEW;
}

/* The records with the `top` largest values, and some more: from where a leaf begins, the first that has enough of them
 * from there up; if those are too many, by halves of the codes between. */
static int candidates_top(struct candidates *c, const struct value_index *x, uint32_t epoch, uint64_t label,
                          uint64_t top)
{
    const uint64_t infinity = value_index_code(INFINITY);
    struct heads h = {0};
    enum enough is = TOO_FEW;

    if (top > c->most || heads_find(&h, x, epoch, 1 + TOP_GROWS * (c->most / LEAF_RECORDS + 1)) != DELTAFS_OK)
        h.count = 0;
    uint64_t largest = h.largest < infinity ? h.largest : infinity, few = largest + 1, many = few;
    for (size_t leaves = 1 + (size_t)top / LEAF_RECORDS; is == TOO_FEW && leaves <= h.count; leaves *= TOP_GROWS) {
        few = many;
        many = h.code[h.count - leaves];
        is = candidates_from(c, x, label, many, largest, top);
    }
    few = is == TOO_FEW ? many : few;
    for (int halves = 0; halves < TOP_HALVES && is != ENOUGH && few - many > 1; halves++) {
        uint64_t low = many + (few - many) / 2;
        is = candidates_from(c, x, label, low, largest, top);
        if (is == TOO_FEW)
            few = low;
        else
            many = low;
    }
    free(h.code);
    if (is == ENOUGH)
        candidates_cut(c, top);
    return is == ENOUGH;
}

/* ---- The epochs of a select ---- */

/* Whether the index has all that is needed of an epoch's records, and how much of each. */
static void index_rows(const struct deltafs_select *s, uint64_t label, struct candidates *c)
{
    int is_none;

    c->has_rows = carried_suffices(c->carried, &s->plan, label, c->is_tested, &is_none);
    c->size = c->has_rows ? c->key_size + (is_none ? 0 : c->carried->size) : 0;
}

/* What the select asks of the value that was indexed: the codes that may pass. Returns 0 if that is anything. */
static int index_range(const struct deltafs_select *s, uint64_t label, uint64_t print, struct candidates *c,
                       uint64_t *low, uint64_t *high)
{
    struct columns columns = {.manifest = s->manifest, .schema = s->plan.schema, .label = label, .last = UINT64_MAX};
    const struct expr_scope scope = columns_scope(&columns);
    struct bounds b = {0};
    int is_none;

    if (!s->plan.where || bounds_find(s->plan.where, &scope, print, &b, error_ignored()) != DELTAFS_OK || !b.is_found)
        return 0;
    *low = b.low > b.high ? 1 : value_index_code(b.low) - DOUBT;
    *high = b.low > b.high ? 0 : value_index_code(b.high) + DOUBT;
    int has_first = !isinf(b.all_above) || b.all_above > 0, has_last = !isinf(b.all_below) || b.all_below < 0;
    c->sure_first = !b.is_all ? UINT64_MAX : has_first ? value_index_code(b.all_above) + DOUBT + 1 : 0;
    c->sure_last = has_last ? value_index_code(b.all_below) - DOUBT - 1 : UINT64_MAX;
    c->is_tested = !b.is_all || carried_suffices(c->carried, &s->plan, label, 1, &is_none);
    index_rows(s, label, c);
    return 1;
}

static int index_is_top(const struct deltafs_select *s, uint64_t label, uint64_t print, struct candidates *c)
{
    uint64_t by;

    c->sure_first = UINT64_MAX;
    c->is_tested = 1;
    index_rows(s, label, c);
    return s->plan.by && !s->plan.where && s->except.count == 0 &&
           value_index_fingerprint(s->manifest, s->plan.schema, s->plan.by, label, &by, error_ignored()) ==
               DELTAFS_OK &&
           by == print;
}

/* How many records of an epoch may be found: not so many that a scan is faster, nor more than memory has room for.
 * Their rows must not overflow, since a scan would have another order then. */
static size_t index_most(const struct deltafs_select *s, const struct candidates *c, uint64_t records)
{
    uint64_t most = records / SHARE > FEW ? records / SHARE : FEW;
    uint64_t room = c->left / (2 * sizeof(struct set_key) + c->key_size + c->carried->size); /* one for sorting */
    uint64_t rows = s->limit / (sizeof(struct deltafs_record) + select_plan_row_size(&s->plan));

    most = most < room ? most : room;
    most = most < rows ? most : rows;
    return most < UINT32_MAX ? most : UINT32_MAX;
}

/* What an index is asked about an epoch. */
struct question {
    uint32_t number; /* of the epoch, in the index */
    int is_top;
    uint64_t low, high; /* otherwise: codes */
};

/* Whether the index can tell which records may pass. `must_carry`: if it has all that rows need. */
static int index_ask(const struct deltafs_select *s, const struct value_index *x, const struct subject *of,
                     int must_carry, struct candidates *c, struct question *q)
{
    uint64_t print;

    if (!index_has(s, x, of, &q->number, &print))
        return 0;
    int has_range = index_range(s, of->label, print, c, &q->low, &q->high);
    q->is_top = !has_range && index_is_top(s, of->label, print, c);
    return (has_range || q->is_top) && (c->has_rows || !must_carry);
}

/* Let only the records be read that the index finds. Returns whether it could be used. */
static int index_use(struct deltafs_select *s, const struct value_index *x, size_t i, int must_carry,
                     struct candidates *c)
{
    const struct subject of = select_subject(s, i);
    struct question q;

    if (!index_ask(s, x, &of, must_carry, c, &q))
        return 0;
    c->most = index_most(s, c, of.records);
    if (!(q.is_top ? candidates_top(c, x, q.number, of.indexed, s->top.most)
                   : candidates_find(c, x, of.indexed, q.low, q.high)))
        return 0;
    candidates_give(c, &s->found[i]);
    return 1;
}

/* Returns whether the index is used; `must_carry`: for all epochs or tables, and with all that rows need. */
static int index_try(struct deltafs_select *s, const char *name, int must_carry)
{
    struct candidates c = {.manifest = s->files ? NULL : s->manifest,
                           .carried = &s->carried,
                           .key_size = s->files ? sizeof(uint64_t) : 0,
                           .left = s->limit};
    struct value_index x;
    struct question q;
    size_t used = 0;

    if (!index_open(s->reader, s->files != NULL, name, &x))
        return 0;
    int can_use =
        carried_take(&s->carried, &s->plan, x.reader->manifest.schema, s->files ? 2 : 1, error_ignored()) == DELTAFS_OK;
    for (size_t i = 0; i < s->founds && must_carry && can_use; i++) { /* before any of them is scanned */
        const struct subject of = select_subject(s, i);
        can_use = index_ask(s, &x, &of, must_carry, &c, &q);
    }
    for (size_t i = 0; i < s->founds && can_use && (!must_carry || used == i); i++)
        used += (size_t)index_use(s, &x, i, must_carry, &c);
    int is_used = used > 0 && (!must_carry || used == s->founds);
    for (size_t i = 0; i < s->founds && !is_used; i++)
        found_fini(&s->found[i]);
    if (!is_used)
        carried_fini(&s->carried);
    candidates_fini(&c);
    index_close(&x);
    return is_used;
}

/* The first of these names that is used. */
static int index_choose(struct deltafs_select *s, const struct bytes *names, int must_carry)
{
    for (size_t at = 0; at < names->used;) {
        const char *name = (const char *)names->buffer.bytes + at;
        char *copy = strdup(name);
        if (copy && index_try(s, name, must_carry)) {
            s->index = copy;
            return 1;
        }
        free(copy);
        at += strlen(name) + 1;
    }
    return 0;
}

void select_use_index(struct deltafs_select *s)
{
    struct bytes names = {{0}, 0};
    char folder[PATH_ROOM];

    if (s->only.is_given || !(s->plan.where || s->plan.by) || s->reader->manifest.keys == KEYS_BYTES ||
        s->plan.schema == NULL || s->begin == s->end)
        return;
    io_path_in(folder, s->reader->path, "%s", VALUE_INDEX_FOLDER);
    if (io_names(&s->reader->io, folder, &names, error_ignored()) != DELTAFS_OK)
        names.used = 0;
    s->founds = s->files ? s->files->first[s->end] - s->files->first[s->begin] : s->end - s->begin;
    if (names.used > 0)
        s->found = calloc(s->founds, sizeof *s->found);
    int is_one = names.used > 0 && strlen((const char *)names.buffer.bytes) + 1 == names.used;
    if (s->found && (is_one || !index_choose(s, &names, 1)) && !index_choose(s, &names, 0)) {
        free(s->found);
        s->found = NULL;
    }
    buffer_fini(&names.buffer);
}
