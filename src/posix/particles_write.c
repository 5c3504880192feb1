/* Opening, writing and closing particles: what is written to a file from open to close is a record. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/particles_parts.h"
#include "posix/placeholder.h"

#define BYTES_KEPT  ((size_t)64 << 10) /* of the memory of a record, for the next one */
#define BYTES_FIRST 256
#define PATH_ROOM   (2 * PARTICLE_NAME_MAX + 3)

/* A particle that is being written. */
struct record {
    struct file file;
    struct record *next; /* unused */
    struct place place;
    char path[PATH_ROOM];
    uint8_t *bytes;
    size_t size, room;
    off_t at;    /* the file's offset */
    off_t base;  /* the size that the particle had when it was opened; 0 with O_APPEND, which saves looking it up */
    int error;   /* of a write: then there is no record */
    pid_t owner; /* 0, or: there are copies of the descriptor, and this process stores the record */
};

/* ---- Bytes of a record ---- */

static int make_room(struct record *r, size_t size)
{
    size_t room = r->room > 0 ? r->room : BYTES_FIRST;

    if (size > PARTICLE_SIZE_MAX)
        return EFBIG;
    while (room < size)
        room *= 2;
    if (room == r->room)
        return 0;
    uint8_t *bytes = realloc(r->bytes, room);
    if (!bytes)
        return ENOMEM;
    r->bytes = bytes;
    r->room = room;
    return 0;
}

/* A copy of the descriptor can be written to without this library: by what the C library has for standard output, and
 * by programs that inherit it. So then the descriptor and its copies become a memfd, which has the bytes until the
 * process that has opened the particle closes it. */
static int record_share(struct record *r, int from, int to)
{
    int fd = memfd_create("particle", MFD_CLOEXEC), error = 0;
    int flags = next.fcntl(from, F_GETFD), flags_to = next.fcntl(to, F_GETFD);

    if (fd < 0)
        return errno;
    if (next.write(fd, r->bytes, r->size) != (ssize_t)r->size || next.fcntl(fd, F_SETFL, O_APPEND) != 0 ||
        next.dup3(fd, from, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0 ||
        next.dup3(fd, to, flags_to & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
        error = errno;
    else
        placeholder_forget(from);
    next.close(fd);
    if (error == 0)
        r->owner = getpid();
    return error;
}

int particles_note_copy(struct file *f, int from, int to)
{
    struct record *r = f->record;

    if (f->kind != FILE_PARTICLE || !r)
        return 0;
    lock_take(&f->lock);
    int error = r->owner == 0 ? record_share(r, from, to) : 0;
    lock_give(&f->lock);
    return error;
}

static void record_measure(struct record *r, int fd)
{
    struct stat now;

    if (r->owner != 0 && next.fstat(fd, &now) == 0)
        r->size = (size_t)now.st_size;
}

/* Take the bytes out of the memfd; nothing, if that is up to another process. */
static void record_collect(struct record *r, int fd)
{
    record_measure(r, fd);
    if (r->owner != getpid())
        r->size = 0;
    if (r->size == 0)
        return;
    if (r->error == 0)
        r->error = make_room(r, r->size);
    if (r->error == 0 && (next.pread(fd, r->bytes, r->size, 0) != (ssize_t)r->size || next.ftruncate(fd, 0) != 0))
        r->error = EIO;
}

/* ---- Storing a record ---- */

/* Where the spool may have a file. */
static const char *spool_folder(const struct particles *p, char room[static PATH_MAX])
{
    const char *folder = getenv("TMPDIR"), *slash = strrchr(p->target, '/');

    if (folder && *folder)
        return folder;
    size_t n = slash && slash > p->target ? (size_t)(slash - p->target) : 1;
    if (!slash || n >= PATH_MAX)
        return slash ? "/" : ".";
    memcpy(room, p->target, n);
    room[n] = '\0';
    return room;
}

/* The spool, for a record with this label. With the lock. */
static int spool_for(struct particles *p, const struct label *label)
{
    char room[PATH_MAX];

    if (p->spool && p->of_spool.is_given == label->is_given && p->of_spool.number == label->number)
        return 0;
    if (p->spool) {
        if (particles_says(p, SAID_FOLDERS))
            posix_say("%s: files of two epochs are written at the same time; close the folder of one (closedir) before "
                      "writing to the other",
                      p->target);
        return EINVAL;
    }
    p->spool = spool_create(p->memory, spool_folder(p, room));
    p->of_spool = *label;
    return p->spool ? 0 : ENOMEM;
}

/* With the lock. */
static int check_size(struct particles *p, const struct record *r)
{
    if (p->value_size < 0 || r->size == (uint64_t)p->value_size)
        return 0;
    if (particles_says(p, SAID_SIZE))
        posix_say("%s%s: %zu bytes were written before the file was closed, and a record of %s has %lld; such records "
                  "are not stored",
                  r->file.mount->point, r->path, r->size, p->target, (long long)p->value_size);
    return EINVAL;
}

/* With the lock. */
static int store(struct particles *p, const struct record *r)
{
    const struct spool_record head = {
        .key = r->place.key, .key_size = (uint32_t)r->place.name_size, .size = (uint32_t)r->size};
    int error = r->error != 0 ? r->error : check_size(p, r);

    if (error == 0)
        error = spool_for(p, &r->place.label);
    if (error == 0 && (error = spool_add(p->spool, &head, head.key_size > 0 ? r->place.name : "", r->bytes)) != 0 &&
        particles_says(p, SAID_STORE))
        posix_say("%s: records cannot be kept until the end of the epoch: %s; TMPDIR can be a folder with more room",
                  p->target, strerror(error));
    return error;
}

/* The program has closed the file. */
static int record_end(struct file *f, int fd)
{
    struct record *r = f->record;
    struct particles *p = f->mount->particles;
    int error = 0;

    if (lock_try(&f->lock) != 0)
        return EDEADLK;
    if (r->owner != 0)
        record_collect(r, fd);
    if (r->size > 0 && r->error == 0 && r->place.kind == PLACE_FOLDER) /* it was handed over */
        r->error = place_find(p, r->path, &r->place);
    if (r->size > 0 || r->error != 0) {
        lock_take(&p->lock);
        error = store(p, r);
        p->lost += error != 0;
        p->error = p->error != 0 ? p->error : error;
        lock_give(&p->lock);
    }
    r->size = 0;
    r->error = 0;
    lock_give(&f->lock);
    return error;
}

/* ---- Opening ---- */

/* Nobody uses the file any more. */
static void record_release(struct file *f)
{
    struct record *r = f->record;
    struct particles *p = f->mount->particles;

    if (r->room > BYTES_KEPT) {
        free(r->bytes);
        r->bytes = NULL;
        r->room = 0;
    }
    lock_take(&p->lock);
    r->next = p->unused;
    p->unused = r;
    lock_give(&p->lock);
}

static struct record *record_create(struct mount *m)
{
    struct record *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->file = (struct file){.kind = FILE_PARTICLE,
                            .mount = m,
                            .path = r->path,
                            .cut = UINT64_MAX,
                            .lock_fd = -1,
                            .close = record_end,
                            .release = record_release,
                            .record = r};
    lock_init(&r->file.lock);
    particles_stat_folder(m, &r->file.st);
    r->file.st.st_mode = S_IFREG | 0644;
    r->file.st.st_nlink = 1;
    r->file.st.st_size = 0;
    return r;
}

static struct record *record_get(struct mount *m)
{
    struct particles *p = m->particles;

    lock_take(&p->lock);
    struct record *r = p->unused;
    p->unused = r ? r->next : NULL;
    lock_give(&p->lock);
    return r ? r : record_create(m);
}

static void record_set(struct record *r, const struct place *at, const char *path, int flags, off_t base)
{
    memcpy(r->path, path, strlen(path) + 1);
    r->place = *at;
    r->place.name = at->name ? r->path + (at->name - path) : NULL;
    r->at = 0;
    r->base = base;
    r->owner = 0;
    r->file.st.st_size = base;
    r->file.flags = (flags & ~O_ACCMODE) | O_WRONLY;
    r->file.descriptors = 0;
    atomic_store(&r->file.users, 0);
}

static int open_writer(struct mount *m, const struct place *at, const char *path, int flags, off_t base, int *fd)
{
    if (strlen(path) >= PATH_ROOM)
        return ENAMETOOLONG;
    struct record *r = record_get(m);
    int error = r ? placeholder_open(fd) : ENOMEM;
    if (error != 0) {
        if (r)
            record_release(&r->file);
        return error;
    }
    record_set(r, at, path, flags, base);
    return file_set(&r->file, *fd);
}

/* Files are added to, only, unless the folder is an epoch's. */
static int refuse(struct particles *p, const struct mount *m, const char *path)
{
    if (particles_says(p, SAID_FLAGS))
        posix_say("%s%s: bytes can only be added to a particle, or read: open it with O_APPEND, or with the mode "
                  "\"a\" of fopen",
                  m->point, path);
    return EINVAL;
}

/* Open a file that is not opened for appending only: what it has already counts. A file in an epoch's folder is new. */
static int open_writer_at(struct mount *m, const struct place *at, const char *path, int flags, int *fd)
{
    struct stat st = {.st_size = 0};

    if ((flags & O_TRUNC) && !at->label.is_given)
        return refuse(m->particles, m, path);
    int error = at->label.is_given && !(flags & O_EXCL) ? ENOENT : particles_stat(m, path, &st);
    if (error != 0 && error != ENOENT)
        return error;
    if (error == 0 && (flags & O_CREAT) && (flags & O_EXCL))
        return EEXIST;
    return open_writer(m, at, path, flags, st.st_size, fd);
}

static int check_name(struct particles *p, const struct mount *m, const char *path, int error)
{
    if (error == EINVAL && particles_says(p, SAID_NAME))
        posix_say("%s%s: the name of a particle is a number from 0 to 18446744073709551615; DELTAFS_KEYS=bytes creates "
                  "a directory that takes any names",
                  m->point, path);
    return error;
}

static int open_folder(struct mount *m, const char *path, int flags, int *fd)
{
    struct file *f;
    int error = file_create(FILE_FOLDER, m, strdup(path), flags, &f);

    if (error != 0)
        return error;
    particles_stat_folder(m, &f->st);
    *fd = memfd_create("particles", flags & O_CLOEXEC ? MFD_CLOEXEC : 0); /* it has an offset, for getdents64 */
    error = *fd < 0 ? errno : file_set(f, *fd);
    file_put(f);
    return error;
}

int particles_open(struct mount *m, const char *path, int flags, int *fd)
{
    struct particles *p = m->particles;
    int is_read = (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH);
    struct place at;
    int error = place_find(p, path, &at);

    *fd = -1;
    if (error != 0)
        return is_read ? ENOENT : check_name(p, m, path, error);
    if (at.kind == PLACE_FOLDER)
        return is_read && !(flags & O_CREAT) ? open_folder(m, path, flags, fd) : EISDIR;
    if (flags & O_DIRECTORY)
        return ENOTDIR;
    if (is_read)
        return particles_open_reader(m, &at, path, flags, fd);
    return (flags & O_APPEND) && !(flags & (O_TRUNC | O_EXCL)) ? open_writer(m, &at, path, flags, 0, fd)
                                                               : open_writer_at(m, &at, path, flags, fd);
}

int particles_make_folder(struct mount *m, const char *path)
{
    struct place at;
    int error = place_find(m->particles, path, &at);

    if (error == 0 && at.kind == PLACE_FOLDER)
        return at.label.is_given ? 0 : EEXIST;
    return EPERM;
}

pid_t particles_owner(const struct file *f)
{
    const struct record *r = f->record;

    return r ? r->owner : 0;
}

/* What the path means is found when the record is stored: that may need libdeltafs. */
int particles_take_over(struct mount *m, const char *path, int flags, pid_t owner, int fd)
{
    const struct place unknown = {.kind = PLACE_FOLDER};

    if (strlen(path) >= PATH_ROOM)
        return ENAMETOOLONG;
    struct record *r = record_get(m);
    if (!r)
        return ENOMEM;
    record_set(r, &unknown, path, flags | O_APPEND, 0);
    r->owner = owner;
    return file_set(&r->file, fd);
}

/* ---- Writing ---- */

static off_t end_of(const struct record *r)
{
    return r->base + (off_t)r->size;
}

static int write_shared(int fd, const void *bytes, size_t size)
{
    ssize_t put = next.write(fd, bytes, size);

    return put == (ssize_t)size ? 0 : put < 0 ? errno : ENOSPC;
}

ssize_t particles_write(struct file *f, int fd, const void *bytes, size_t size, off_t at)
{
    struct record *r = f->record;

    record_measure(r, fd);
    if (r->error == 0 && !(f->flags & O_APPEND) && (at < 0 ? r->at : at) != end_of(r))
        r->error = refuse(f->mount->particles, f->mount, f->path);
    if (r->error == 0)
        r->error = size > PARTICLE_SIZE_MAX ? EFBIG : make_room(r, r->size + size);
    if (r->error == 0 && r->owner != 0)
        r->error = write_shared(fd, bytes, size);
    if (r->error != 0)
        return posix_result(r->error);
    if (r->owner == 0)
        memcpy(r->bytes + r->size, bytes, size);
    r->size += size;
    f->st.st_size = end_of(r);
    r->at = at < 0 ? end_of(r) : r->at;
    return (ssize_t)size;
}

off_t particles_seek(struct file *f, int fd, off_t offset, int whence)
{
    struct record *r = f->record;

    record_measure(r, fd);
    off_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? r->at : end_of(r);

    if (whence < SEEK_SET || whence > SEEK_END || offset < -from)
        return posix_result(EINVAL);
    r->at = from + offset;
    return r->at;
}

int particles_truncate(const struct file *f, off_t size)
{
    const struct record *r = f->record;

    return r && size == end_of(r) ? 0 : EINVAL;
}

/* ---- Fork and the end ---- */

int record_forget(struct file *f, int fd, void *arg)
{
    struct record *r = f->record;

    (void)fd;
    (void)arg;
    if (f->kind == FILE_PARTICLE && r)
        r->size = 0;
    return 0;
}

int record_finish(struct file *f, int fd, void *arg)
{
    (void)arg;
    return f->kind == FILE_PARTICLE && f->record ? record_end(f, fd) : 0;
}
