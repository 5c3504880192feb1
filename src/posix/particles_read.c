/* Reading particles. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include "posix/locks.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/particles_parts.h"

#define DEVICE     0xdf /* of all that is in mounts, with the number of the mount */
#define INODE_ROOT 1
#define BLOCK      4096

/* ---- The handle ---- */

static int reader_open(struct particles *p)
{
    int status = deltafs_open(p->target, NULL, &p->reader);

    if (status != DELTAFS_OK)
        p->reader = NULL;
    return status;
}

int particles_reader_begin(struct particles *p, deltafs_dir **out)
{
    lock_take(&p->read_lock);
    int status = p->reader ? deltafs_refresh(p->reader) : reader_open(p);
    if (status != DELTAFS_OK && p->reader) { /* another directory may be there now */
        deltafs_close(p->reader);
        status = reader_open(p);
    }
    *out = p->reader;
    if (status == DELTAFS_OK)
        return 0;
    lock_give(&p->read_lock);
    return status == DELTAFS_ERR_NOT_FOUND ? ENOENT : particles_failed(status);
}

void particles_reader_end(struct particles *p)
{
    lock_give(&p->read_lock);
}

const struct deltafs_range *place_range(const struct place *at, struct deltafs_range *room)
{
    *room = (struct deltafs_range){.first = at->label.number, .last = at->label.number};
    return at->label.is_given ? room : NULL;
}

/* All records of a particle. Returns an error number. */
static int get_records(struct particles *p, const struct place *at, deltafs_records **out)
{
    struct deltafs_range room;
    const struct deltafs_range *range = place_range(at, &room);
    deltafs_dir *dir;
    int error = particles_reader_begin(p, &dir);

    if (error != 0)
        return error;
    int status =
        at->name ? deltafs_get_bytes(dir, at->name, at->name_size, range, out) : deltafs_get(dir, at->key, range, out);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND) {
        posix_say("%s", deltafs_errmsg(dir));
        deltafs_records_destroy(*out);
        *out = NULL;
    }
    particles_reader_end(p);
    return deltafs_namespace_errno(status);
}

static off_t size_of(const deltafs_records *records)
{
    size_t size = 0;

    for (size_t i = 0; i < records->count; i++)
        size += records->record[i].size;
    return (off_t)size;
}

/* ---- Attributes ---- */

/* The times are those of the last epoch. */
void particles_stat_folder(const struct mount *m, struct stat *out)
{
    struct stat real = {.st_size = 0};

    if (next.fstatat(AT_FDCWD, m->target, &real, 0) != 0) /* it is not created yet */
        clock_gettime(CLOCK_REALTIME, &real.st_mtim);
    *out = (struct stat){.st_dev = makedev(DEVICE, (unsigned)(m - mounts.mount) + 1),
                         .st_ino = INODE_ROOT,
                         .st_mode = S_IFDIR | 0755,
                         .st_nlink = 2,
                         .st_uid = geteuid(),
                         .st_gid = getegid(),
                         .st_blksize = BLOCK,
                         .st_atim = real.st_mtim,
                         .st_mtim = real.st_mtim,
                         .st_ctim = real.st_mtim};
}

ino_t particle_inode(const struct deltafs_record *r)
{
    ino_t inode = r->key + INODE_ROOT + 1;

    return inode > INODE_ROOT ? inode : inode + INODE_ROOT + 1;
}

static void stat_particle(const struct mount *m, const deltafs_records *records, struct stat *out)
{
    particles_stat_folder(m, out);
    out->st_ino = particle_inode(&records->record[0]);
    out->st_mode = S_IFREG | 0644;
    out->st_nlink = 1;
    out->st_size = size_of(records);
    out->st_blocks = (out->st_size + 511) / 512;
}

int particles_stat(struct mount *m, const char *path, struct stat *out)
{
    deltafs_records *records = NULL;
    struct place at;
    int error = place_find(m->particles, path, &at);

    if (error != 0)
        return error == EINVAL ? ENOENT : error;
    if (at.kind == PLACE_FOLDER) {
        particles_stat_folder(m, out);
        out->st_ino += at.label.is_given ? (at.label.number + 1) << 32 : 0;
        return 0;
    }
    error = get_records(m->particles, &at, &records);
    if (error == 0)
        stat_particle(m, records, out);
    deltafs_records_destroy(records);
    return error;
}

/* ---- Bytes ---- */

static int write_all(int fd, const void *bytes, size_t size)
{
    const char *from = bytes;

    while (size > 0) {
        ssize_t n = next.write(fd, from, size);
        if (n < 0 && errno != EINTR)
            return errno;
        from += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* A memfd with the bytes; nobody can change them. */
static int memfd_of(const deltafs_records *records, int flags, int *fd)
{
    int error = 0;

    *fd = memfd_create("particle", MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
    if (*fd < 0)
        return errno;
    for (size_t i = 0; i < records->count && error == 0; i++)
        error = write_all(*fd, records->record[i].value, records->record[i].size);
    if (error == 0 && (next.lseek(*fd, 0, SEEK_SET) < 0 ||
                       next.fcntl(*fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0))
        error = errno;
    if (error != 0)
        next.close(*fd);
    return error;
}

int particles_open_reader(struct mount *m, const struct place *at, const char *path, int flags, int *fd)
{
    deltafs_records *records = NULL;
    struct file *f;
    int error = get_records(m->particles, at, &records);

    if (error == 0 && (error = file_create(FILE_PARTICLE, m, strdup(path), flags, &f)) == 0) {
        f->has_all = 1;
        stat_particle(m, records, &f->st);
        error = memfd_of(records, flags, fd);
        if (error == 0)
            error = file_set(f, *fd);
        file_put(f);
    }
    deltafs_records_destroy(records);
    return error;
}
