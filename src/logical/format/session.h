/* The container of a logical file, and its sessions: what each opening for writing, by however many processes, adds.
 *
 * Many processes may do any of this at once. Which of them makes a container, and which number a session gets, the file
 * system decides: a manifest is written aside and gets its name with link(2), a session is what mkdir(2) has made. */
#ifndef DELTAFS_LOGICAL_SESSION_H
#define DELTAFS_LOGICAL_SESSION_H

#include "directory/format/manifest.h"

struct container {
    char *path;
    uint8_t uuid[16];
    char uuid_text[UUID_TEXT_SIZE];
};

struct session {
    uint32_t number;
    uint32_t writers; /* their numbers are below */
    uint32_t buckets; /* folders that the logs are spread over; 0: they are in the session's own */
    uint64_t order;   /* that it began with */
    int is_closed;
    int is_synced; /* if it is closed: its logs were durable before that; else a crash may have taken of them what it
                    * takes of those of a session that is not closed */
    uint32_t logs; /* how many writers have logs; */
    uint64_t last_order;
    uint64_t size;
    int has_index; /* a file with that name is there; only of a closed session */
};

/* Open the container at `path`; `flags` may have O_CREAT and O_EXCL, as open(2) has them. *is_new: it has been made by
 * this call; with `sync` so that no crash leaves a manifest that cannot be read (container_sync makes it durable). One
 * whose maker died before it was done is finished. DELTAFS_ERR_NOT_FOUND, _EXISTS, _NOT_DELTAFS (something else is
 * there: a file, a folder, a directory of DeltaFS), _VERSION, _DAMAGED. */
int container_open(struct container *c, struct io *io, const char *path, int flags, int sync, int *is_new,
                   struct error *e);
void container_fini(struct container *c);
/* Whether the container at its path is this one still; one look at the manifest. DELTAFS_ERR_NOT_FOUND: it was deleted,
 * or another was made in its place. */
int container_check(const struct container *c, struct io *io, struct error *e);
/* *kind: 'd' a directory of DeltaFS, 'f' a logical file, '-' anything else. DELTAFS_ERR_NOT_FOUND; _VERSION and
 * _DAMAGED as it cannot be told then. */
int container_kind(struct io *io, const char *path, char *kind, struct error *e);
/* Whether a folder without a manifest that can be read is a logical file by all the names that are in it. */
int container_is_broken(struct io *io, const char *path);
/* Remove a logical file with all its sessions, on volumes too; of a symbolic link to one the link alone. Anything in it
 * that is not ours: DELTAFS_ERR_NOT_DELTAFS, and nothing is touched. Else it first gets a hidden name beside its own;
 * an error after that says which. */
int container_remove(struct io *io, const char *path, struct error *e);

/* Claim the next session: its folder, buckets, and their places on `volumes` (the option's text). The caller has looked
 * for `order`. With `sync` no crash leaves a session that cannot be read: either there is none, or all of it. */
int session_create(const struct container *c, struct io *io, uint32_t writers, uint64_t order, const char *volumes,
                   int sync, struct session *out, struct error *e);
/* Write the session's file aside, and give it its name. */
int session_write(const struct container *c, struct io *io, const struct session *s, int sync, struct error *e);
/* What a session is by the names in its folder: its number, buckets, and writers with logs, in order, freed by the
 * caller. */
int session_guess(const struct container *c, struct io *io, uint32_t number, struct session *s, uint32_t **writer,
                  size_t *count, struct error *e);
/* All sessions by number, freed by the caller; not those that are being claimed, nor whose claimer died at it. */
int session_list(const struct container *c, struct io *io, struct session **out, size_t *count, struct error *e);
/* The numbers of all sessions, in order, freed by the caller; and one of them. DELTAFS_ERR_NOT_FOUND: it does not
 * count. */
int session_numbers(const struct container *c, struct io *io, uint32_t **number, size_t *count, struct error *e);
int session_read(const struct container *c, struct io *io, uint32_t number, struct session *s, struct error *e);
/* Whether there are remains of a session whose removal is under way, or was cut short: it does not count, and its logs
 * are not missed. */
int session_is_removed(const struct container *c, struct io *io, uint32_t number, int *is_removed, struct error *e);
/* Note in the file, and in `s`, that the session is closed; with `sync`, durably, as its logs are then.
 * DELTAFS_ERR_NOT_FOUND if another session is in its place. */
int session_close(const struct container *c, struct io *io, struct session *s, uint32_t logs, uint64_t order,
                  uint64_t size, int sync, struct error *e);
/* Remove the session, or what an earlier attempt has left of it; it is none any more from the beginning on, and known
 * to be removed until nothing is left, with `sync` also after a crash. What another process removes meanwhile is fine.
 * One that was closed, or has had logs, is only removed by who has one with logs above it, which stays: else its number
 * would be claimed again, and whoever knows it would take the new session for the old one. */
int session_remove(const struct container *c, struct io *io, const struct session *s, int sync, struct error *e);
/* Only what an earlier attempt has left, if there is any; a session that has come in its place stays. */
int session_remove_remains(const struct container *c, struct io *io, uint32_t number, int sync, struct error *e);

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
/* Make the container and the session durable, whoever made them and with what `sync`; `volumes` as at the claim. */
int session_sync(const struct container *c, struct io *io, const struct session *s, const char *volumes,
                 struct error *e);
/* Make the name of a log of this writer, new in its folder, durable. */
int session_sync_folder(const struct container *c, struct io *io, const struct session *s, uint32_t writer,
                        struct error *e);

#endif
