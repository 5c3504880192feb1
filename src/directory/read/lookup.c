#include <stdlib.h>
#include <string.h>
#include "directory/read/lookup.h"
#include "directory/read/gather.h"

#define PROBES_MAX   256                 /* leaves searched in a window */
#define REFS_MAX     1024                /* blocks, or parts of them, taken in a window */
#define RECORDS_MAX  (64u << 10)         /* and records */
#define SEEKS_MAX    16                  /* records of a key in a leaf that are sought one by one, */
#define SEEKERS_MAX  2                   /* of so many keys */
#define ANSWER_BYTES 512                 /* of a key's values, to begin with */
#define WINDOW_BYTES ((size_t)8 << 20)   /* of leaves or blocks, about, in a window; */
#define LEAVES_NEAR  ((size_t)256 << 10) /* of leaves, while reads are quick, what stays in the processor's cache */
#define FETCH_MAX    ((size_t)64 << 10)  /* of leaves that are read at once */

/* A leaf that can hold some of the wanted keys, which are neighbours. */
struct probe {
    const struct segment *segment;
    uint32_t leaf;        /* number in the segment, */
    struct fence_leaf at; /* and where it is */
    uint32_t first, end;  /* wanted keys */
    int is_read;
    uint32_t fetch;           /* that reads it, */
    uint8_t *bytes;           /* and where */
    const struct leaf *found; /* NULL: it cannot be read */
};

struct lookup_scratch {
    uint32_t leaves_used;       /* of `leaf` */
    struct leaf table;          /* room for the run table of a leaf, */
    const struct probe *loaded; /* of this probe; NULL: it has none */
    struct buffer leaves;       /* as they were read */
    /* Without contents at first: */
    struct leaf leaf[PROBES_MAX]; /* by probe */
    struct probe probe[PROBES_MAX];
    struct fetch fetch[PROBES_MAX];
    struct ref ref[REFS_MAX]; /* of a wanted key, whose number is `note`: `wanted` records side by side in a block */
    struct ref_record record[RECORDS_MAX];
};

struct lookup {
    struct reader *r;
    struct part_reader *p;
    const struct lookup_key *wanted;
    struct answer **out;  /* NULL: they go to */
    struct lookup_to *to; /* this */
    struct lookup_scratch *s;
    uint32_t first_epoch, end_epoch;
    uint32_t probes, refs, records, given;
    size_t probe_bytes, ref_bytes;
    struct error first;
};

/* Most readers look up nothing. */
static int lookup_scratch_create(struct lookup_scratch **out, struct error *e)
{
    struct lookup_scratch *s = malloc(sizeof *s);

    if (!s)
        return error_no_memory(e, sizeof *s, "lookups");
    memset(s, 0, offsetof(struct lookup_scratch, leaf));
    *out = s;
    return DELTAFS_OK;
}

void lookup_scratch_destroy(struct lookup_scratch *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->leaves_used; i++)
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
    for (; first < end && !c->is_dropped; first++) {
        uint64_t label = r->manifest.epoch[first].label;
        size_t used = c->public.missing_count * sizeof label;
        if (used > 0 && memcmp(c->missing.bytes + used - sizeof label, &label, sizeof label) == 0)
            continue;
        c->is_dropped = buffer_reserve(&c->missing, used + sizeof label, "labels", error_ignored()) != DELTAFS_OK;
        if (c->is_dropped)
            return;
        memcpy(c->missing.bytes + used, &label, sizeof label);
        c->public.missing_count++;
    }
}

/* A key's records of an epoch are missing, or some of them. */
static void lookup_miss(struct lookup *t, uint32_t wanted, uint32_t epoch)
{
    if (t->out)
        answer_miss(t->r, t->out[t->wanted[wanted].place], epoch, epoch + 1);
}

/* The same of all that is stored with an epoch: those of the compacted ones that are asked for, if it is one. */
static void lookup_miss_stored(struct lookup *t, uint32_t wanted, uint32_t epoch)
{
    uint32_t compacted = t->r->manifest.compacted, end = t->end_epoch < compacted ? t->end_epoch : compacted;

    if (epoch < compacted && t->out)
        answer_miss(t->r, t->out[t->wanted[wanted].place], t->first_epoch, end);
    else
        lookup_miss(t, wanted, epoch);
}

static int lookup_is_stopped(const struct lookup *t)
{
    return t->to && t->to->stopped;
}

static int lookup_collect(struct lookup *t, const struct ref *ref, uint32_t epoch, const uint8_t *stored, size_t size,
                          struct error *e)
{
    const struct lookup_key *w = &t->wanted[ref->note];
    struct deltafs_record record = {.key = w->key, .label = t->r->manifest.epoch[epoch].label};

    if (record_split(t->r, stored, size, &record) != 0)
        return gather_damaged(t->r, t->p, ref, "a record is not of its key and the value's size", e);
    if (record.key_size != w->size || (w->size > 0 && memcmp(record.key_bytes, w->bytes, w->size) != 0))
        return DELTAFS_OK; /* another key with the same hash, as far as the index has it */
    if (t->to) {
        t->to->stopped = t->to->fn(&record, t->to->arg);
        return DELTAFS_OK;
    }
    struct answer *c = t->out[w->place];
    int status = answer_reserve(c, size, e);
    if (status != DELTAFS_OK)
        return status;
    memcpy(c->bytes.bytes + c->used, stored, size);
    c->used += size;
    record.value = record.key_bytes = NULL;
    c->record[c->public.count++] = record;
    return DELTAFS_OK;
}

static int lookup_take(void *lookup, const struct ref *ref, const struct ref_record *record, const uint8_t *stored,
                       size_t size, struct error *e)
{
    struct lookup *t = lookup;

    t->given++;
    if (stored && lookup_collect(t, ref, record->epoch, stored, size, e) == DELTAFS_OK)
        return lookup_is_stopped(t) ? DELTAFS_ERR_CANCELLED : DELTAFS_OK;
    if (stored)
        lookup_failed(t, e);
    lookup_miss(t, ref->note, record->epoch);
    return DELTAFS_OK;
}

/* ---- Reading ---- */

/* Gather the refs collected so far. */
static void lookup_take_refs(struct lookup *t)
{
    struct gather_to to = {.give = lookup_take,
                           .damage = lookup_failed,
                           .arg = t,
                           .piece = t->r->manifest.compacted > 0 ? WINDOW_BYTES : 0,
                           .is_slow = t->r->pace == FETCH_SLOW};
    struct error e;

    t->given = 0;
    if (gather(t->r, t->p, t->s->ref, t->s->record, t->records, WINDOW_BYTES, &to, &e) != DELTAFS_OK &&
        !lookup_is_stopped(t)) {
        lookup_failed(t, &e);
        for (; t->given < t->records; t->given++)
            lookup_miss(t, t->s->ref[t->s->record[t->given].ref].note, t->s->record[t->given].epoch);
    }
    t->refs = t->records = 0;
    t->ref_bytes = 0;
}

/* Whether the record follows those of the last ref. */
static int lookup_is_next(const struct lookup *t, const struct ref *ref)
{
    const struct ref *last = &t->s->ref[t->refs > 0 ? t->refs - 1 : 0];

    return t->refs > 0 && last->note == ref->note && last->epoch == ref->epoch && last->place.run == ref->place.run &&
           last->place.block == ref->place.block && last->place.record + last->wanted == ref->place.record;
}

/* `epoch` is the record's. */
static void lookup_add_record(struct lookup *t, const struct ref *ref, uint32_t epoch)
{
    int is_next = lookup_is_next(t, ref);

    if (t->records == RECORDS_MAX || (!is_next && t->refs == REFS_MAX) ||
        (!is_next && t->refs > 0 && t->ref_bytes + ref->place.at.length > WINDOW_BYTES)) {
        lookup_take_refs(t);
        is_next = 0;
    }
    if (!is_next) {
        t->s->ref[t->refs++] = *ref;
        t->ref_bytes += ref->place.at.length;
    }
    t->s->ref[t->refs - 1].wanted++;
    t->s->record[t->records++] = (struct ref_record){t->wanted[ref->note].key, t->refs - 1, epoch};
}

/* The leaf of a probe with its run table. */
static int lookup_load_table(struct lookup *t, const struct probe *probe, const struct leaf **out, struct error *e)
{
    struct leaf *leaf = &t->s->table;
    const struct buffer runs = leaf->runs, blocks = leaf->blocks;

    *out = leaf;
    if (t->s->loaded == probe)
        return DELTAFS_OK;
    *leaf = *probe->found;
    leaf->runs = runs;
    leaf->blocks = blocks;
    int status = leaf_load(leaf, t->p->index.file.path, probe->at.offset, e);
    t->s->loaded = status == DELTAFS_OK ? probe : NULL;
    return status;
}

/* The records that a probe's leaf has of a wanted key. */
static void lookup_take_key(struct lookup *t, const struct probe *probe, uint32_t wanted)
{
    uint64_t key = t->wanted[wanted].key;
    struct ref ref = {.epoch = probe->segment->footer.epoch, .note = wanted};
    const struct leaf *leaf = probe->found;
    uint32_t first = 0, run = UINT32_MAX, rank = 0, epoch = ref.epoch;
    uint32_t compacted = ref.epoch < t->r->manifest.compacted ? t->r->manifest.compacted : 0;
    uint32_t found = leaf_find(leaf, key >> probe->segment->footer.key_shift, &first);
    int is_loaded = found > SEEKS_MAX || probe->end - probe->first > SEEKERS_MAX, status = DELTAFS_OK;
    struct leaf_epochs epochs = {.next = 0};
    struct error e;

    if (found == 0)
        return;
    if (compacted > 0)
        epochs = leaf_epochs_begin(leaf);
    if (is_loaded)
        status = lookup_load_table(t, probe, &leaf, &e);
    for (uint32_t i = first; i < first + found && status == DELTAFS_OK; i++) {
        /* The records of a key are in the order of their runs. */
        uint32_t of = leaf_run_of(leaf, i);
        rank = of == run ? rank + 1 : leaf_rank(leaf, of, i);
        run = of;
        if (compacted > 0)
            epoch = leaf_epochs_next(&epochs, i, i == first);
        if (compacted > 0 && epoch < compacted && (epoch < t->first_epoch || epoch >= t->end_epoch))
            continue;
        if ((compacted == 0 || epoch < compacted) &&
            (is_loaded ? leaf_place(leaf, run, rank, &ref.place) : leaf_seek(leaf, run, rank, &ref.place)) == 0)
            lookup_add_record(t, &ref, epoch);
        else
            status = reader_malformed_leaf(t->p, probe->segment, probe->leaf, &e);
    }
    if (status != DELTAFS_OK) {
        lookup_failed(t, &e);
        lookup_miss_stored(t, wanted, ref.epoch);
    }
}

/* The leaf of a probe, which was read, parsed; NULL if it cannot be read. */
static const struct leaf *lookup_open_leaf(struct lookup *t, const struct probe *probe)
{
    struct error e;
    const uint32_t number = (uint32_t)(probe - t->s->probe);
    struct leaf *leaf = &t->s->leaf[number];
    struct io_file *file = &t->p->index.file;
    const uint64_t offset = probe->at.offset;
    size_t n = probe->at.length;
    unsigned waited = 0;
    for (; t->s->leaves_used <= number; t->s->leaves_used++)
        t->s->leaf[t->s->leaves_used] = (struct leaf){0};
    /* What a fetch could not read is read again, to say why. */
    int is_bad = t->s->fetch[probe->fetch].is_bad,
        status = is_bad ? io_file_read(file, offset, probe->bytes, n, &e) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        do
            status = index_parse_leaf(&t->p->index, probe->segment, probe->leaf, probe->bytes, leaf, &e);
        while (status == DELTAFS_ERR_DAMAGED && !log_is_sealed(t->p->index.seed, probe->bytes, n) &&
               io_file_wait(file, &waited) &&
               io_file_read(file, offset, probe->bytes, n, error_ignored()) == DELTAFS_OK);
    if (status == DELTAFS_OK)
        return leaf;
    lookup_failed(t, &e);
    return NULL;
}

/* Add the leaf of a probe to what is read. Leaves that lie side by side are read at once. */
static void lookup_add_fetch(struct lookup *t, struct probe *p, uint32_t *n)
{
    size_t length = p->at.length;
    struct fetch *last = &t->s->fetch[*n > 0 ? *n - 1 : 0];
    const struct probe *before = p - 1;

    if (p > t->s->probe && before->is_read && before->segment == p->segment && before->leaf + 1 == p->leaf &&
        last->length + length <= FETCH_MAX) {
        last->length += length;
    } else {
        last = &t->s->fetch[(*n)++];
        *last = (struct fetch){.file = &t->p->index.file, .offset = p->at.offset, .length = length};
    }
    p->fetch = *n - 1;
}

/* Have the leaves of all probes, from the cache or read together. */
static void lookup_read_leaves(struct lookup *t)
{
    struct lookup_scratch *s = t->s;
    struct error e;
    size_t total = 0;
    uint32_t n = 0;

    for (struct probe *p = s->probe; p < s->probe + t->probes; p++) {
        p->found =
            t->out ? leaf_cache_find(t->r->leaves, t->p->partition, p->segment->footer.checksum, p->at.offset) : NULL;
        p->is_read = !p->found;
        if (p->is_read)
            lookup_add_fetch(t, p, &n);
    }
    if (n == 0)
        return;
    for (struct fetch *f = s->fetch; f < s->fetch + n; f++)
        total += f->length + LEAF_SLACK;
    if (buffer_reserve(&s->leaves, total, "reading", &e) != DELTAFS_OK) {
        lookup_failed(t, &e);
        return;
    }
    uint8_t *at = s->leaves.bytes;
    for (struct fetch *f = s->fetch; f < s->fetch + n; at += f++->length + LEAF_SLACK) {
        f->bytes = at;
        memset(at + f->length, 0, LEAF_SLACK);
    }
    t->r->pace = fetch_all(t->r->team, s->fetch, n, t->r->pace);
    for (struct probe *p = s->probe; p < s->probe + t->probes; p++) {
        const struct fetch *f = &s->fetch[p->fetch];
        if (!p->is_read)
            continue;
        p->bytes = f->bytes + (p->at.offset - f->offset);
        p->found = lookup_open_leaf(t, p);
    }
}

/* Search the leaves of the probes collected so far. */
static void lookup_take_probes(struct lookup *t)
{
    struct probe *probe = t->s->probe, *end = probe + t->probes;

    lookup_read_leaves(t);
    t->s->loaded = NULL;
    for (struct probe *p = probe; p < end; p++)
        for (uint32_t i = p->first; i < p->end && !lookup_is_stopped(t); i++)
            if (p->found)
                lookup_take_key(t, p, i);
            else
                lookup_miss_stored(t, i, p->segment->footer.epoch);
    /* The cache may drop leaves that were found in it. */
    for (struct probe *p = probe; p < end; p++)
        if (p->is_read && p->found && t->out)
            leaf_cache_add(t->r->leaves, t->p->partition, p->segment->footer.checksum, p->at.offset, p->found);
    t->probes = 0;
    t->probe_bytes = 0;
}

static void lookup_add_probe(struct lookup *t, const struct segment *segment, uint32_t leaf, uint32_t wanted)
{
    struct probe *last = &t->s->probe[t->probes > 0 ? t->probes - 1 : 0];

    if (t->probes > 0 && last->segment == segment && last->leaf == leaf) {
        last->end = wanted + 1;
        return;
    }
    struct fence_leaf at = fence_leaf(&segment->fence, leaf);
    size_t most = t->r->pace == FETCH_SLOW ? WINDOW_BYTES : LEAVES_NEAR;
    if (t->probes == PROBES_MAX || (t->probes > 0 && t->probe_bytes + at.length > most))
        lookup_take_probes(t);
    t->s->probe[t->probes++] =
        (struct probe){.segment = segment, .leaf = leaf, .at = at, .first = wanted, .end = wanted + 1};
    t->probe_bytes += at.length;
}

static int lookup_run(struct lookup *t, size_t n, struct error *e)
{
    struct reader *r = t->r;
    const struct lookup_key *w = t->wanted;
    struct segment *segment;
    uint32_t segments, leaves, next;

    if (!r->scratch && lookup_scratch_create(&r->scratch, e) != DELTAFS_OK)
        return e->status;
    t->s = r->scratch;
    for (uint32_t epoch = reader_next_epoch(r, t->first_epoch, t->end_epoch);
         epoch < t->end_epoch && !lookup_is_stopped(t); epoch = next) {
        next = reader_next_epoch(r, epoch + 1, t->end_epoch);
        if (epoch < r->manifest.compacted) {
            epoch = 0;
            next = r->manifest.compacted;
        }
        if (reader_epoch(r, t->p, epoch, &segment, &segments, e) != DELTAFS_OK) {
            lookup_failed(t, e);
            for (uint32_t i = 0; i < n; i++)
                lookup_miss_stored(t, i, epoch);
            continue;
        }
        for (; segments > 0; segment++, segments--)
            for (uint32_t i = 0; i < n; i++) {
                uint32_t leaf = index_leaf_of(segment, w[i].key >> segment->footer.key_shift, &leaves);
                for (; leaves > 0; leaf++, leaves--)
                    lookup_add_probe(t, segment, leaf, i);
            }
    }
    lookup_take_probes(t);
    lookup_take_refs(t);
    if (t->first.status != DELTAFS_OK)
        *e = t->first;
    return t->first.status;
}

int lookup_get(struct reader *r, struct part_reader *p, const struct lookup_key *w, size_t n, uint32_t first,
               uint32_t end, struct answer **out, struct error *e)
{
    struct lookup t = {.r = r, .p = p, .wanted = w, .out = out, .first_epoch = first, .end_epoch = end};

    return lookup_run(&t, n, e);
}

int lookup_give(struct reader *r, struct part_reader *p, const struct lookup_key *w, size_t n, uint32_t first,
                uint32_t end, struct lookup_to *to, struct error *e)
{
    struct lookup t = {.r = r, .p = p, .wanted = w, .to = to, .first_epoch = first, .end_epoch = end};

    return lookup_run(&t, n, e);
}
