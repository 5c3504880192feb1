/* The merged extent index of a logical file, in memory: which writer's bytes each byte of the file has. A strided run
 * is one entry, however long it is and whatever was written between its pieces. A lookup decides which piece wins and
 * examines only the pieces inside its window.
 *
 * Where pieces overlap, the one with the higher (order, session, writer, position) wins. A truncation to S acts as a
 * hole from S on with its own order; at the same position it comes after the bytes written or extended there. Bytes
 * that were never written are holes. Extents may be added in any order, and between lookups: the answers are the same.
 *
 * How it works: new entries are first kept unsorted. When there are many, or more than a few at a lookup, they are
 * sorted by offset and merged with the sorted arrays ("levels") of similar length. Each level is more than twice as
 * long as the next, so an entry moves O(log n) times. A level is an implicit interval tree: the middle entry of a range
 * is its root and stores the greatest end of the range's entries. A lookup finds the entries that overlap the window in
 * O(log^2 n + their number) and sweeps over the window with them (extent_find.c).
 *
 * When levels are merged, an entry replaces another one that has the same pieces and a lower order. A file that is
 * rewritten in the same way again and again does not grow the map. */
#ifndef DELTAFS_LOGICAL_EXTENT_MAP_H
#define DELTAFS_LOGICAL_EXTENT_MAP_H

#include "logical/format/extents.h"

/* An entry. Memory holds one for each run, so the struct is packed tightly. A truncation or extension has size 0. */
struct map_run {
    uint64_t offset, size, stride, count;
    uint64_t position, position_stride;
    uint64_t order;
    uint32_t session, writer;
    uint64_t reach; /* the greatest end in its subtree */
};

static inline uint64_t map_run_end(const struct map_run *x)
{
    return x->offset + (x->count - 1) * x->stride + x->size;
}

struct map_runs {
    struct map_run *run;
    size_t count, capacity;
};

#define MAP_LEVELS_MAX 64

/* An all-zero struct is an empty map. */
struct extent_map {
    struct memory *memory; /* NULL: not counted */
    struct map_runs fresh; /* not sorted yet */
    struct map_runs level[MAP_LEVELS_MAX];
    unsigned levels;
    struct map_runs cuts;    /* truncations that no other hides, by priority and offset */
    struct map_runs extends; /* extensions that no other hides, by priority */
    struct map_run top;      /* the highest truncation, if has_top */
    int has_top;
    uint64_t size;
    int is_size_known;
    uint64_t order; /* the highest; 0 for an empty map */
};

/* The result of a lookup. */
struct piece {
    uint64_t offset, size;
    uint64_t position; /* in the writer's data log; 0 for a hole */
    uint32_t session, writer;
    int is_hole;
};

struct map_cursor;

/* Owned by the caller and reused by later lookups, which then allocate nothing. All zero at first. */
struct pieces {
    struct piece *piece;
    size_t count, capacity;
    size_t limit;          /* pieces that one lookup returns at most; 0: no limit */
    struct memory *memory; /* NULL: not counted */
    struct map_cursor *cursor;
    size_t cursors, cursor_capacity;
    size_t *heap; /* both heaps, each with room for all cursors */
    size_t heap_capacity;
};

void pieces_fini(struct pieces *p);

/* Add an extent. DELTAFS_ERR_INVALID if it is not valid, DELTAFS_ERR_MEMORY; the map is unchanged then. */
int extent_map_add(struct extent_map *m, const struct extent *x, struct error *e);

/* Find the contents of [from, to): disjoint pieces by offset that cover the range exactly, holes included. Neighbours
 * that are contiguous in both file and log are merged. With a limit, the result may end before `to`. */
int extent_map_find(struct extent_map *m, uint64_t from, uint64_t to, struct pieces *out, struct error *e);

/* Call `fn` for each entry that may have pieces in [from, to), truncations and extensions apart, and for some others.
 * `fn` may do lookups. A status other than DELTAFS_OK ends the loop. */
typedef int (*map_run_fn)(void *arg, const struct map_run *run, struct error *e);
int extent_map_each(struct extent_map *m, uint64_t from, uint64_t to, map_run_fn fn, void *arg, struct error *e);

/* Whether no piece of the entry is hidden, so that none needs a lookup. Costs as much as one lookup. May return 0
 * although no piece is hidden. */
int extent_map_is_on_top(struct extent_map *m, const struct map_run *run);

/* The logical file's size: that of the highest truncation, or the greatest end above it in order. */
uint64_t extent_map_size(struct extent_map *m);
size_t extent_map_count(const struct extent_map *m); /* entries; a run is one */
void extent_map_fini(struct extent_map *m);

/* Compare two pieces: below 0 if `b` wins, above 0 if `a` wins. `a_at`: the position of `a`. */
int map_compare(const struct map_run *a, uint64_t a_at, const struct map_run *b, uint64_t b_at);

#endif
