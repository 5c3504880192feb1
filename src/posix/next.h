/* The functions of the C library that this library stands before. */
#ifndef DELTAFS_POSIX_NEXT_H
#define DELTAFS_POSIX_NEXT_H

#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Each: type of the result, name, parameters. */
#define NEXT_FUNCTIONS(X)                                                                                              \
    X(int, close, (int))                                                                                               \
    X(DIR *, opendir, (const char *))                                                                                  \
    X(DIR *, fdopendir, (int))                                                                                         \
    X(int, closedir, (DIR *))                                                                                          \
    X(int, dirfd, (DIR *))                                                                                             \
    X(struct dirent *, readdir, (DIR *))                                                                               \
    X(int, readdir_r, (DIR *, struct dirent *, struct dirent **))                                                      \
    X(void, rewinddir, (DIR *))                                                                                        \
    X(long, telldir, (DIR *))                                                                                          \
    X(void, seekdir, (DIR *, long))                                                                                    \
    X(ssize_t, getdents64, (int, void *, size_t))                                                                      \
    X(int, glob, (const char *, int, int (*)(const char *, int), glob_t *))                                            \
    X(int, ftw, (const char *, __ftw_func_t, int))                                                                     \
    X(int, nftw, (const char *, __nftw_func_t, int, int))                                                              \
    X(FTS *, fts_open, (char *const *, int, int (*)(const FTSENT **, const FTSENT **)))                                \
    X(int, scandirat,                                                                                                  \
      (int, const char *, struct dirent ***, int (*)(const struct dirent *),                                           \
       int (*)(const struct dirent **, const struct dirent **)))                                                       \
    X(ssize_t, getxattr, (const char *, const char *, void *, size_t))                                                 \
    X(ssize_t, lgetxattr, (const char *, const char *, void *, size_t))                                                \
    X(ssize_t, fgetxattr, (int, const char *, void *, size_t))                                                         \
    X(int, setxattr, (const char *, const char *, const void *, size_t, int))                                          \
    X(int, lsetxattr, (const char *, const char *, const void *, size_t, int))                                         \
    X(int, fsetxattr, (int, const char *, const void *, size_t, int))                                                  \
    X(int, removexattr, (const char *, const char *))                                                                  \
    X(int, lremovexattr, (const char *, const char *))                                                                 \
    X(int, fremovexattr, (int, const char *))                                                                          \
    X(ssize_t, listxattr, (const char *, char *, size_t))                                                              \
    X(ssize_t, llistxattr, (const char *, char *, size_t))                                                             \
    X(ssize_t, flistxattr, (int, char *, size_t))                                                                      \
    X(int, mkostemps, (char *, int, int))                                                                              \
    X(char *, mkdtemp, (char *))                                                                                       \
    X(char *, mktemp, (char *))                                                                                        \
    X(char *, tempnam, (const char *, const char *))                                                                   \
    X(int, statfs, (const char *, struct statfs *))                                                                    \
    X(int, fstatfs, (int, struct statfs *))                                                                            \
    X(int, statvfs, (const char *, struct statvfs *))                                                                  \
    X(int, fstatvfs, (int, struct statvfs *))                                                                          \
    X(long, pathconf, (const char *, int))                                                                             \
    X(long, fpathconf, (int, int))                                                                                     \
    X(int, mknodat, (int, const char *, mode_t, dev_t))                                                                \
    X(int, inotify_add_watch, (int, const char *, uint32_t))                                                           \
    X(int, name_to_handle_at, (int, const char *, struct file_handle *, int *, int))                                   \
    X(int, posix_fallocate, (int, off_t, off_t))                                                                       \
    X(int, flock, (int, int))                                                                                          \
    X(int, lockf, (int, int, off_t))                                                                                   \
    X(int, aio_read, (struct aiocb *))                                                                                 \
    X(int, aio_write, (struct aiocb *))                                                                                \
    X(int, aio_fsync, (int, struct aiocb *))                                                                           \
    X(int, lio_listio, (int, struct aiocb *const[], int, struct sigevent *))                                           \
    X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))                                                  \
    X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))                                                 \
    X(void, sync, (void))                                                                                              \
    X(int, openat, (int, const char *, int, ...))                                                                      \
    X(int, dup, (int))                                                                                                 \
    X(int, dup2, (int, int))                                                                                           \
    X(int, dup3, (int, int, int))                                                                                      \
    X(int, fcntl, (int, int, ...))                                                                                     \
    X(int, close_range, (unsigned, unsigned, int))                                                                     \
    X(ssize_t, read, (int, void *, size_t))                                                                            \
    X(ssize_t, pread, (int, void *, size_t, off_t))                                                                    \
    X(ssize_t, readv, (int, const struct iovec *, int))                                                                \
    X(ssize_t, preadv, (int, const struct iovec *, int, off_t))                                                        \
    X(ssize_t, write, (int, const void *, size_t))                                                                     \
    X(ssize_t, pwrite, (int, const void *, size_t, off_t))                                                             \
    X(ssize_t, writev, (int, const struct iovec *, int))                                                               \
    X(ssize_t, pwritev, (int, const struct iovec *, int, off_t))                                                       \
    X(ssize_t, copy_file_range, (int, off_t *, int, off_t *, size_t, unsigned))                                        \
    X(ssize_t, sendfile, (int, int, off_t *, size_t))                                                                  \
    X(ssize_t, splice, (int, off_t *, int, off_t *, size_t, unsigned))                                                 \
    X(off_t, lseek, (int, off_t, int))                                                                                 \
    X(int, ftruncate, (int, off_t))                                                                                    \
    X(int, truncate, (const char *, off_t))                                                                            \
    X(int, fallocate, (int, int, off_t, off_t))                                                                        \
    X(int, fsync, (int))                                                                                               \
    X(int, fdatasync, (int))                                                                                           \
    X(int, syncfs, (int))                                                                                              \
    X(int, fstatat, (int, const char *, struct stat *, int))                                                           \
    X(int, fstat, (int, struct stat *))                                                                                \
    X(int, statx, (int, const char *, int, unsigned, struct statx *))                                                  \
    X(long, syscall, (long, ...))                                                                                      \
    X(int, faccessat, (int, const char *, int, int))                                                                   \
    X(int, fchmodat, (int, const char *, mode_t, int))                                                                 \
    X(int, fchmod, (int, mode_t))                                                                                      \
    X(int, fchownat, (int, const char *, uid_t, gid_t, int))                                                           \
    X(int, fchown, (int, uid_t, gid_t))                                                                                \
    X(int, utimensat, (int, const char *, const struct timespec *, int))                                               \
    X(int, futimens, (int, const struct timespec *))                                                                   \
    X(mode_t, umask, (mode_t))                                                                                         \
    X(int, mkdirat, (int, const char *, mode_t))                                                                       \
    X(int, symlinkat, (const char *, int, const char *))                                                               \
    X(int, linkat, (int, const char *, int, const char *, int))                                                        \
    X(ssize_t, readlinkat, (int, const char *, char *, size_t))                                                        \
    X(int, unlinkat, (int, const char *, int))                                                                         \
    X(int, renameat2, (int, const char *, int, const char *, unsigned))                                                \
    X(int, bind, (int, const struct sockaddr *, socklen_t))                                                            \
    X(char *, realpath, (const char *, char *))                                                                        \
    X(int, chdir, (const char *))                                                                                      \
    X(int, fchdir, (int))                                                                                              \
    X(char *, getcwd, (char *, size_t))                                                                                \
    X(FILE *, fopen, (const char *, const char *))                                                                     \
    X(FILE *, fdopen, (int, const char *))                                                                             \
    X(FILE *, freopen, (const char *, const char *, FILE *))                                                           \
    X(int, fclose, (FILE *))                                                                                           \
    X(int, vdprintf, (int, const char *, va_list))                                                                     \
    X(int, execve, (const char *, char *const *, char *const *))                                                       \
    X(int, execveat, (int, const char *, char *const *, char *const *, int))                                           \
    X(int, posix_spawn,                                                                                                \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,            \
       char *const *))                                                                                                 \
    X(int, posix_spawnp,                                                                                               \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,            \
       char *const *))                                                                                                 \
    X(int, posix_spawn_file_actions_destroy, (posix_spawn_file_actions_t *))                                           \
    X(int, posix_spawn_file_actions_addopen, (posix_spawn_file_actions_t *, int, const char *, int, mode_t))           \
    X(int, posix_spawn_file_actions_addclose, (posix_spawn_file_actions_t *, int))                                     \
    X(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *, int, int))                                 \
    X(int, posix_spawn_file_actions_addchdir_np, (posix_spawn_file_actions_t *, const char *))                         \
    X(int, posix_spawn_file_actions_addfchdir_np, (posix_spawn_file_actions_t *, int))                                 \
    X(int, posix_spawn_file_actions_addclosefrom_np, (posix_spawn_file_actions_t *, int))                              \
    X(int, posix_spawn_file_actions_addtcsetpgrp_np, (posix_spawn_file_actions_t *, int))                              \
    X(FILE *, popen, (const char *, const char *))                                                                     \
    X(int, pclose, (FILE *))                                                                                           \
    X(int, system, (const char *))                                                                                     \
    X(int, daemon, (int, int))                                                                                         \
    X(void *, dlopen, (const char *, int))                                                                             \
    X(void, _exit, (int))

struct next {
#define NEXT_MEMBER(type, name, parameters) type(*name) parameters;
    NEXT_FUNCTIONS(NEXT_MEMBER)
#undef NEXT_MEMBER
};
extern struct next next;

/* Find them all. */
void next_begin(void);

#endif
