/* What the parts of particles share. */
#ifndef DELTAFS_POSIX_PARTICLES_PARTS_H
#define DELTAFS_POSIX_PARTICLES_PARTS_H

#include "posix/library.h"
#include "posix/file.h"
#include "posix/spool.h"

#define PARTICLE_SIZE_MAX ((size_t)1 << 20) /* bytes of a record */
#define PARTICLE_NAME_MAX 255

/* The number of an epoch, if a name or the environment gives it. */
struct label {
    int is_given;
    uint64_t number;
};

/* What is said once only. */
enum particles_said { SAID_NAME, SAID_SIZE, SAID_FLAGS, SAID_FOLDERS, SAID_STORE, SAID_KINDS };

struct particles {
    char *target;
    const char *label; /* DELTAFS_POSIX_LABEL; NULL: labels count up */

    pthread_mutex_t lock; /* of the following */
    atomic_int is_known;  /* what the directory is, or will be: */
    int is_bytes;         /* keys */
    int64_t value_size;   /* -1: any */
    size_t memory;        /* of the spool */
    struct record *unused;
    struct spool *spool;   /* of the current epoch; NULL: it has no records */
    struct label of_spool; /* of the records in it */
    int error;             /* the first of the current epoch */
    uint64_t lost;         /* records of it that could not be stored */
    uint64_t lost_before;  /* of former epochs */
    atomic_uint said;      /* bits */

    pthread_mutex_t epoch_lock; /* an epoch is being ended */
    int is_unsynced;            /* an epoch was committed that is not durable */

    pthread_mutex_t read_lock;
    deltafs_dir *reader; /* NULL: it is not open */
};

/* Whether something is said the first time. */
int particles_says(struct particles *p, enum particles_said kind);
/* Say what a call of libdeltafs has failed for. Returns an error number. */
int particles_failed(int status);
/* Find out what the directory is, before the first use of that. With the lock. */
int particles_know(struct particles *p);

/* End the epoch at the end of the process, or of the job. Returns an error number, also for records that were lost
 * before; all was said. */
int particles_end_last(struct particles *p);

/* ---- Paths ---- */

enum place_kind { PLACE_FOLDER, PLACE_PARTICLE };

struct place {
    enum place_kind kind;
    struct label label;
    uint64_t key;
    const char *name; /* of a particle, if keys are bytes; else NULL */
    size_t name_size;
};

/* Whether DELTAFS_POSIX_LABEL has a meaning. */
int label_is_valid(const char *text);
/* The label that the environment has for the epoch that ends; returns an error number, which was said. */
int label_of_environment(const struct particles *p, struct label *out);
/* What a path within the mount means. ENOENT: nothing. EINVAL: its name is no key. */
int place_find(struct particles *p, const char *path, struct place *out);

/* ---- Writing ---- */

/* For file_each. In a child: forget the bytes of a file, because the parent stores them. At the end: store its record.
 */
int record_forget(struct file *f, int fd, void *unused);
int record_finish(struct file *f, int fd, void *unused);

/* ---- Reading ---- */

/* Open a particle to read its bytes. */
int particles_open_reader(struct mount *m, const struct place *at, const char *path, int flags, int *fd);
/* The handle for reading, with the epochs of now, and with the lock of reading. particles_reader_end unlocks it; after
 * an error there is nothing to end. ENOENT: there is no directory yet. */
int particles_reader_begin(struct particles *p, deltafs_dir **out);
void particles_reader_end(struct particles *p);
/* The epochs that a place shows; NULL: all. */
const struct deltafs_range *place_range(const struct place *at, struct deltafs_range *room);
/* The inode number of the particle that a record is of. */
ino_t particle_inode(const struct deltafs_record *r);
/* The attributes of a folder. */
void particles_stat_folder(const struct mount *m, struct stat *out);

#endif
