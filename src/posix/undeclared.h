/* Functions of the C library that no header declares, because compilers or older headers put their calls there: the
 * checked ones of _FORTIFY_SOURCE, and stat and mknod of programs that were built before version 2.33. And those of
 * MPI, whose header is not used here. */
#ifndef DELTAFS_POSIX_UNDECLARED_H
#define DELTAFS_POSIX_UNDECLARED_H

#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list list);
int __dup2(int from, int to);
off_t __lseek(int fd, off_t offset, int whence);
ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *bytes, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *bytes, size_t size, off_t at, size_t room);
ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
char *__getcwd_chk(char *path, size_t size, size_t room);
char *__getwd_chk(char *path, size_t room);
int __xstat(int version, const char *path, struct stat *out);
int __xstat64(int version, const char *path, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __lxstat64(int version, const char *path, struct stat *out);
int __fxstat(int version, int fd, struct stat *out);
int __fxstat64(int version, int fd, struct stat *out);
int __fxstatat(int version, int folder, const char *path, struct stat *out, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat *out, int flags);
int __xmknod(int version, const char *path, mode_t mode, const dev_t *device);
int __xmknodat(int version, int folder, const char *path, mode_t mode, const dev_t *device);

int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
void mpi_init_(int *code);
void mpi_init_f08_(int *code);
void mpi_init_thread_(int *required, int *provided, int *code);
void mpi_init_thread_f08_(int *required, int *provided, int *code);

#endif
