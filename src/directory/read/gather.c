/* Refs to the same block make a target. Targets are sorted by log and offset, and those that lie close together are
 * read at once (a piece): a scan then reads its logs nearly from end to end. The length of a value log's block is known
 * only from its header: first as many bytes are read as most blocks of the job have, by its line in the manifest, and
 * the rest later. */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/short_copy.h"
#include "base/thread.h"
#include "directory/format/directory_format.h"
#include "directory/read/gather.h"

#define LOGS_OPEN   64                  /* value logs at a time */
#define PIECES      64                  /* read at a time, no more than LOGS_OPEN, */
#define PIECE_MAX   ((size_t)256 << 10) /* of so many bytes each, about */
#define PIECES_MAX  ((size_t)8 << 20)   /* and all of them; */
#define PIECES_NEAR ((size_t)128 << 10) /* while reads are quick, only what stays in the processor's cache */
#define READ_MAX    ((uint64_t)2 << 20) /* bytes read at first of a block whose length is not known */
#define PIECE_GAP   3                   /* times that number may lie between two such blocks of a piece */
#define JOIN_SHARE  8                   /* a block is joined for more than this part of its values */
#define PARTS_SHARE 2                   /* a block is read in parts if at most this part of a value is wanted, */
#define PARTS_SLOW  UINT64_C(50000)     /* and until that takes more nanoseconds */
#define PARTS_TRIED 2                   /* so often in a row: from storage, all is read at once */

struct values_log {
    int is_open;
    uint32_t writer;
    uint64_t used; /* when, by the clock */
    struct io_file file;
    uint64_t size;
    struct error error; /* why it cannot be opened */
};

struct target {
    uint64_t offset;
    uint32_t log;         /* a value log's writer; 0 for the data log */
    uint32_t first, last; /* of its refs */
    uint32_t count;
};

struct gather {
    struct values_log *log; /* LOGS_OPEN of them, if there are any */
    uint64_t clock;
    int does_check;       /* headers */
    enum fetch_pace pace; /* of reading the last pieces */
    int slow_parts;       /* how many of the last parts came from storage */
    size_t reported_count;
    struct buffer reported; /* uint32_t: writers whose damaged headers have been reported */
    struct buffer positions, values;
    struct buffer table, next, targets; /* uint32_t: a hash table of targets, and the next ref of the same target */
    struct buffer marks, block_keys;    /* of all records of gather_blocks, and of a block's */
    struct buffer away, away_records;   /* struct ref, struct ref_record: of value logs */
    size_t away_count;
    struct buffer pieces, whole;
    struct block block;
};

/* What is read at once. */
struct piece {
    size_t first, end; /* targets */
    struct io_file *file;
    uint64_t *size;            /* of the file */
    const struct error *error; /* of a value log: why it cannot be opened, until another try has opened it */
    uint64_t offset;
    size_t length;
};

/* Reading of refs in one kind of log. */
struct stage {
    struct reader *r;
    struct part_reader *p;
    struct gather *g;
    struct gather_to *to;
    struct ref *ref;
    const struct ref_record *record;
    size_t n, most, used;
    struct buffer *out; /* if size is below 0, with the size of each as uint32_t before it */
    int64_t size;
    int is_values; /* in value logs */
    int is_parted; /* only those parts of blocks are read that are wanted */
    int is_full;   /* the values take more than `most` */
    /* Of gather_blocks: */
    const struct gather_look *look;
    const uint8_t *keys;
    int has_marks;
};

/* ---- Value logs ---- */

int gather_create(struct gather **out, struct error *e)
{
    *out = calloc(1, sizeof **out);
    return *out ? DELTAFS_OK : error_no_memory(e, sizeof **out, "a reader");
}

void gather_forget(struct gather *g)
{
    for (int i = 0; g->log && i < LOGS_OPEN; i++) {
        if (g->log[i].is_open)
            io_file_close(&g->log[i].file, error_ignored());
        g->log[i].is_open = 0;
    }
}

void gather_check_headers(struct gather *g, int does_check)
{
    gather_forget(g); /* those that are open have not been checked */
    g->does_check = does_check;
    g->reported_count = 0;
}

void gather_destroy(struct gather *g)
{
    if (!g)
        return;
    gather_forget(g);
    struct buffer *const buffers[] = {&g->reported, &g->positions,    &g->values, &g->table, &g->next,  &g->targets,
                                      &g->away,     &g->away_records, &g->pieces, &g->whole, &g->marks, &g->block_keys};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        buffer_fini(buffers[i]);
    block_fini(&g->block);
    free(g->log);
    free(g);
}

/* Report a damaged header, once. */
static void gather_check_header(struct stage *s, struct values_log *log)
{
    struct gather *g = s->g;
    struct error e;

    if (!g->does_check || log->error.status != DELTAFS_OK ||
        log_check_header(&log->file, LOG_KIND_VALUES, log->writer, s->r->manifest.uuid, &e) == DELTAFS_OK)
        return;
    for (size_t i = 0; i < g->reported_count; i++)
        if (((const uint32_t *)(const void *)g->reported.bytes)[i] == log->writer)
            return;
    if (buffer_reserve(&g->reported, (g->reported_count + 1) * sizeof log->writer, "verifying", error_ignored()) ==
        DELTAFS_OK)
        ((uint32_t *)(void *)g->reported.bytes)[g->reported_count++] = log->writer;
    s->to->damage(s->to->arg, &e);
}

/* A writer's log, in place of the one that has not been used for longest. */
static struct values_log *gather_log(struct stage *s, uint32_t writer)
{
    struct values_log *log = s->g->log;
    char path[PATH_ROOM];

    for (struct values_log *l = s->g->log; l < s->g->log + LOGS_OPEN; l++) {
        if (l->is_open && l->writer == writer) {
            log = l;
            break;
        }
        if (log->is_open && (!l->is_open || l->used < log->used))
            log = l;
    }
    int is_known = log->is_open && log->writer == writer;
    log->used = ++s->g->clock;
    if (is_known && log->error.status == DELTAFS_OK)
        return log;
    if (log->is_open)
        io_file_close(&log->file, error_ignored());
    *log = (struct values_log){.is_open = 1, .writer = writer, .used = log->used};
    values_path(path, s->r->path, s->r->manifest.partitions, writer);
    log->error.status = log_open_read(&s->r->io, path, &log->file, &log->size, &log->error);
    if (!is_known)
        gather_check_header(s, log);
    return log;
}

int gather_damaged(const struct reader *r, const struct part_reader *p, const struct ref *ref, const char *what,
                   struct error *e)
{
    char path[PATH_ROOM];

    if (r->manifest.is_local)
        values_path(path, r->path, r->manifest.partitions, ref->place.run);
    return error_damaged(e, r->manifest.is_local ? path : p->data.path, ref->place.at.offset, "%s", what);
}

/* ---- Blocks ---- */

/* Copy out a ref's wanted values, which are in the block that is open. */
static int gather_take_ref(struct stage *s, struct ref *ref, struct error *e)
{
    size_t tag = s->is_values && s->r->manifest.keys == KEYS_U64 ? VALUES_TAG_SIZE : 0, size;
    size_t prefix = s->size < 0 ? sizeof(uint32_t) : 0;
    uint32_t first = ref->place.record, end = first + ref->wanted;
    struct block *b = &s->g->block;
    struct error wrong;

    ref->at = (uint32_t)s->used;
    /* Most of a scan's: values of one size, which are side by side. */
    if (tag == 0 && b->plain && b->value_size > 0 && end <= b->count &&
        s->used + ref->wanted * (size_t)b->value_size <= s->most) {
        size = ref->wanted * (size_t)b->value_size;
        int status = buffer_reserve(s->out, s->used + size, "records", e);
        if (status == DELTAFS_OK)
            memcpy(s->out->bytes + s->used, b->plain + first * (size_t)b->value_size, size);
        s->used += size;
        return status;
    }
    for (uint32_t i = first; i < end; i++) {
        const uint8_t *value = i < b->count ? block_value(b, i, &size) : NULL;
        if (!value || size < tag || (tag && *value != ref->tag)) {
            ref->is_bad = 1;
            gather_damaged(s->r, s->p, ref, "a record there is not of the key that leads to it", &wrong);
            s->to->damage(s->to->arg, &wrong);
            return DELTAFS_OK;
        }
        size -= tag;
        s->is_full = s->used + size > s->most && s->n > 1;
        if (s->is_full)
            return DELTAFS_OK;
        int status = buffer_reserve(s->out, s->used + prefix + size + 1, "records", e);
        if (status != DELTAFS_OK)
            return status;
        if (prefix > 0)
            put_u32(s->out->bytes + s->used, (uint32_t)size);
        copy_short(s->out->bytes + s->used + prefix, value + tag, size);
        s->used += prefix + size;
    }
    return DELTAFS_OK;
}

/* The keys of the block's records, where they are known. */
static int gather_block_keys(struct stage *s, const struct target *t, const uint8_t **out, struct error *e)
{
    struct gather *g = s->g;
    const uint32_t *next = (const uint32_t *)(const void *)g->next.bytes;
    size_t n = g->block.count * sizeof(uint64_t);
    int status = buffer_reserve(&g->block_keys, n, "keys", e);

    *out = NULL;
    if (status != DELTAFS_OK || !s->keys)
        return status;
    memset(g->block_keys.bytes, 0, n);
    for (uint32_t i = t->first, left = t->count; left > 0; left--, i = next[i])
        memcpy(g->block_keys.bytes + s->ref[i].place.record * sizeof(uint64_t),
               s->keys + s->ref[i].at * sizeof(uint64_t), s->ref[i].wanted * sizeof(uint64_t));
    *out = g->block_keys.bytes;
    return DELTAFS_OK;
}

/* Let the block that is open be looked at, and note the marks. */
static int gather_look(struct stage *s, const struct target *t, struct error *e)
{
    const uint32_t *next = (const uint32_t *)(const void *)s->g->next.bytes, *marks = NULL;
    uint32_t *out = (uint32_t *)(void *)s->g->marks.bytes;
    struct block *b = &s->g->block;
    const uint8_t *keys;

    for (uint32_t i = t->first, left = t->count; left > 0; left--, i = next[i])
        if (s->ref[i].place.record > b->count || s->ref[i].wanted > b->count - s->ref[i].place.record)
            return gather_damaged(s->r, s->p, &s->ref[i], "a record there is not of the key that leads to it", e);
    int status = gather_block_keys(s, t, &keys, e);
    if (status == DELTAFS_OK)
        status = s->look->look(s->look->arg, b, keys, &marks, e);
    if (marks && !s->has_marks)
        memset(out, 0, s->n * sizeof *out);
    s->has_marks |= marks != NULL;
    for (uint32_t i = t->first, left = t->count; left > 0 && status == DELTAFS_OK; left--, i = next[i]) {
        const struct ref *ref = &s->ref[i];
        if (marks)
            memcpy(out + ref->at, marks + ref->place.record, ref->wanted * sizeof *out);
    }
    return status;
}

/* Read what is wanted of a block of a data log. */
static int gather_read_parts(const struct stage *s, struct io_file *file, const struct leaf_block *at,
                             const struct block_of *of, const uint8_t **bytes, size_t *n, struct error *e)
{
    struct buffer *whole = &s->g->whole;
    struct block_part part[STRIPS_COUNT_MAX];
    uint32_t parts = 0;
    size_t head = block_head(of);
    int status = buffer_reserve(whole, at->length, "a block", e);

    if (status == DELTAFS_OK)
        status = io_file_read(file, at->offset, whole->bytes, head < at->length ? head : at->length, e);
    if (status == DELTAFS_OK && head < at->length)
        parts = block_parts(whole->bytes, at->length, of, part);
    for (uint32_t i = 0; i < parts && status == DELTAFS_OK; i++)
        status = io_file_read(file, at->offset + part[i].at, whole->bytes + part[i].at, part[i].length, e);
    *bytes = whole->bytes;
    *n = at->length;
    return status;
}

/* Read all of a block that was not read, or not all of it. */
static int gather_read_whole(struct stage *s, struct io_file *file, const struct leaf_block *at, const uint8_t **bytes,
                             size_t *n, struct error *e)
{
    struct buffer *whole = &s->g->whole;
    int status = DELTAFS_OK;

    *n = at->length;
    if (s->is_values) {
        status = buffer_reserve(whole, BLOCK_HEADER_SIZE, "a block", e);
        if (status == DELTAFS_OK)
            status = io_file_read(file, at->offset, whole->bytes, BLOCK_HEADER_SIZE, e);
        if (status != DELTAFS_OK)
            return status;
        *n = block_values_length(whole->bytes);
        if (*n == 0)
            return error_damaged(e, file->path, at->offset, "there is no block of values");
    }
    status = buffer_reserve(whole, *n, "a block", e);
    *bytes = whole->bytes;
    return status == DELTAFS_OK ? io_file_read(file, at->offset, whole->bytes, *n, e) : status;
}

static int gather_try_block(struct stage *s, const struct piece *p, const struct ref *ref, const uint8_t *bytes,
                            size_t n, struct error *e)
{
    const struct manifest *m = &s->r->manifest;
    const struct leaf_place *place = &ref->place;
    uint64_t offset = place->at.offset;
    size_t least = s->is_values ? BLOCK_HEADER_SIZE : place->at.length;
    const struct block_of of = {.value_size =
                                    s->is_values ? values_stored_size(m->keys, m->value_size) : manifest_stored_size(m),
                                .strips = &m->strips,
                                .wanted = s->r->wanted};
    int status = DELTAFS_OK;

    if (offset > *p->size || *p->size - offset < least)
        return error_damaged(e, p->file->path, offset, "the file, of %llu bytes, ends before a block of %zu",
                             (unsigned long long)*p->size, least);
    if (n < least && s->is_parted)
        status = gather_read_parts(s, p->file, &place->at, &of, &bytes, &n, e);
    else if (n < least || (s->is_values && block_values_length(bytes) > n))
        status = gather_read_whole(s, p->file, &place->at, &bytes, &n, e);
    if (status != DELTAFS_OK)
        return status;
    struct block_id id = s->is_values ? values_block_id(place->run, ref->epoch, offset)
                                      : (struct block_id){s->p->partition, ref->epoch, place->run, place->block, 0};
    return block_decode(&s->g->block, bytes, s->is_values ? n : least, &id, s->p->index.seed, &of, place->at.count,
                        p->file->path, offset, e);
}

/* Decode a block of which `n` bytes, maybe none, were read. */
static int gather_open_block(struct stage *s, const struct piece *p, const struct ref *ref, const uint8_t *bytes,
                             size_t n, struct error *e)
{
    unsigned waited = 0;
    int status;

    if (p->error && p->error->status != DELTAFS_OK) {
        *e = *p->error;
        return e->status;
    }
    while ((status = gather_try_block(s, p, ref, bytes, n, e)) == DELTAFS_ERR_DAMAGED &&
           io_file_wait(p->file, &waited) && io_file_size(p->file, p->size, error_ignored()) == DELTAFS_OK)
        n = 0;
    return status;
}

/* The refs of a target in a piece that was read, or could not be. */
static int gather_take_target(struct stage *s, const struct piece *p, const struct target *t, const struct fetch *f,
                              struct error *e)
{
    const uint32_t *next = (const uint32_t *)(const void *)s->g->next.bytes;
    size_t skip = (size_t)(t->offset - p->offset), n = f && !f->is_bad && skip < f->length ? f->length - skip : 0;
    struct error wrong;
    int status = gather_open_block(s, p, &s->ref[t->first], n > 0 ? f->bytes + skip : NULL, n, &wrong);
    uint64_t wanted = 0;

    for (uint32_t i = t->first, left = t->count; left > 0; left--, i = next[i])
        wanted += s->ref[i].wanted;
    if (status == DELTAFS_OK && s->look)
        status = gather_look(s, t, &wrong);
    else if (status == DELTAFS_OK && wanted > s->g->block.count / JOIN_SHARE)
        status = block_join(&s->g->block, s->r->wanted, &wrong);
    if (status == DELTAFS_OK && s->look)
        return status;
    if (status == DELTAFS_OK) {
        for (uint32_t i = t->first, left = t->count; left > 0 && status == DELTAFS_OK && !s->is_full;
             left--, i = next[i])
            status = gather_take_ref(s, &s->ref[i], e);
        return status;
    }
    if (status == DELTAFS_ERR_MEMORY || status == DELTAFS_ERR_CANCELLED) {
        *e = wrong;
        return status;
    }
    for (uint32_t i = t->first, left = t->count; left > 0; left--, i = next[i])
        s->ref[i].is_bad = 1;
    s->to->damage(s->to->arg, &wrong);
    return DELTAFS_OK;
}

/* ---- Pieces ---- */

/* The next piece, from target `first` of `count` on. */
static struct piece gather_cut_piece(struct stage *s, const struct target *t, size_t count, size_t first, size_t most)
{
    struct piece p = {
        .first = first, .end = first, .file = &s->p->data, .size = &s->p->data_size, .offset = t[first].offset};
    uint64_t end = p.offset;

    if (s->is_values) {
        struct values_log *log = gather_log(s, t[first].log);
        p.file = &log->file;
        p.size = &log->size;
        p.error = &log->error;
    }
    for (; p.end < count && t[p.end].log == t[first].log; p.end++) {
        uint64_t offset = t[p.end].offset, length = s->ref[t[p.end].first].place.at.length;
        uint64_t gap = s->is_values ? PIECE_GAP * length : 0;
        if (offset > *p.size || (p.end > first && (offset > end + gap || offset - p.offset > most)))
            break;
        end = offset + length > end ? offset + length : end;
    }
    p.end += p.end == first; /* it lies behind the file's end */
    end = end < *p.size ? end : *p.size;
    int is_open = !p.error || p.error->status == DELTAFS_OK;
    p.length = is_open && end > p.offset ? (size_t)(end - p.offset) : 0;
    return p;
}

/* Read some pieces at once. */
static int gather_take_pieces(struct stage *s, const struct target *t, const struct piece *pieces, size_t count,
                              size_t total, struct error *e)
{
    struct fetch fetch[PIECES];
    size_t reads = 0;
    int status = buffer_reserve(&s->g->pieces, total + 1, "reading", e);

    if (status != DELTAFS_OK)
        return status;
    uint8_t *at = s->g->pieces.bytes;
    for (size_t i = 0; i < count; at += pieces[i++].length)
        if (pieces[i].length > 0)
            fetch[reads++] = (struct fetch){
                .file = pieces[i].file, .offset = pieces[i].offset, .length = pieces[i].length, .bytes = at};
    s->g->pace = fetch_all(s->r->team, fetch, reads, s->to->is_slow ? FETCH_SLOW : s->g->pace);
    reads = 0;
    for (size_t i = 0; i < count; i++) {
        const struct fetch *f = pieces[i].length > 0 ? &fetch[reads++] : NULL;
        for (size_t k = pieces[i].first; k < pieces[i].end && status == DELTAFS_OK && !s->is_full; k++)
            status = gather_take_target(s, &pieces[i], &t[k], f, e);
    }
    return status;
}

/* ---- Targets ---- */

static int target_compare(const void *a, const void *b)
{
    const struct target *x = a, *y = b;

    if (x->log != y->log)
        return x->log < y->log ? -1 : 1;
    return compare_two(x->offset, y->offset, x->first, y->first);
}

/* Whether both say the same of a block; on damage they may agree on its offset alone. */
static int ref_is_beside(const struct ref *a, const struct ref *b)
{
    return a->epoch == b->epoch && a->place.run == b->place.run && a->place.block == b->place.block &&
           a->place.at.offset == b->place.at.offset && a->place.at.length == b->place.at.length &&
           a->place.at.count == b->place.at.count;
}

/* Count the records of each ref; *from to *end - 1 get those that have any. */
static void gather_count(struct stage *s, uint32_t *from, uint32_t *end)
{
    *from = UINT32_MAX;
    *end = 0;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t ref = s->record[i].ref;
        *from = ref < *from ? ref : *from;
        *end = ref >= *end ? ref + 1 : *end;
    }
    for (uint32_t i = *from; i < *end; i++)
        s->ref[i].wanted = 0;
    for (size_t i = 0; i < s->n; i++)
        s->ref[s->record[i].ref].wanted++;
}

/* Find the targets of the refs that are not bad, sorted. */
static int gather_targets(struct stage *s, uint32_t from, uint32_t end, size_t *count, struct error *e)
{
    struct gather *g = s->g;
    size_t size = 2, refs = end > from ? end - from : 0;

    while (size < 2 * refs)
        size *= 2;
    int status = buffer_reserve(&g->table, size * sizeof(uint32_t), "reading", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&g->next, end * sizeof(uint32_t), "reading", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&g->targets, refs * sizeof(struct target), "reading", e);
    if (status != DELTAFS_OK)
        return status;
    uint32_t *table = (uint32_t *)(void *)g->table.bytes, *next = (uint32_t *)(void *)g->next.bytes;
    struct target *target = (struct target *)(void *)g->targets.bytes;
    memset(table, 0, size * sizeof *table);
    *count = 0;
    for (uint32_t i = from, first = 0; i < end; i++) {
        struct ref *ref = &s->ref[i];
        ref->at = first; /* for whole blocks */
        first += ref->wanted;
        if (ref->is_bad || ref->wanted == 0)
            continue;
        uint32_t log = s->is_values ? ref->place.run : 0;
        size_t at = hash_key(ref->place.at.offset ^ (uint64_t)log << 44) & (size - 1);
        while (table[at] > 0 && !ref_is_beside(&s->ref[target[table[at] - 1].first], ref))
            at = (at + 1) & (size - 1);
        if (table[at] == 0) {
            target[(*count)++] = (struct target){ref->place.at.offset, log, i, i, 1};
            table[at] = (uint32_t)*count;
            continue;
        }
        struct target *t = &target[table[at] - 1];
        next[t->last] = i;
        t->last = i;
        t->count++;
    }
    if (*count > 1)
        qsort(target, *count, sizeof *target, target_compare);
    return DELTAFS_OK;
}

/* Whether reading all of a block takes longer than reading a part after the other: while reads are quick, and if most
 * of the strips are not wanted. */
static int gather_is_parted(const struct stage *s)
{
    const struct strips *strips = &s->r->manifest.strips;
    const uint8_t *wanted = s->r->wanted;
    size_t all = 0, bytes = 0;

    if (!wanted || s->is_values || s->look || s->g->pace == FETCH_SLOW)
        return 0;
    for (uint32_t i = 0; i < strips->count; i++) {
        bytes += memchr(wanted + all, 1, strips->bytes[i]) ? strips->bytes[i] : 0;
        all += strips->bytes[i];
    }
    return bytes * PARTS_SHARE <= all && all > 0;
}

/* Take a target of which nothing was read; *now is the time. */
static int gather_take_parted(struct stage *s, const struct target *t, uint64_t *now, struct error *e)
{
    const struct piece piece = {.file = &s->p->data, .size = &s->p->data_size, .offset = t->offset};
    uint64_t before = *now;
    int status = gather_take_target(s, &piece, t, NULL, e);

    *now = thread_clock();
    s->g->slow_parts = *now - before > PARTS_SLOW ? s->g->slow_parts + 1 : 0;
    s->g->pace = s->g->slow_parts == PARTS_TRIED ? FETCH_SLOW : FETCH_QUICK;
    s->g->slow_parts %= PARTS_TRIED;
    return status;
}

/* Read the targets; s->is_full is set if they take too much. */
static int gather_take_targets(struct stage *s, size_t targets, struct error *e)
{
    struct piece pieces[PIECES];
    const struct target *t = (const struct target *)(const void *)s->g->targets.bytes;
    int status = DELTAFS_OK;

    int is_parted = gather_is_parted(s);
    uint64_t now = is_parted ? thread_clock() : 0;
    for (size_t at = 0; status == DELTAFS_OK && at < targets && !s->is_full;) {
        s->is_parted = is_parted && s->g->pace != FETCH_SLOW;
        if (s->is_parted) {
            status = gather_take_parted(s, &t[at++], &now, e);
            continue;
        }
        size_t count = 0, total = 0, most = s->g->pace == FETCH_SLOW ? PIECES_MAX : PIECES_NEAR;
        for (; at < targets && count < PIECES && total < most; total += pieces[count++].length) {
            size_t piece = s->to->piece > 0 ? s->to->piece : most < PIECE_MAX ? most : PIECE_MAX;
            pieces[count] = gather_cut_piece(s, t, targets, at, piece);
            at = pieces[count].end;
        }
        status = gather_take_pieces(s, t, pieces, count, total, e);
    }
    return status;
}

static int gather_stage(struct stage *s, struct error *e)
{
    uint32_t from, end;
    size_t targets;

    gather_count(s, &from, &end);
    int status = gather_targets(s, from, end, &targets, e);
    s->used = 0;
    s->is_full = 0;
    return status == DELTAFS_OK ? gather_take_targets(s, targets, e) : status;
}

/* Gather `n` records, and give each. */
static int gather_portions(struct stage *s, struct ref *refs, const struct ref_record *records, size_t n, size_t most,
                           int (*give)(void *, const struct ref *, const struct ref_record *, const uint8_t *, size_t,
                                       struct error *),
                           void *arg, struct error *e)
{
    /* Of values of one size it is known how many are too many; of others, once they have been read. */
    size_t portion = s->size > 0 && n > most / (size_t)s->size ? most / (size_t)s->size : n;
    int status = DELTAFS_OK;

    portion += portion == 0;
    s->ref = refs;
    s->record = records;
    s->most = most;
    for (; n > 0 && status == DELTAFS_OK; s->record += s->n, n -= s->n) {
        s->n = portion < n ? portion : n;
        while ((status = gather_stage(s, e)) == DELTAFS_OK && s->is_full)
            portion = s->n = (s->n + 1) / 2;
        for (size_t i = 0; i < s->n && status == DELTAFS_OK; i++) {
            struct ref *ref = &refs[s->record[i].ref];
            const uint8_t *stored = ref->is_bad ? NULL : s->out->bytes + ref->at;
            size_t size = stored && s->size >= 0 ? (size_t)s->size : 0;
            if (stored && s->size < 0) {
                size = get_u32(stored);
                stored += sizeof(uint32_t);
                ref->at += (uint32_t)sizeof(uint32_t);
            }
            ref->at += (uint32_t)size;
            s->to->blocks += stored && ref->place.record == 0;
            ref->place.record++;
            status = give(arg, ref, &s->record[i], stored, size, e);
        }
    }
    return status;
}

/* What was read of the data log is where the value is. */
static int gather_locate(void *stage, const struct ref *ref, const struct ref_record *record, const uint8_t *stored,
                         size_t size, struct error *e)
{
    struct stage *s = stage;
    struct gather *g = s->g;
    const struct manifest_job *job = manifest_job_of(&s->r->manifest, ref->epoch);
    uint64_t ahead = job->read < READ_MAX ? job->read : READ_MAX;
    struct ref *to = (struct ref *)(void *)g->away.bytes + g->away_count;
    struct position in;

    (void)size;
    ((struct ref_record *)(void *)g->away_records.bytes)[g->away_count] =
        (struct ref_record){record->key, (uint32_t)g->away_count, record->epoch};
    g->away_count++;
    *to = *ref;
    if (!stored)
        return DELTAFS_OK;
    if (position_unpack(job, get_u64(stored), &in) != 0) {
        error_damaged(e, s->p->data.path, ref->place.at.offset,
                      "a record is in the log of a writer that its job had not");
        to->is_bad = 1;
        s->to->damage(s->to->arg, e);
        return DELTAFS_OK;
    }
    to->tag = (uint8_t)hash_key(record->key);
    to->place =
        (struct leaf_place){.at = {in.offset, (uint32_t)(ahead < BLOCK_HEADER_SIZE ? BLOCK_HEADER_SIZE : ahead), 0},
                            .run = in.writer,
                            .record = in.index};
    return DELTAFS_OK;
}

int gather(struct reader *r, struct part_reader *p, struct ref *refs, const struct ref_record *records, size_t n,
           size_t most, struct gather_to *to, struct error *e)
{
    const struct manifest *m = &r->manifest;
    struct gather *g = r->gather;
    struct stage s = {.r = r, .p = p, .g = g, .to = to, .out = &g->positions, .size = manifest_stored_size(m)};

    if (m->is_local) {
        g->log = g->log ? g->log : calloc(LOGS_OPEN, sizeof *g->log);
        if (!g->log)
            return error_no_memory(e, LOGS_OPEN * sizeof *g->log, "reading");
        int status = buffer_reserve(&g->away, n * sizeof *refs, "reading", e);
        if (status == DELTAFS_OK)
            status = buffer_reserve(&g->away_records, n * sizeof *records, "reading", e);
        g->away_count = 0;
        if (status == DELTAFS_OK)
            status = gather_portions(&s, refs, records, n, UINT32_MAX, gather_locate, &s, e);
        if (status != DELTAFS_OK)
            return status;
        refs = (struct ref *)(void *)g->away.bytes;
        records = (const struct ref_record *)(const void *)g->away_records.bytes;
        s.size = m->keys == KEYS_BYTES ? -1 : m->value_size; /* without its tag */
    }
    s.is_values = m->is_local;
    s.out = &g->values;
    return gather_portions(&s, refs, records, n, most, to->give, to->arg, e);
}

int gather_blocks(struct reader *r, struct part_reader *p, struct ref *refs, uint32_t ref_count, size_t n,
                  const uint8_t *keys, const struct gather_look *look, const uint32_t **marks, struct error *e)
{
    struct gather_to to = {.damage = look->damage, .arg = look->arg};
    struct stage s = {.r = r, .p = p, .g = r->gather, .to = &to, .ref = refs, .n = n, .look = look, .keys = keys};
    size_t targets;
    int status = buffer_reserve(&s.g->marks, n * sizeof(uint32_t) + 1, "records", e);

    if (status == DELTAFS_OK)
        status = gather_targets(&s, 0, ref_count, &targets, e);
    if (status != DELTAFS_OK)
        return status;
    status = gather_take_targets(&s, targets, e);
    *marks = s.has_marks ? (const uint32_t *)(const void *)s.g->marks.bytes : NULL;
    return status;
}
