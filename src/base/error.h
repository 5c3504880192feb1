/* A status with the text that explains it. Every function that can fail takes a `struct error *` (never NULL), sets it
 * where the cause is known, and returns the status; callers pass both on unchanged. */
#ifndef DELTAFS_BASE_ERROR_H
#define DELTAFS_BASE_ERROR_H

#include <deltafs/deltafs.h>

#define ERROR_TEXT_MAX 1024

struct error {
    int status;
    char text[ERROR_TEXT_MAX];
};

/* Set status and text; returns the status. The arguments may point into e->text, so that a message can be extended. A
 * text that does not fit is truncated and ends in "...". */
__attribute__((format(printf, 3, 4))) int error_set(struct error *e, int status, const char *fmt, ...);

/* A failed system call: `what` it was doing to `path`, and errno's value. */
int error_system(struct error *e, int errnum, const char *what, const char *path);

/* Bytes at `offset` of `path` that are not what was written. */
__attribute__((format(printf, 4, 5))) int error_damaged(struct error *e, const char *path, uint64_t offset,
                                                        const char *fmt, ...);

int error_no_memory(struct error *e, size_t bytes, const char *what);

/* Takes the message of a failure that nobody reads. One per thread. */
struct error *error_ignored(void);

/* Of several steps the first error counts. For a step that is taken whatever the earlier ones returned:
 *     status = error_first(status, io_file_close(&file, error_after(status, e))); */
static inline struct error *error_after(int status, struct error *e)
{
    return status == DELTAFS_OK ? e : error_ignored();
}

static inline int error_first(int status, int later)
{
    return status != DELTAFS_OK ? status : later;
}

#endif
