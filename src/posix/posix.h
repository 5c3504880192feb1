/* Programs as they are: libdeltafs_posix is preloaded, and gives a program mount points that exist in its processes
 * only. Behind one is a namespace, or a directory of particles.
 *
 *     begin.c      reading the environment, before anything else
 *     mount.c      the mount points; route.c: whether a path leads into one
 *     follow.c     symbolic links between the system and mounts
 *     next.c       the functions of the C library that are behind those of this one; library.c: those of libdeltafs
 *     file.c       which descriptors are open files of a mount, and what was written to them (span.c)
 *     file_lock.c  locks of these files (flock); locks.c: those of this library
 *     posix_tree.c the namespaces: a handle of each, which processes of a run take turns to change
 *     tree_*.c     open files of a namespace: opening, reading, publishing, and finding them again
 *     names_open.c open files whose names are changed; folder_names.c: the names in a folder
 *     mark.c       bytes that are written to a descriptor without this library
 *     logical_view.c logical files of the system, which are folders there; logical_file.c: those that are open
 *     internal.c   descriptors of DeltaFS itself, which programs must not close
 *     handover.c   what the next program gets to know: inherited descriptors, the working directory
 *     program.c    programs and libraries that are files of a mount
 *     particles*.c the directories of particles; spool.c: their records, until an epoch ends; placeholder.c: their
 *                  descriptors
 *     posix_job*.c the MPI job that a program is a rank of
 *     pooled*.c    the pools; pooled_file.c: files of them that are open; pooled_lock.c: locks of their parts
 *     call_*.c     the functions that programs call instead of those of the C library, by what they are about
 *
 * Descriptors. An open file has a descriptor that the kernel knows: a memfd, whose offset is the file's. So dup, fork,
 * exec, poll and close_range do what they always do. It also has bytes of the file:
 *  - all, if the file is small or new. Then reading, mapping, sendfile and so on work on it without this library,
 *    also in a program that was not preloaded;
 *  - or only those that were written and are not in the namespace yet. Then read and its kin get the others there.
 * What is written goes to the memfd, and which bytes those are is noted (struct file). They are put into the namespace,
 * and committed, when the file is closed or synced, before fork and exec, and when they have become many: on top of
 * what the file is by then, whoever has written it. So several processes can write parts of one file.
 *
 * Errors: functions of this library return 0 or an error number, those that programs call what the C library's do. */
#ifndef DELTAFS_POSIX_POSIX_H
#define DELTAFS_POSIX_POSIX_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A function that programs call. */
#define CALL __attribute__((visibility("default")))
/* The same function under another name, such as that for large files: all are large here. */
#define CALL_ALIAS(name, of) CALL extern __typeof(of) name __attribute__((alias(#of)))

/* Set errno and return -1 if `error` is not 0. */
int posix_result(int error);

/* Say something on standard error, as "deltafs: ...". The same text is said once only. */
void posix_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
