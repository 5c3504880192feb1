/* What the tests of repair share: directories of two kinds of keys, as jobs leave them, and what repair says of them.
 */
#ifndef UNIT_REPAIR_H
#define UNIT_REPAIR_H

#include "unit_help.h"

#define REPAIR_NAMES 400

/* What deltafs_repair said. */
struct repair_said {
    char text[8192];
    unsigned done, failed, remarks;
};
extern struct repair_said repair_said;

/* Of a group of tests. */
int repair_setup(void **state);

/* A deltafs_repair_fn that fills repair_said. */
void repair_note(int status, const char *message, void *arg);
int repair_run(const char *path, int dry_run, long label);
void repair_check_said(const char *text);
void repair_check_errmsg(const char *text);
/* Sound: nothing is said, and the model's records are there. */
void repair_check(struct model *m, const char *path);
void repair_append(struct model *m, deltafs_dir *d, struct rng *r, uint32_t n);
deltafs_dir *repair_create(const struct model *m, const char *path);
/* A directory of so many epochs of n records each, labelled 1, 2, ..., that was closed. */
void repair_make_closed(struct model *m, const char *path, uint64_t seed, uint64_t epochs, uint32_t n);
/* Epochs, committed but for the last, which is all in the logs: as after the loss of its line. Its label is 30. */
void repair_make_unfinished(struct model *m, const char *path, struct rng *r);
void repair_copy(const char *from, const char *to);
/* Spoil an index log: 0: it is removed, 1: truncated, 2: replaced. */
void repair_damage(const char *index, int how);

#endif
