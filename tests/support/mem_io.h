/* Files in memory in place of the operating system's, for directories that are opened between mem_io_begin and
 * mem_io_end: quick, and what stands in them is the test's to change. A folder is there if a file is in it. */
#ifndef DELTAFS_MEM_IO_H
#define DELTAFS_MEM_IO_H

#include <pthread.h>
#include "io/io.h"

#define MEM_FILES_MAX 64
#define MEM_NAME_MAX  96

struct mem_file {
    char name[MEM_NAME_MAX]; /* the whole path; "" : this place is free */
    uint8_t *bytes;
    size_t n, capacity;
    uint64_t hole; /* zeros behind the bytes, which take no memory */
};

struct mem_io {
    pthread_mutex_t lock;
    struct mem_file file[MEM_FILES_MAX];
    uint64_t is_open[MEM_FILES_MAX + 1]; /* by file, the last for folders: how often */
};

void mem_io_begin(struct mem_io *m);
/* Forget all files. Returns how many were still open. */
uint64_t mem_io_end(struct mem_io *m);

/* A file's place, or NULL. */
struct mem_file *mem_find(struct mem_io *m, const char *name);
/* A file with these bytes, made or replaced. Ends the program where there is no room. */
struct mem_file *mem_put(struct mem_io *m, const char *name, const void *bytes, size_t n);
void mem_remove(struct mem_io *m, const char *name);

#endif
