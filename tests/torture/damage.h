/* The campaign against damaged containers: what the parts of torture-damage share. */
#ifndef DELTAFS_DAMAGE_H
#define DELTAFS_DAMAGE_H

#include <deltafs/deltafs.h>
#include "mem_io.h"

#define DAMAGE_PATH "/c" /* of the container being read */

/* Seeded random numbers (splitmix64). */
struct damage_rng {
    uint64_t state;
};
uint64_t damage_next(struct damage_rng *r);
uint64_t damage_below(struct damage_rng *r, uint64_t n); /* 0 .. n - 1 */

/* ---- Containers ---- */

#define DAMAGE_FILES_MAX  12
#define DAMAGE_STATES_MAX 8

/* The files of a container at one moment. */
struct damage_state {
    size_t count;
    struct damage_file {
        char name[MEM_NAME_MAX];
        uint8_t *bytes;
        size_t n;
    } file[DAMAGE_FILES_MAX];
};

struct damage_record {
    uint64_t key, epoch;
    void *value, *name;
    size_t size, name_size; /* 0: the key is a number */
    size_t order;           /* among all, in a scan */
};

struct damage_container {
    char name[64];
    int is_bytes;
    uint32_t partitions;
    struct damage_state now;
    struct damage_state earlier[DAMAGE_STATES_MAX]; /* at the ends of epochs */
    size_t earlier_count;
    struct damage_record *record; /* all there are, by key and then in order */
    size_t records, capacity;
    uint64_t *label; /* of each epoch */
    size_t epochs;
};

/* All containers: those that are made here, and the golden ones in `corpus` (NULL: none). */
size_t damage_containers(struct damage_container **out, const char *corpus);
void damage_containers_free(struct damage_container *c, size_t n);

const struct damage_file *damage_file_of(const struct damage_state *s, const char *name);
/* Let the files in memory be these, under DAMAGE_PATH. */
void damage_show(struct mem_io *m, const struct damage_state *s);

/* ---- Damage ---- */

#define DAMAGE_MANIFEST (-1)
#define DAMAGE_VALUES   (-2) /* a value log */

/* What was done to which file. */
struct damage {
    const char *what;
    const char *file;   /* in the container */
    int64_t partition;  /* whose log it is, or: */
    int is_foreign;     /* a manifest of another container: logs may be named, too */
    size_t at, n;       /* for messages */
    int is_committed;   /* the bytes of a log that were changed, or are gone, are those of a committed epoch */
    size_t epochs;      /* that the manifest still has, in a way that no reader can tell from a right one */
    uint64_t new_label; /* of an epoch that was added since; 0: none was */
    char text[MEM_NAME_MAX + 128];
};

/* Damage the container in memory, which is containers[which]. */
void damage_do(struct mem_io *m, struct damage_rng *r, const struct damage_container *containers, size_t count,
               size_t which, struct damage *out);

/* ---- Reading ---- */

struct damage_verdict {
    unsigned lost, wrong;
    char text[2048]; /* of the first */
};

/* Read the damaged container in all ways, and compare. */
void damage_check(const struct damage_container *c, const struct damage *d, struct damage_rng *r,
                  struct damage_verdict *out);

/* Repair the damaged container, or reopen it and add an epoch: an error names what is damaged, or what was added is
 * there. Nothing else may change: damage_check, again, says whether. */
void damage_mend(const struct damage_container *c, struct damage *d, struct damage_rng *r, struct damage_verdict *out);

/* Whether a message names the damaged file, and the place in it or that it is not there. */
int damage_is_named(const struct damage *d, const char *message);
__attribute__((format(printf, 3, 4))) void damage_blame(struct damage_verdict *v, unsigned *count, const char *fmt,
                                                        ...);

/* End the program: it cannot do its work. */
__attribute__((format(printf, 1, 2), noreturn)) void damage_die(const char *fmt, ...);

#endif
