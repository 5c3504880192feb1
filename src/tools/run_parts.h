/* The parts of "deltafs run". The functions print a message, and return an exit code. */
#ifndef DELTAFS_TOOLS_RUN_PARTS_H
#define DELTAFS_TOOLS_RUN_PARTS_H

#include <limits.h>
#include <stddef.h>
#include <deltafs/deltafs.h>

#define RUN_MOUNTS_MAX    16
#define RUN_LOGICAL_FILES "logical=/=/" /* in DELTAFS_POSIX: logical files are files for all calls */

struct run_mount {
    int is_particles; /* or a namespace, */
    int is_snapshot;  /* or one that never changes */
    int is_pool;      /* or a pool, whose target is its point */
    char point[PATH_MAX];
    char target[PATH_MAX];
};

struct run {
    int is_hdf5, is_mpiio, is_sync, is_check;
    const char *publish, *label;
    size_t given; /* mounts on the command line, after run_prepare_mounts; the others are these, by other paths */
    size_t count;
    struct run_mount mount[RUN_MOUNTS_MAX];
};

/* ---- Mounts ---- */

/* Parsers of --mount and --particles: POINT=TARGET. They return NULL, or what is wrong. */
const char *run_parse_mount(const char *text, void *run);
const char *run_parse_particles(const char *text, void *run);
const char *run_parse_pool(const char *text, void *run); /* POINT */
/* Make all targets absolute, and check them. */
int run_prepare_mounts(struct run *r);
/* Create the namespaces that do not exist, with the options of the environment; check directories of particles, and
 * that the pools are there. */
int run_create_namespaces(const struct run *r, const deltafs_options *options);

/* ---- The environment of the program ---- */

int run_set_environment(const struct run *r, const deltafs_options *options);

/* ---- Running and what follows ---- */

/* Start a program in place of this one. Returns only if that fails. */
int run_become(char **argv);
/* Start a program, wait for its end, and return its exit status, or 128 + the number of the signal that killed it. */
int run_and_wait(char **argv);
/* Force what has changed below a folder to storage, since a time by the clock of this host. */
int run_sync_folder(const char *folder, time_t since);

/* ---- Checking ---- */

/* Print what of a program would not be seen by a preloaded library. EXIT_NOT_FOUND: there is something. */
int run_check(const char *program);

/* What a program file of the system says of itself. */
struct run_elf {
    int is_elf;
    int is_foreign; /* for another machine, or of another word size; nothing else is known then */
    int is_static, is_go;
    int has_libc;     /* it needs the GNU C library */
    int has_io_uring; /* it needs liburing, or calls it */
    int has_syscall;  /* it calls syscall(2) */
};
/* Returns NULL, or what is wrong with the file. */
const char *run_elf_read(int fd, struct run_elf *out);

#endif
