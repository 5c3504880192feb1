/* The container of a logical file, and its sessions. Each opening for writing, by any number of processes, adds one.
 *
 * Many processes may call these functions at once. The file system decides which of them creates a container, and which
 * number a session gets: a manifest is written aside and gets its name by link(2), a session is created by mkdir(2). */
#ifndef DELTAFS_LOGICAL_SESSION_H
#define DELTAFS_LOGICAL_SESSION_H

#include "io/textlog.h"

/* A session that must be there, by the container's manifest. */
struct recorded {
    uint32_t number;
    int is_lost; /* a repair has found out that it is gone for good */
};

struct container {
    char *path;
    uint8_t uuid[16];
    char uuid_text[UUID_TEXT_SIZE];
    struct recorded *recorded; /* as of the last reading of the manifest, sorted */
    size_t recorded_count, recorded_capacity;
};

struct session {
    uint32_t number;
    uint32_t writers; /* their numbers are below */
    uint32_t buckets; /* folders that the logs are spread over; 0: they are in the session's own */
    uint64_t order;   /* that it began with */
    int is_closed;
    int is_synced; /* the logs were durable before it was closed; otherwise a crash may have lost parts of them */
    uint32_t logs; /* how many writers have logs */
    uint64_t last_order;
    uint64_t size;
    int has_index; /* a file with that name is there; only of a closed session */
};

/* Open the container at `path`; `flags`: O_CREAT and O_EXCL, as for open(2). With `sync`, a crash leaves no unreadable
 * manifest (container_sync makes it durable). An incomplete creation is finished.
 * DELTAFS_ERR_NOT_FOUND, _EXISTS, _NOT_DELTAFS (a file, a folder, a directory of DeltaFS), _VERSION, _DAMAGED. */
int container_open(struct container *c, struct io *io, const char *path, int flags, int sync, struct error *e);
/* Durably write a manifest with the UUID of `c` at its path, where there is none. */
int container_restore(struct container *c, struct io *io, struct error *e);
void container_fini(struct container *c);
void container_forget(struct container *c); /* what is recorded */
/* Read the manifest again into `now`, which the caller destroys. DELTAFS_ERR_NOT_FOUND as of container_check. */
int container_read(const struct container *c, struct io *io, struct container *now, struct error *e);
/* Append what is true of `n` sessions from now on: that they must be there, no longer need to, or are lost. With
 * `sync`, durably. */
enum record { RECORD_CREATED, RECORD_REMOVED, RECORD_LOST };
int container_record(const struct container *c, struct io *io, enum record what, const uint32_t *number, size_t n,
                     int sync, struct error *e);
/* Whether its path still leads to this container; reads the manifest once. DELTAFS_ERR_NOT_FOUND: it was deleted or
 * replaced. */
int container_check(const struct container *c, struct io *io, struct error *e);
/* *kind: 'd' a directory of DeltaFS, 'f' a logical file, '-' anything else. DELTAFS_ERR_NOT_FOUND; _VERSION and
 * _DAMAGED if that is unknown. */
int container_kind(struct io *io, const char *path, char *kind, struct error *e);
/* Whether a folder without a readable manifest is a logical file by all names in it. */
int container_is_broken(struct io *io, const char *path);
/* Remove a logical file with all its sessions, also on volumes; or only a symbolic link to one. If it has a file that
 * is not ours: DELTAFS_ERR_NOT_DELTAFS, and nothing is removed. First it is renamed to a hidden name, which later
 * errors report. */
int container_remove(struct io *io, const char *path, struct error *e);

/* Create the next session: its folder, its buckets, and their folders on `volumes` (the option's text); then record it.
 * The caller has found `order`. With `sync`, a crash leaves either no session or a whole one. */
int session_create(const struct container *c, struct io *io, uint32_t writers, uint64_t order, const char *volumes,
                   int sync, struct session *out, struct error *e);
/* Write the session's file aside, and give it its name. */
int session_write(const struct container *c, struct io *io, const struct session *s, int sync, struct error *e);
/* Derive a session from the names in its folder: its number, buckets, and writers with logs (sorted, freed by the
 * caller). */
int session_guess(const struct container *c, struct io *io, uint32_t number, struct session *s, uint32_t **writer,
                  size_t *count, struct error *e);
/* All sessions by number, freed by the caller; without those whose creation is incomplete. */
int session_list(const struct container *c, struct io *io, struct session **out, size_t *count, struct error *e);
/* The numbers of all sessions, sorted, freed by the caller; and one session. DELTAFS_ERR_NOT_FOUND: it is not valid. */
int session_numbers(const struct container *c, struct io *io, uint32_t **number, size_t *count, struct error *e);
int session_read(const struct container *c, struct io *io, uint32_t number, struct session *s, struct error *e);
int session_is_listed(const uint32_t *number, size_t n, uint32_t which); /* among sorted numbers */
/* Whether only the remains of an incomplete removal are left of a session. */
int session_is_removed(const struct container *c, struct io *io, uint32_t number, int *is_removed, struct error *e);
/* A session, or its SESSION, is not there: DELTAFS_ERR_DAMAGED if it must be. With is_lost, one whose loss a repair has
 * recorded is no damage, and *is_lost is set. */
int session_check_missing(const struct container *c, struct io *io, uint32_t number, int *is_lost, struct error *e);
/* Record in the file, and in `s`, that the session is closed; with `sync`, durably: its logs are durable then.
 * DELTAFS_ERR_NOT_FOUND if another session is in its place. */
int session_close(const struct container *c, struct io *io, struct session *s, uint32_t logs, uint64_t order,
                  uint64_t size, int sync, struct error *e);
/* Write the session's index from all batches of its extent logs: aside, then renamed. */
int session_write_index(const struct container *c, struct io *io, uint32_t number, const void *batches, size_t n,
                        int sync, struct error *e);
/* Remove the session, or the rest of it. It is invalid as soon as the removal begins, and marked as removed until
 * nothing is left; with `sync`, also after a crash. Other processes may remove it at the same time. A session that was
 * closed, or has had logs, is only removed by a process that has a session with logs above it: otherwise the number
 * would be used again, and readers would take the new session for the old one. */
int session_remove(const struct container *c, struct io *io, uint32_t number, int sync, struct error *e);
/* Remove only the remains of an incomplete removal, if there are any. */
int session_remove_remains(const struct container *c, struct io *io, uint32_t number, int sync, struct error *e);

/* Before something is written into a session that exists: that its folder is no link. DELTAFS_ERR_NOT_DELTAFS. */
int session_check_folder(const struct container *c, struct io *io, uint32_t number, struct error *e);

/* The path of a writer's log, by LOG_KIND_FRAMES or _EXTENTS; of a file of the session; of its folder. */
char *session_log_path(const struct container *c, const struct session *s, uint32_t writer, int kind,
                       char path[PATH_ROOM]);
char *session_path(const struct container *c, uint32_t number, const char *name, char path[PATH_ROOM]);
char *session_folder(const struct container *c, uint32_t number, char path[PATH_ROOM]);
/* The writers that have a log of this kind, in order, freed by the caller. */
int session_logs(const struct container *c, struct io *io, const struct session *s, int kind, uint32_t **writer,
                 size_t *count, struct error *e);
/* Whether a closed session has the extent logs that its closing line says, `writer` being those that it has. */
int session_check_logs(const struct container *c, struct io *io, const struct session *s, const uint32_t *writer,
                       size_t count, struct error *e);
/* Make the container durable, whoever made it. */
int container_sync(const struct container *c, struct io *io, struct error *e);
/* Make the container durable, and a session that was created with `sync`; `volumes` as for session_create. */
int session_sync(const struct container *c, struct io *io, const struct session *s, const char *volumes,
                 struct error *e);
/* Make the name of a log of this writer, new in its folder, durable. */
int session_sync_folder(const struct container *c, struct io *io, const struct session *s, uint32_t writer,
                        struct error *e);

#endif
