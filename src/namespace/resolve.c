#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "namespace/resolve.h"

int resolver_is_needed(const struct layers *below)
{
    for (size_t i = 0; i < below->count; i++)
        if (below->layer[i].policy == DELTAFS_SNAPSHOT_FIRST || below->layer[i].policy == DELTAFS_SNAPSHOT_LAST)
            return 1;
    return 0;
}

/* ---- Limits ---- */

static size_t table_place(const struct tables *t, uint64_t number)
{
    size_t i = 0;

    while (t->table[i].number != number)
        i++;
    return i;
}

static void raise_limits(struct resolver *r, size_t layer, const uint64_t *by)
{
    uint64_t *seen = r->seen + layer * r->tables;

    for (size_t i = 0; i < r->tables; i++)
        if (by[i] > seen[i])
            seen[i] = by[i];
}

int resolver_init(struct resolver *r, const struct layers *below, const struct tables *tables, struct error *e)
{
    size_t layers = below->count + 1, n = layers * tables->count;

    *r = (struct resolver){.layers = layers, .tables = tables->count, .below = below};
    r->own = calloc(n + 1, sizeof *r->own);
    r->seen = calloc(n + 1, sizeof *r->seen);
    if (!r->own || !r->seen)
        return error_no_memory(e, n * sizeof *r->own, "layers");
    for (size_t i = 0; i < below->count; i++) {
        const struct layer *layer = &below->layer[i];
        for (size_t k = 0; k < layer->tables; k++)
            r->own[i * r->tables + table_place(tables, layer->table[k].number)] = layer->table[k].limit;
        raise_limits(r, i, r->own + i * r->tables);
        for (size_t k = 0; k < layer->inputs; k++)
            raise_limits(r, i, r->seen + layer->input[k] * r->tables);
    }
    for (size_t k = 0; k < r->tables; k++)
        if (tables->table[k].epochs.last == UINT64_MAX)
            r->own[below->count * r->tables + k] = UINT64_MAX;
    return DELTAFS_OK;
}

void resolver_fini(struct resolver *r)
{
    free(r->own);
    free(r->seen);
    free(r->state);
    free(r->best);
    free(r->left);
    buffer_fini(&r->targets);
    *r = (struct resolver){0};
}

/* ---- States ---- */

void resolver_clear(struct resolver *r)
{
    r->states = r->entries = r->targets_size = 0;
    r->is_conflict = 0;
}

int resolver_take(void *arg, size_t table, const struct entry *entry, struct error *e)
{
    struct resolver *r = arg;
    struct state s = {.parent = entry->parent,
                      .inode = entry->inode,
                      .table = table,
                      .entry = r->entries,
                      .target = r->targets_size,
                      .target_size = entry->target_size};
    int status = memory_extend(NULL, &r->state, r->states, &r->room, sizeof *r->state, "states of a name", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&r->targets, r->targets_size + s.target_size, "states of a name", e);
    if (status != DELTAFS_OK)
        return status;
    if (s.target_size > 0)
        memcpy(r->targets.bytes + r->targets_size, entry->target, s.target_size);
    r->targets_size += s.target_size;
    for (size_t i = r->states; i > 0 && s.entry == r->entries; i--)
        if (id_is_same(&r->state[i - 1].inode.id, &s.inode.id) && id_is_same(&r->state[i - 1].parent, &s.parent))
            s.entry = r->state[i - 1].entry;
    r->entries += s.entry == r->entries;
    r->state[r->states++] = s;
    return DELTAFS_OK;
}

/* ---- Choosing ---- */

/* What becomes of an input of a merge. */
enum left {
    LEFT_OUT,     /* another has gone on from it */
    LEFT_REMOVED, /* it has removed what no other has */
    LEFT_IN
};

static size_t *best_of(const struct resolver *r, size_t layer)
{
    return r->best + layer * r->entries;
}

static const struct inode *inode_of(const struct resolver *r, size_t best)
{
    return &r->state[best - 1].inode;
}

/* Take the newer of what two layers have of each entry. */
static void unite(const struct resolver *r, size_t *to, const size_t *from)
{
    for (size_t k = 0; k < r->entries; k++)
        if (from[k] != 0 && (to[k] == 0 || inode_of(r, from[k])->stamp > inode_of(r, to[k])->stamp))
            to[k] = from[k];
}

/* Whether a layer has seen a state, in any of the tables that have it: a compaction copies states. */
static int has_seen_state(const struct resolver *r, size_t layer, const struct state *s)
{
    const uint64_t *seen = r->seen + layer * r->tables;

    for (const struct state *t = r->state; t < r->state + r->states; t++)
        if (t->entry == s->entry && t->inode.stamp == s->inode.stamp && t->inode.stamp <= seen[t->table])
            return 1;
    return 0;
}

/* Whether a layer has seen all that another has of the name. */
static int has_seen(const struct resolver *r, size_t layer, size_t other)
{
    const size_t *best = best_of(r, other);

    for (size_t k = 0; k < r->entries; k++)
        if (best[k] != 0 && !has_seen_state(r, layer, &r->state[best[k] - 1]))
            return 0;
    return 1;
}

/* Whether two layers have the same of the name. */
static int has_same(const struct resolver *r, const size_t *a, const size_t *b)
{
    for (size_t k = 0; k < r->entries; k++)
        if ((a[k] == 0) != (b[k] == 0) || (a[k] != 0 && inode_of(r, a[k])->stamp != inode_of(r, b[k])->stamp))
            return 0;
    return 1;
}

/* Whether an input of a merge has nothing that another, which stays, has not. */
static int is_superseded(const struct resolver *r, const struct layer *merge, size_t i)
{
    const size_t *best = best_of(r, merge->input[i]);

    for (size_t k = 0; k < merge->inputs; k++) {
        const size_t *other = best_of(r, merge->input[k]);
        if (k == i || !has_seen(r, merge->input[k], merge->input[i]))
            continue;
        if (has_same(r, best, other) ? k < i : !has_seen(r, merge->input[i], merge->input[k]))
            return 1;
    }
    return 0;
}

static struct inode shown_by(const struct resolver *r, size_t layer)
{
    const size_t *best = best_of(r, layer);
    struct inode shown = {.type = ENTRY_REMOVED};

    for (size_t k = 0; k < r->entries; k++)
        if (best[k] != 0)
            inode_show(&shown, inode_of(r, best[k]));
    return shown;
}

/* Whether an input has removed what another still has. */
static int has_removed(const struct resolver *r, const struct layer *merge, size_t i)
{
    const size_t *best = best_of(r, merge->input[i]);

    for (size_t k = 0; k < merge->inputs; k++) {
        const size_t *other = best_of(r, merge->input[k]);
        for (size_t n = 0; n < r->entries && r->left[k] != LEFT_OUT; n++)
            if (best[n] != 0 && other[n] != 0 && inode_of(r, other[n])->type != ENTRY_REMOVED)
                return 1;
    }
    return 0;
}

/* Decide about all inputs; returns how many are LEFT_IN, and whether all of these show a folder. */
static size_t leave_inputs(struct resolver *r, const struct layer *merge, int *are_folders)
{
    size_t left = 0;

    for (size_t i = 0; i < merge->inputs; i++) {
        r->left[i] = is_superseded(r, merge, i) ? LEFT_OUT : LEFT_IN;
        left += r->left[i] == LEFT_IN;
    }
    /* Of inputs that have decided differently on the same, each supersedes the other. */
    for (size_t i = 0; i < merge->inputs && left == 0; i++)
        r->left[i] = LEFT_IN;
    *are_folders = 1;
    left = 0;
    for (size_t i = 0; i < merge->inputs; i++) {
        int type = shown_by(r, merge->input[i]).type;
        if (r->left[i] == LEFT_IN && type == ENTRY_REMOVED && !has_removed(r, merge, i))
            r->left[i] = LEFT_REMOVED;
        *are_folders &= r->left[i] != LEFT_IN || type == ENTRY_FOLDER;
        left += r->left[i] == LEFT_IN;
    }
    return left;
}

static void choose_in_merge(struct resolver *r, size_t number)
{
    const struct layer *merge = &r->below->layer[number];
    int are_folders;
    size_t left = leave_inputs(r, merge, &are_folders), first = 0, last = left;

    r->is_conflict = left > 1 && !are_folders;
    if (r->is_conflict && merge->policy == DELTAFS_SNAPSHOT_FIRST)
        last = 1;
    if (r->is_conflict && merge->policy == DELTAFS_SNAPSHOT_LAST)
        first = left - 1;
    for (size_t i = 0, n = 0; i < merge->inputs; i++) {
        int is_chosen = r->left[i] == LEFT_IN ? n >= first && n < last : r->left[i] == LEFT_REMOVED;
        n += r->left[i] == LEFT_IN;
        if (is_chosen)
            unite(r, best_of(r, number), best_of(r, merge->input[i]));
    }
}

/* What a layer has: what is below it, and its own newer states. */
static void choose_in_layer(struct resolver *r, size_t number)
{
    size_t *best = best_of(r, number), top = r->layers - 1;
    const uint64_t *own = r->own + number * r->tables;
    const struct layer *layer = number < top ? &r->below->layer[number] : NULL;

    if (layer && !layer->path)
        choose_in_merge(r, number);
    else if (layer && layer->inputs > 0)
        unite(r, best, best_of(r, layer->input[0]));
    else if (!layer && top > 0)
        unite(r, best, best_of(r, top - 1));
    for (size_t i = 0; i < r->states; i++) {
        const struct state *s = &r->state[i];
        size_t *entry = &best[s->entry];
        if (s->inode.stamp <= own[s->table] && (*entry == 0 || s->inode.stamp >= inode_of(r, *entry)->stamp))
            *entry = i + 1;
    }
}

static int reserve(struct resolver *r, struct error *e)
{
    size_t n = r->layers * r->entries, inputs = 0;

    for (size_t i = 0; i < r->below->count; i++)
        inputs = r->below->layer[i].inputs > inputs ? r->below->layer[i].inputs : inputs;
    if (n > r->best_room) {
        free(r->best);
        r->best = malloc(n * sizeof *r->best);
        r->best_room = r->best ? n : 0;
    }
    if (inputs > r->left_room) {
        free(r->left);
        r->left = malloc(inputs * sizeof *r->left);
        r->left_room = r->left ? inputs : 0;
    }
    if (r->best_room < n || r->left_room < inputs)
        return error_no_memory(e, n * sizeof *r->best, "states of a name");
    memset(r->best, 0, n * sizeof *r->best);
    return DELTAFS_OK;
}

int resolver_choose(struct resolver *r, struct error *e)
{
    int status = r->states > 0 ? reserve(r, e) : DELTAFS_OK;

    if (status != DELTAFS_OK || r->states == 0)
        return status;
    for (size_t i = 0; i < r->layers; i++)
        choose_in_layer(r, i);
    const size_t *best = best_of(r, r->layers - 1);
    for (size_t k = 0; k < r->entries; k++)
        if (best[k] != 0)
            r->state[best[k] - 1].is_chosen = 1;
    return DELTAFS_OK;
}
