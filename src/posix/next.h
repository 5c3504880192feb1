/* The functions of the C library that this library stands before. */
#ifndef DELTAFS_POSIX_NEXT_H
#define DELTAFS_POSIX_NEXT_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Each: type of the result, name, parameters. */
#define NEXT_FUNCTIONS(X)                                                                                              \
    X(int, close, (int))                                                                                               \
    X(int, openat, (int, const char *, int, ...))                                                                      \
    X(int, dup, (int))                                                                                                 \
    X(int, dup2, (int, int))                                                                                           \
    X(int, dup3, (int, int, int))                                                                                      \
    X(int, fcntl, (int, int, ...))                                                                                     \
    X(int, close_range, (unsigned, unsigned, int))                                                                     \
    X(void, closefrom, (int))                                                                                          \
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
    X(int, faccessat, (int, const char *, int, int))                                                                   \
    X(int, fchmodat, (int, const char *, mode_t, int))                                                                 \
    X(int, fchmod, (int, mode_t))                                                                                      \
    X(int, fchownat, (int, const char *, uid_t, gid_t, int))                                                           \
    X(int, fchown, (int, uid_t, gid_t))                                                                                \
    X(int, utimensat, (int, const char *, const struct timespec *, int))                                               \
    X(int, futimens, (int, const struct timespec *))                                                                   \
    X(int, mkdirat, (int, const char *, mode_t))                                                                       \
    X(int, symlinkat, (const char *, int, const char *))                                                               \
    X(int, linkat, (int, const char *, int, const char *, int))                                                        \
    X(ssize_t, readlinkat, (int, const char *, char *, size_t))                                                        \
    X(int, unlinkat, (int, const char *, int))                                                                         \
    X(int, renameat2, (int, const char *, int, const char *, unsigned))                                                \
    X(char *, realpath, (const char *, char *))                                                                        \
    X(int, chdir, (const char *))                                                                                      \
    X(int, fchdir, (int))                                                                                              \
    X(char *, getcwd, (char *, size_t))                                                                                \
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
