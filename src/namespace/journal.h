/* The journal of a table: what its writer has committed, and what is in no epoch of the table, or of its data, yet.
 *
 * A commit of a few names, and of the bytes of small files, appends one group to the journal and syncs that. When the
 * journal is full, all that it has becomes an epoch of the data and one of the table, with the label of the last group,
 * and the journal is removed. So it does when the writer closes the namespace, unless it is little: then the next
 * writer of the table goes on with it. Otherwise a thousand commands that change one name each would leave a thousand
 * epochs, and each of them costs every lookup a read. A group whose label is not above that of the table's last epoch
 * is in the table, so whoever finds a journal that should have been removed leaves it out. A reader reads the journal
 * first and the table's MANIFEST then: so it misses no commit that was there as it began.
 *
 * All of it is in memory. Groups are little: JOURNAL_GROUP_MAX bytes; a commit with more is an epoch at once. */
#ifndef DELTAFS_NAMESPACE_JOURNAL_H
#define DELTAFS_NAMESPACE_JOURNAL_H

#include "base/buffer.h"
#include "io/io.h"
#include "namespace/entry_format.h"

#define JOURNAL_GROUP_MAX (256u << 10)
#define JOURNAL_FULL      (2u << 20)
#define JOURNAL_LEFT                                                                                                   \
    (256u << 10) /* at most, by a writer that closes the namespace: readers read it with each opening */

struct journal_record {
    uint64_t key;
    uint64_t label; /* of its group */
    uint32_t at;    /* in the bytes */
    uint32_t size;
    uint32_t next; /* in its slot, plus 1; 0: none */
    uint8_t kind;  /* JOURNAL_ENTRY or JOURNAL_CHUNK */
};

struct journal {
    uint64_t table;
    uint64_t last_label;       /* of the last group that counts; 0: there is none */
    struct io_attributes seen; /* of the file, as it was read; all zero: there was none */
    struct buffer bytes;       /* as in the file */
    size_t used, end;          /* bytes, with and without the group that is not committed */
    struct journal_record *record;
    size_t records, room;
    size_t committed;    /* records in groups */
    size_t sorted;       /* so many, the first, are in order */
    uint32_t *slot;      /* of records by their key: the last, plus 1 */
    size_t slotted;      /* so many, the first, are in their slots */
    struct io_file file; /* path NULL: not open, as by most readers */
    /* Of a writer. */
    int is_full; /* the group that is not committed has become too large, and is left out */
};

/* Read what is committed. That there is no file is no error. DELTAFS_ERR_DAMAGED: a group is damaged, and another one
 * behind it is not. journal_fini in any case. */
int journal_read(struct journal *j, struct io *io, const char *path, uint64_t table, struct error *e);
/* The same of what was appended to the file since; the new records are behind those that there are. With `keeps`, the
 * file stays open for the next time. Returns whether it could be done; if not, nothing has changed, and the file is to
 * be read as a whole: it may be another one. */
int journal_extend(struct journal *j, struct io *io, const char *path, int keeps);
/* The same of `n` bytes in memory. */
int journal_parse(struct journal *j, const char *path, const uint8_t *bytes, size_t n, uint64_t table, struct error *e);
/* Of damaged ones, the groups that can be read, in j->bytes up to j->end, as a file without the damage; *lost: bytes
 * that are left out. */
int journal_salvage(struct journal *j, const char *path, const uint8_t *bytes, size_t n, uint64_t table, size_t *lost,
                    struct error *e);
void journal_fini(struct journal *j);
/* Leave out groups up to this label. */
void journal_drop(struct journal *j, uint64_t label);

/* A committed record of a kind with this key, and, with `before`, the one that comes after that. NULL: there is no
 * more. Valid until more is put or committed, or journal_find is called. */
const struct journal_record *journal_get(struct journal *j, int kind, uint64_t key,
                                         const struct journal_record *before);
/* The committed records of a kind with keys from `low` to `high`, in order of keys and labels: the first, and *count.
 * It takes longer than journal_get. Valid until more is put or committed. */
const struct journal_record *journal_find(struct journal *j, int kind, uint64_t low, uint64_t high, size_t *count);

static inline const uint8_t *journal_bytes(const struct journal *j, const struct journal_record *r)
{
    return j->bytes.bytes + r->at;
}

/* ---- Of a writer ---- */

/* Put a record into the group that is not committed. */
int journal_put(struct journal *j, int kind, uint64_t key, const void *bytes, size_t size, struct error *e);
/* Forget that group. */
void journal_abort(struct journal *j);
/* Append it to the file at `path`, which must not be there at first, or be the one that was read; with `sync`, it is
 * durable then. */
int journal_commit(struct journal *j, struct io *io, const char *path, uint64_t label, int sync, struct error *e);
/* Close, after all of it has come into epochs, and remove the file at `path`. */
int journal_remove(struct journal *j, struct io *io, const char *path, struct error *e);
/* Make the file durable. */
int journal_sync(struct journal *j, struct error *e);
/* If this writer has committed to the file, and all that is durable: append a group without records, which is not
 * synced, with the label of the last one. So damage of the last commit is not taken for an interrupted one. */
int journal_seal(struct journal *j, struct error *e);
/* Free all, and leave the file. */
int journal_close(struct journal *j, struct error *e);

#endif
