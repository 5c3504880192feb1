#include <stdlib.h>
#include <string.h>
#include "directory/read/lookup.h"
#include "directory/read/value_log_read.h"
#include "base/hash.h"

#define PROBES_MAX   256               /* leaves searched in a window */
#define REFS_MAX     1024              /* records taken in a window */
#define SEEKS_MAX    16                /* records of a key in a leaf that are sought one by one */
#define ANSWER_BYTES 512               /* of a key's values, to begin with */
#define WINDOW_BYTES ((size_t)8 << 20) /* of leaves or blocks, about, in a window */

/* A leaf that can hold a key. */
struct probe {
    const struct segment *segment;
    uint32_t leaf; /* number in the segment */
    uint32_t wanted;
    const struct leaf *found; /* NULL: it cannot be read */
};

/* A record that a leaf names; is_bad: a part of this key and epoch cannot be read. */
struct ref {
    uint32_t wanted;
    uint32_t epoch;
    int is_bad;
    struct leaf_place place;
    size_t at, size; /* of the value, in `values` */
};

/* A thing to be read, to be ordered by where it is. */
struct target {
    uint64_t offset;
    size_t length;
    uint32_t index; /* of its probe or ref */
};

struct lookup_scratch {
    struct probe probe[PROBES_MAX];
    struct ref ref[REFS_MAX];
    struct target target[REFS_MAX];
    struct fetch fetch[REFS_MAX];
    struct leaf leaf[PROBES_MAX]; /* by fetch */
    struct block block;
    struct buffer leaves, blocks; /* as they were read */
    struct buffer values;
    struct value_wanted value[REFS_MAX]; /* with layout=local: the refs' values, */
    struct buffer away;                  /* as they were fetched from their writers' logs */
};

struct lookup {
    struct reader *r;
    struct part_reader *p;
    const struct wanted *wanted;
    struct answer **out;
    struct lookup_scratch *s;
    uint32_t probes, refs;
    size_t probe_bytes, ref_bytes;
    /* The records of one key and epoch follow each other; all of them go in, or none. */
    uint32_t group_wanted, group_epoch;
    int has_group, is_bad_group;
    size_t mark_count, mark_used;
    struct error first;
    int is_away; /* values are in the writers' logs */
};

int lookup_scratch_create(struct lookup_scratch **out, struct error *e)
{
    *out = calloc(1, sizeof **out);
    return *out ? DELTAFS_OK : error_no_memory(e, sizeof **out, "a reader");
}

void lookup_scratch_destroy(struct lookup_scratch *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < PROBES_MAX; i++)
        leaf_fini(&s->leaf[i]);
    block_fini(&s->block);
    buffer_fini(&s->leaves);
    buffer_fini(&s->blocks);
    buffer_fini(&s->values);
    buffer_fini(&s->away);
    free(s);
}

static void lookup_failed(void *lookup, const struct error *e)
{
    struct lookup *t = lookup;

    if (t->first.status == DELTAFS_OK)
        t->first = *e;
}

/* ---- Taking records ---- */

static int answer_reserve(struct answer *c, size_t bytes, struct error *e)
{
    if (c->capacity == 0)
        bytes += ANSWER_BYTES;
    int status = memory_extend(NULL, &c->record, c->public.count, &c->capacity, sizeof *c->record, "records", e);
    return status == DELTAFS_OK ? buffer_reserve(&c->bytes, c->used + bytes + 1, "records", e) : status;
}

void answer_miss(const struct reader *r, struct answer *c, uint32_t first, uint32_t end)
{
    struct error ignored;

    for (; first < end && !c->is_dropped; first++) {
        size_t used = c->public.missing_count * sizeof(uint64_t);
        if (buffer_reserve(&c->missing, used + sizeof(uint64_t), "labels", &ignored) != DELTAFS_OK) {
            c->is_dropped = 1;
            return;
        }
        memcpy(c->missing.bytes + used, &r->manifest.epoch[first].label, sizeof(uint64_t));
        c->public.missing_count++;
    }
}

static int lookup_collect(struct lookup *t, struct ref *ref, struct error *e)
{
    const struct wanted *w = &t->wanted[ref->wanted];
    struct answer *c = t->out[w->place];
    struct deltafs_record record = {.key = w->key, .label = t->r->manifest.epoch[ref->epoch].label};
    const uint8_t *value = (t->is_away ? &t->s->away : &t->s->values)->bytes + ref->at;

    int status = record_split(t->r, value, ref->size, &record);
    if (status != DELTAFS_OK)
        return error_damaged(e, t->p->data.path, ref->place.at.offset,
                             "a record is not of its key and the value's size");
    if (record.key_size != w->size || (w->size > 0 && memcmp(record.key_bytes, w->bytes, w->size) != 0))
        return DELTAFS_OK; /* another key with the same hash, as far as the index has it */
    status = answer_reserve(c, ref->size, e);
    if (status != DELTAFS_OK)
        return status;
    memcpy(c->bytes.bytes + c->used, value, ref->size);
    c->used += ref->size;
    record.value = record.key_bytes = NULL;
    c->record[c->public.count++] = record;
    return DELTAFS_OK;
}

static void lookup_take(struct lookup *t, struct ref *ref)
{
    struct answer *c = t->out[t->wanted[ref->wanted].place];
    struct error e;

    if (!t->has_group || t->group_wanted != ref->wanted || t->group_epoch != ref->epoch) {
        t->has_group = 1;
        t->group_wanted = ref->wanted;
        t->group_epoch = ref->epoch;
        t->is_bad_group = 0;
        t->mark_count = c->public.count;
        t->mark_used = c->used;
    }
    if (t->is_bad_group)
        return;
    if (!ref->is_bad && lookup_collect(t, ref, &e) == DELTAFS_OK)
        return;
    if (!ref->is_bad)
        lookup_failed(t, &e);
    t->is_bad_group = 1;
    answer_miss(t->r, c, ref->epoch, ref->epoch + 1);
    c->public.count = t->mark_count;
    c->used = t->mark_used;
}

/* ---- Reading ---- */

static int position_compare(const void *a, const void *b)
{
    const struct target *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Read what is at the targets into `bytes`, each once; targets[i].length becomes the number of its fetch. `slack` zeros
 * are put behind each. DELTAFS_ERR_MEMORY. */
static int lookup_fetch(struct lookup *t, struct io_file *file, uint32_t n, size_t slack, struct buffer *bytes,
                        struct error *e)
{
    struct lookup_scratch *s = t->s;
    struct target *targets = s->target;
    size_t total = 0;
    uint32_t count = 0;

    qsort(targets, n, sizeof *targets, position_compare);
    for (uint32_t i = 0; i < n; i++) {
        struct fetch *last = &s->fetch[count > 0 ? count - 1 : 0];
        if (count == 0 || last->offset != targets[i].offset || last->length != targets[i].length) {
            s->fetch[count++] = (struct fetch){.file = file, .offset = targets[i].offset, .length = targets[i].length};
            total += targets[i].length + slack;
        }
        targets[i].length = count - 1;
    }
    int status = buffer_reserve(bytes, total, "reading", e);
    if (status != DELTAFS_OK)
        return status;
    uint8_t *at = bytes->bytes;
    for (uint32_t i = 0; i < count; i++) {
        s->fetch[i].bytes = at;
        memset(at + s->fetch[i].length, 0, slack);
        at += s->fetch[i].length + slack;
    }
    fetch_all(t->r->team, s->fetch, count);
    return DELTAFS_OK;
}

/* What a fetch could not read is read again, to say why. */
static int lookup_fetched(struct fetch *f, struct error *e)
{
    return f->is_bad ? io_file_read(f->file, f->offset, f->bytes, f->length, e) : DELTAFS_OK;
}

/* What was read is not what must be there: once more, if it may be seen late. Returns whether it was. */
static int lookup_fetch_again(struct fetch *f, unsigned *waited)
{
    struct error ignored;

    return io_file_wait(f->file, waited) &&
           io_file_read(f->file, f->offset, f->bytes, f->length, &ignored) == DELTAFS_OK;
}

/* The value of a record, out of its block into `values`. */
static int lookup_copy_value(struct lookup *t, struct ref *ref, size_t *used, struct error *e)
{
    const uint8_t *value = block_value(&t->s->block, ref->place.record, &ref->size);
    int status = buffer_reserve(&t->s->values, *used + ref->size + 1, "records", e);

    if (status != DELTAFS_OK)
        return status;
    memcpy(t->s->values.bytes + *used, value, ref->size);
    ref->at = *used;
    *used += ref->size;
    return DELTAFS_OK;
}

static int lookup_open_block(struct lookup *t, const struct ref *ref, struct fetch *f, struct error *e)
{
    unsigned waited = 0;
    int status = lookup_fetched(f, e);

    if (status != DELTAFS_OK)
        return status;
    do
        status = reader_decode_block(t->r, t->p, ref->epoch, &ref->place, f->bytes, &t->s->block, e);
    while (status == DELTAFS_ERR_DAMAGED && lookup_fetch_again(f, &waited));
    return status;
}

/* Where the ref's value is, by the place that was read. Returns whether that is known. */
static int lookup_locate(struct lookup *t, struct ref *ref, struct value_wanted *w)
{
    struct error e;

    *w = (struct value_wanted){.epoch = ref->epoch, .hash = hash_key(t->wanted[ref->wanted].key)};
    if (ref->is_bad)
        return 0;
    if (values_locate(t->r, ref->epoch, t->s->values.bytes + ref->at, t->p->data.path, ref->place.at.offset, &w->in,
                      &e) == DELTAFS_OK)
        return 1;
    lookup_failed(t, &e);
    ref->is_bad = 1;
    return 0;
}

/* With layout=local: fetch the refs' values, and take them in the refs' order. */
static void lookup_take_away(struct lookup *t)
{
    struct lookup_scratch *s = t->s;
    struct error e;
    uint64_t blocks = 0;

    for (uint32_t at = 0, end = 0; at < t->refs; at = end) {
        uint32_t n = 0, k = 0;
        size_t done = 0;
        for (uint32_t i = at; i < t->refs; i++)
            n += (uint32_t)lookup_locate(t, &s->ref[i], &s->value[n]);
        if (n > 0 && values_fetch(t->r, s->value, n, WINDOW_BYTES, &s->away, &done, lookup_failed, t, &blocks, &e) !=
                         DELTAFS_OK) {
            lookup_failed(t, &e);
            for (done = n; k < n; k++)
                s->value[k].is_bad = 1;
        }
        for (k = 0; end < t->refs && (k < done || s->ref[end].is_bad); end++) {
            struct ref *ref = &s->ref[end];
            if (!ref->is_bad) {
                ref->is_bad = s->value[k].is_bad;
                ref->at = s->value[k].at;
                ref->size = s->value[k++].size;
            }
            lookup_take(t, ref);
        }
    }
}

/* Read the blocks of the refs collected so far, and take their records in the refs' order. */
static void lookup_take_refs(struct lookup *t)
{
    struct lookup_scratch *s = t->s;
    struct error e;
    uint32_t n = 0;
    size_t used = 0;
    const struct ref *open = NULL; /* whose block is decoded */

    for (uint32_t i = 0; i < t->refs; i++)
        if (!s->ref[i].is_bad)
            s->target[n++] = (struct target){s->ref[i].place.at.offset, s->ref[i].place.at.length, i};
    if (n > 0 && lookup_fetch(t, &t->p->data, n, 0, &s->blocks, &e) != DELTAFS_OK) {
        lookup_failed(t, &e);
        for (uint32_t i = 0; i < n; i++)
            s->ref[s->target[i].index].is_bad = 1;
        n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct ref *ref = &s->ref[s->target[i].index];
        int status = DELTAFS_OK;
        if (!open || open->epoch != ref->epoch || !reader_is_same_block(&open->place, &ref->place))
            status = lookup_open_block(t, ref, &s->fetch[s->target[i].length], &e);
        open = status == DELTAFS_OK ? ref : NULL;
        if (status == DELTAFS_OK)
            status = lookup_copy_value(t, ref, &used, &e);
        if (status != DELTAFS_OK) {
            lookup_failed(t, &e);
            ref->is_bad = 1;
        }
    }
    if (t->is_away)
        lookup_take_away(t);
    for (uint32_t i = 0; i < t->refs && !t->is_away; i++)
        lookup_take(t, &s->ref[i]);
    t->refs = 0;
    t->ref_bytes = 0;
}

static void lookup_add_ref(struct lookup *t, const struct ref *ref)
{
    if (t->refs == REFS_MAX || (t->refs > 0 && t->ref_bytes + ref->place.at.length > WINDOW_BYTES))
        lookup_take_refs(t);
    t->s->ref[t->refs++] = *ref;
    t->ref_bytes += ref->place.at.length;
}

/* The records that a leaf has of a probe's key. */
static void lookup_take_leaf(struct lookup *t, const struct probe *probe)
{
    struct leaf whole = *probe->found;
    const struct leaf *leaf = &whole;
    uint64_t key = t->wanted[probe->wanted].key >> probe->segment->footer.key_shift;
    struct ref ref = {.wanted = probe->wanted, .epoch = probe->segment->footer.epoch};
    uint32_t first = 0, found = leaf_find(leaf, key, &first), run = UINT32_MAX, rank = 0;
    struct error e;
    int is_loaded = found > SEEKS_MAX;

    whole.runs = whole.blocks = (struct buffer){0};
    if (is_loaded &&
        leaf_load(&whole, t->p->index.file.path, probe->segment->leaf_offsets[probe->leaf], &e) != DELTAFS_OK) {
        lookup_failed(t, &e);
        ref.is_bad = 1;
        lookup_add_ref(t, &ref);
    }
    for (uint32_t i = first; i < first + found && !ref.is_bad; i++) {
        /* The records of a key stand run by run. */
        uint32_t of = leaf_run_of(leaf, i);
        rank = of == run ? rank + 1 : leaf_rank(leaf, of, i);
        run = of;
        int found_place = is_loaded ? leaf_place(leaf, run, rank, &ref.place) : leaf_seek(leaf, run, rank, &ref.place);
        ref.is_bad = (found_place != 0 ? reader_malformed_leaf(t->p, probe->segment, probe->leaf, &e)
                                       : reader_check_place(t->p, &ref.place, &e)) != DELTAFS_OK;
        if (ref.is_bad)
            lookup_failed(t, &e);
        lookup_add_ref(t, &ref);
    }
    leaf_fini(&whole);
}

/* The leaf of a fetch, taken apart; NULL if it cannot be read. */
static const struct leaf *lookup_open_leaf(struct lookup *t, const struct probe *probe, uint32_t fetch)
{
    struct error e;
    struct leaf *leaf = &t->s->leaf[fetch];
    struct fetch *f = &t->s->fetch[fetch];
    unsigned waited = 0;
    int status = lookup_fetched(f, &e);

    if (status == DELTAFS_OK)
        do
            status = index_parse_leaf(&t->p->index, probe->segment, probe->leaf, f->bytes, leaf, &e);
        while (status == DELTAFS_ERR_DAMAGED && !log_is_sealed(t->p->index.seed, f->bytes, f->length) &&
               lookup_fetch_again(f, &waited));
    if (status == DELTAFS_OK)
        return leaf;
    lookup_failed(t, &e);
    return NULL;
}

/* Read the `n` leaves at s->target, of the probes that these name. */
static void lookup_read_leaves(struct lookup *t, uint32_t n)
{
    struct lookup_scratch *s = t->s;
    struct error e;
    const struct leaf *leaf = NULL;

    if (lookup_fetch(t, &t->p->index.file, n, LEAF_SLACK, &s->leaves, &e) != DELTAFS_OK) {
        lookup_failed(t, &e);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct probe *probe = &s->probe[s->target[i].index];
        if (i == 0 || s->target[i].length != s->target[i - 1].length)
            leaf = lookup_open_leaf(t, probe, (uint32_t)s->target[i].length);
        probe->found = leaf;
    }
}

/* Keep the leaves that were read. */
static void lookup_keep_leaves(struct lookup *t, uint32_t probes)
{
    const struct leaf *kept = NULL;

    for (uint32_t i = 0; i < probes; i++) {
        const struct probe *probe = &t->s->probe[i];
        const struct leaf *leaf = probe->found;
        if (leaf < t->s->leaf || leaf >= t->s->leaf + PROBES_MAX || leaf == kept)
            continue;
        leaf_cache_add(t->r->leaves, t->p->partition, probe->segment->footer.checksum,
                       probe->segment->leaf_offsets[probe->leaf], leaf);
        kept = leaf;
    }
}

/* Read the leaves of the probes collected so far, and search them in the probes' order. */
static void lookup_take_probes(struct lookup *t)
{
    struct lookup_scratch *s = t->s;
    uint32_t probes = t->probes, missing = 0;

    for (uint32_t i = 0; i < probes; i++) {
        const struct segment *segment = s->probe[i].segment;
        const uint64_t *offset = &segment->leaf_offsets[s->probe[i].leaf];
        s->probe[i].found = leaf_cache_find(t->r->leaves, t->p->partition, segment->footer.checksum, offset[0]);
        if (!s->probe[i].found)
            s->target[missing++] = (struct target){offset[0], (size_t)(offset[1] - offset[0]), i};
    }
    if (missing > 0)
        lookup_read_leaves(t, missing);
    for (uint32_t i = 0; i < probes; i++) {
        if (s->probe[i].found)
            lookup_take_leaf(t, &s->probe[i]);
        else
            lookup_add_ref(
                t,
                &(struct ref){.wanted = s->probe[i].wanted, .epoch = s->probe[i].segment->footer.epoch, .is_bad = 1});
    }
    if (missing > 0)
        lookup_keep_leaves(t, probes);
    t->probes = 0;
    t->probe_bytes = 0;
}

static void lookup_add_probe(struct lookup *t, const struct segment *segment, uint32_t leaf, uint32_t wanted)
{
    size_t length = (size_t)(segment->leaf_offsets[leaf + 1] - segment->leaf_offsets[leaf]);

    if (t->probes == PROBES_MAX || (t->probes > 0 && t->probe_bytes + length > WINDOW_BYTES))
        lookup_take_probes(t);
    t->s->probe[t->probes++] = (struct probe){.segment = segment, .leaf = leaf, .wanted = wanted};
    t->probe_bytes += length;
}

int lookup_get(struct reader *r, struct part_reader *p, const struct wanted *w, size_t n, uint32_t first, uint32_t end,
               struct answer **out, struct error *e)
{
    struct lookup t = {.r = r, .p = p, .wanted = w, .out = out, .s = r->scratch, .is_away = r->manifest.is_local};
    struct segment *segment;
    uint32_t segments, leaves;

    for (uint32_t epoch = first; epoch < end; epoch++) {
        if (reader_epoch(r, p, epoch, &segment, &segments, e) != DELTAFS_OK) {
            lookup_failed(&t, e);
            for (uint32_t i = 0; i < n; i++)
                answer_miss(r, out[w[i].place], epoch, epoch + 1);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < segments; k++) {
                uint32_t leaf = index_leaf_of(&segment[k], w[i].key >> segment[k].footer.key_shift, &leaves);
                for (; leaves > 0; leaf++, leaves--)
                    lookup_add_probe(&t, &segment[k], leaf, i);
            }
        }
    }
    lookup_take_probes(&t);
    lookup_take_refs(&t);
    if (t.first.status != DELTAFS_OK)
        *e = t.first;
    return t.first.status;
}
