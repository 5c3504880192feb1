/* The merged index of a logical file, in memory: what stands at each of its bytes. Strided runs stay runs, so a regular
 * pattern of any length is one entry for each writer, whatever else was written between its pieces; who wins is decided
 * at look-up, where only the pieces inside of the window are looked at.
 *
 * Of pieces that overlap the one with the higher (order, session, writer, position) wins. A truncation to S is a hole
 * from S on, in its place in that order; at the same position it is behind what was written or extended there. What
 * nobody wrote is a hole. Extents may be added in any order, and between look-ups: the answers are the same.
 *
 * How it works: new entries are kept as they come. When there are many, or at a look-up more than a few, they are
 * sorted by offset and merged with the sorted arrays ("levels") that are not much longer, so that each level is more
 * than twice as long as the next, and an entry is moved O(log n) times. A level is an implicit balanced tree: the entry
 * in the middle of a range is its root, and knows how far the range's entries reach (an interval tree). A look-up finds
 * the entries that overlap the window in O(log^2 n + their number), and sweeps over the window with them
 * (extent_find.c).
 *
 * An entry that has the very pieces of another one, and a higher order, takes its place when levels are merged; so a
 * file that is written again and again in the same way does not grow. */
#ifndef DELTAFS_CORE_EXTENT_MAP_H
#define DELTAFS_CORE_EXTENT_MAP_H

#include "logical/format/extents.h"

/* An entry; one of each is in memory, so it has no byte too many. Of a truncation or extension the size is 0. */
struct map_run {
    uint64_t offset, size, stride, count;
    uint64_t position, position_stride;
    uint64_t order;
    uint32_t session, writer;
    uint64_t reach; /* the greatest end in its part of the tree */
};

struct map_runs {
    struct map_run *run;
    size_t count, capacity;
};

#define MAP_LEVELS_MAX 64

/* All zero is an empty map. */
struct extent_map {
    struct memory *memory; /* NULL: not counted */
    struct map_runs fresh; /* not sorted yet */
    struct map_runs level[MAP_LEVELS_MAX];
    unsigned levels;
    struct map_runs cuts; /* truncations; when is_cut: by offset, those that a lower and later one hides left out */
    int is_cut;
    struct map_runs extends;
    struct map_run last; /* the highest of all in order; of a run its last piece */
    struct map_run top;  /* the highest truncation, if has_top */
    int has_top;
    uint64_t size;
    int is_size_known;
    uint64_t order;
};

/* What a look-up finds. */
struct piece {
    uint64_t offset, size;
    uint64_t position; /* in the writer's data log; 0 of a hole */
    uint32_t session, writer;
    int is_hole;
};

struct map_cursor;

/* The caller's, used again from look-up to look-up: then nothing is allocated. All zero at first. */
struct pieces {
    struct piece *piece;
    size_t count, capacity;
    size_t limit;          /* of pieces that one look-up finds; 0: there is none */
    struct memory *memory; /* NULL: not counted */
    struct map_cursor *cursor;
    size_t cursors, cursor_capacity;
    size_t *heap; /* two of them, with room for all cursors each */
    size_t heap_capacity;
};

void pieces_fini(struct pieces *p);

/* Take an extent in. DELTAFS_ERR_INVALID if it is not valid, DELTAFS_ERR_MEMORY; then the map is as it was. */
int extent_map_add(struct extent_map *m, const struct extent *x, struct error *e);

/* What stands at [from, to): disjoint pieces in the order of offsets, that cover it exactly, with the holes; neighbours
 * that continue each other in file and log are one. With a limit it may end before `to`, where the last piece ends. */
int extent_map_find(struct extent_map *m, uint64_t from, uint64_t to, struct pieces *out, struct error *e);

/* Hand `fn` the entries of a writer's, each once, as they are now; it may look up. A status other than DELTAFS_OK ends
 * that. */
typedef int (*map_run_fn)(void *arg, const struct map_run *run, struct error *e);
int extent_map_each_of(struct extent_map *m, uint32_t session, uint32_t writer, map_run_fn fn, void *arg,
                       struct error *e);

/* Whether nothing stands over any piece of an entry that is handed out: then none of them need be looked up. It takes
 * as long as one look-up. Not all that are so are told to be. */
int extent_map_is_on_top(const struct extent_map *m, const struct map_run *run);

/* The logical file's size: that of the highest truncation, or the end of what is above it in order. */
uint64_t extent_map_size(struct extent_map *m);
uint64_t extent_map_order(const struct extent_map *m); /* the highest; 0 if it is empty */
size_t extent_map_count(const struct extent_map *m);   /* entries; a run is one */
size_t extent_map_bytes(const struct extent_map *m);   /* of memory */
void extent_map_fini(struct extent_map *m);

/* Of extent_map.c and extent_find.c only. */

/* The order of two pieces: below 0 if `a` is beaten, above if it wins. `a_at`: its position. */
int map_compare(const struct map_run *a, uint64_t a_at, const struct map_run *b, uint64_t b_at);
/* Sort what has to be sorted before a look-up. */
int map_settle(struct extent_map *m, struct error *e);

#endif
