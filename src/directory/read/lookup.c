#include <stdlib.h>
#include <string.h>
#include "directory/read/lookup.h"
#include "directory/read/gather.h"

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

/* A leaf to be read, to be ordered by where it is. */
struct target {
    uint64_t offset;
    size_t length;
    uint32_t index; /* of its probe */
};

struct lookup_scratch {
    struct probe probe[PROBES_MAX];
    struct target target[PROBES_MAX];
    struct fetch fetch[PROBES_MAX];
    struct leaf leaf[PROBES_MAX]; /* by fetch */
    struct leaf table;            /* room for the run table of a leaf */
    struct buffer leaves;         /* as they were read */
    struct ref ref[REFS_MAX];     /* `note` is the number of the wanted key */
};

struct lookup {
    struct reader *r;
    struct part_reader *p;
    const struct wanted *wanted;
    struct answer **out;
    struct lookup_scratch *s;
    uint32_t probes, refs, given;
    size_t probe_bytes, ref_bytes;
    /* The records of one key and epoch follow each other; all of them go in, or none. */
    uint32_t group_wanted, group_epoch;
    int has_group, is_bad_group;
    size_t mark_count, mark_used;
    struct error first;
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
    leaf_fini(&s->table);
    buffer_fini(&s->leaves);
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

static int lookup_collect(struct lookup *t, const struct ref *ref, const uint8_t *stored, struct error *e)
{
    const struct wanted *w = &t->wanted[ref->note];
    struct answer *c = t->out[w->place];
    struct deltafs_record record = {.key = w->key, .label = t->r->manifest.epoch[ref->epoch].label};

    if (record_split(t->r, stored, ref->size, &record) != 0)
        return gather_damaged(t->r, t->p, ref, "a record is not of its key and the value's size", e);
    if (record.key_size != w->size || (w->size > 0 && memcmp(record.key_bytes, w->bytes, w->size) != 0))
        return DELTAFS_OK; /* another key with the same hash, as far as the index has it */
    int status = answer_reserve(c, ref->size, e);
    if (status != DELTAFS_OK)
        return status;
    memcpy(c->bytes.bytes + c->used, stored, ref->size);
    c->used += ref->size;
    record.value = record.key_bytes = NULL;
    c->record[c->public.count++] = record;
    return DELTAFS_OK;
}

/* Take a record that was gathered, or with `stored` NULL could not be. */
static int lookup_take(void *lookup, const struct ref *ref, const uint8_t *stored, struct error *e)
{
    struct lookup *t = lookup;
    struct answer *c = t->out[t->wanted[ref->note].place];

    t->given++;
    if (!t->has_group || t->group_wanted != ref->note || t->group_epoch != ref->epoch) {
        t->has_group = 1;
        t->group_wanted = ref->note;
        t->group_epoch = ref->epoch;
        t->is_bad_group = 0;
        t->mark_count = c->public.count;
        t->mark_used = c->used;
    }
    if (t->is_bad_group)
        return DELTAFS_OK;
    if (stored && lookup_collect(t, ref, stored, e) == DELTAFS_OK)
        return DELTAFS_OK;
    if (stored)
        lookup_failed(t, e);
    t->is_bad_group = 1;
    answer_miss(t->r, c, ref->epoch, ref->epoch + 1);
    c->public.count = t->mark_count;
    c->used = t->mark_used;
    return DELTAFS_OK;
}

/* ---- Reading ---- */

static int target_compare(const void *a, const void *b)
{
    const struct target *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Read the `n` leaves at the targets, each once; targets[i].length becomes the number of its fetch. DELTAFS_ERR_MEMORY.
 */
static int lookup_fetch(struct lookup *t, uint32_t n, struct error *e)
{
    struct lookup_scratch *s = t->s;
    struct target *targets = s->target;
    size_t total = 0;
    uint32_t count = 0;

    qsort(targets, n, sizeof *targets, target_compare);
    for (uint32_t i = 0; i < n; i++) {
        if (count == 0 || s->fetch[count - 1].offset != targets[i].offset) {
            s->fetch[count++] =
                (struct fetch){.file = &t->p->index.file, .offset = targets[i].offset, .length = targets[i].length};
            total += targets[i].length + LEAF_SLACK;
        }
        targets[i].length = count - 1;
    }
    int status = buffer_reserve(&s->leaves, total, "reading", e);
    if (status != DELTAFS_OK)
        return status;
    uint8_t *at = s->leaves.bytes;
    for (uint32_t i = 0; i < count; i++) {
        s->fetch[i].bytes = at;
        memset(at + s->fetch[i].length, 0, LEAF_SLACK);
        at += s->fetch[i].length + LEAF_SLACK;
    }
    fetch_all(t->r->team, s->fetch, count);
    return DELTAFS_OK;
}

/* Gather the refs collected so far. */
static void lookup_take_refs(struct lookup *t)
{
    struct gather_to to = {.give = lookup_take, .damage = lookup_failed, .arg = t};
    struct error e;

    t->given = 0;
    if (gather(t->r, t->p, t->s->ref, t->refs, WINDOW_BYTES, &to, &e) != DELTAFS_OK) {
        lookup_failed(t, &e);
        while (t->given < t->refs)
            lookup_take(t, &t->s->ref[t->given], NULL, &e);
    }
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
    const struct wanted *w = &t->wanted[probe->wanted];
    struct ref ref = {.key = w->key, .epoch = probe->segment->footer.epoch, .note = probe->wanted};
    struct leaf *leaf = &t->s->table;
    uint32_t first = 0, run = UINT32_MAX, rank = 0;
    uint32_t found = leaf_find(probe->found, w->key >> probe->segment->footer.key_shift, &first);
    struct error e;

    if (found == 0)
        return;
    const struct buffer runs = leaf->runs, blocks = leaf->blocks;
    *leaf = *probe->found;
    leaf->runs = runs;
    leaf->blocks = blocks;
    int is_loaded = found > SEEKS_MAX;
    if (is_loaded &&
        leaf_load(leaf, t->p->index.file.path, probe->segment->leaf_offsets[probe->leaf], &e) != DELTAFS_OK) {
        lookup_failed(t, &e);
        ref.is_bad = 1;
        lookup_add_ref(t, &ref);
    }
    for (uint32_t i = first; i < first + found && !ref.is_bad; i++) {
        /* The records of a key are in the order of their runs. */
        uint32_t of = leaf_run_of(leaf, i);
        rank = of == run ? rank + 1 : leaf_rank(leaf, of, i);
        run = of;
        int rc = is_loaded ? leaf_place(leaf, run, rank, &ref.place) : leaf_seek(leaf, run, rank, &ref.place);
        if (rc != 0) {
            ref.is_bad = 1;
            reader_malformed_leaf(t->p, probe->segment, probe->leaf, &e);
            lookup_failed(t, &e);
        }
        lookup_add_ref(t, &ref);
    }
}

/* The leaf of a fetch, parsed; NULL if it cannot be read. */
static const struct leaf *lookup_open_leaf(struct lookup *t, const struct probe *probe, uint32_t fetch)
{
    struct error e, ignored;
    struct leaf *leaf = &t->s->leaf[fetch];
    struct fetch *f = &t->s->fetch[fetch];
    unsigned waited = 0;
    /* What a fetch could not read is read again, to say why. */
    int status = f->is_bad ? io_file_read(f->file, f->offset, f->bytes, f->length, &e) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        do
            status = index_parse_leaf(&t->p->index, probe->segment, probe->leaf, f->bytes, leaf, &e);
        while (status == DELTAFS_ERR_DAMAGED && !log_is_sealed(t->p->index.seed, f->bytes, f->length) &&
               io_file_wait(f->file, &waited) &&
               io_file_read(f->file, f->offset, f->bytes, f->length, &ignored) == DELTAFS_OK);
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

    if (lookup_fetch(t, n, &e) != DELTAFS_OK) {
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
                t, &(struct ref){.note = s->probe[i].wanted, .epoch = s->probe[i].segment->footer.epoch, .is_bad = 1});
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
    struct lookup t = {.r = r, .p = p, .wanted = w, .out = out, .s = r->scratch};
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
