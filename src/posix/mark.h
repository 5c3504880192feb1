/* Bytes that are written to a descriptor without this library: what the C library has for standard output it writes by
 * itself, and a program that is not preloaded inherits descriptors.
 *
 * Such bytes end at the offset of the descriptor, or at the end of the memfd with O_APPEND, and begin at a mark. All
 * processes that share a descriptor share the mark: it is the memfd's time of access, which nothing else changes. Who
 * publishes moves it on, so these bytes are published once, by whoever comes first. */
#ifndef DELTAFS_POSIX_MARK_H
#define DELTAFS_POSIX_MARK_H

#include "posix/file.h"

/* From now on others may write to a file; its bytes that are noted stay noted. With its lock. */
int mark_begin(struct file *f, int fd);
/* The bytes between the mark and the end, as *out; none: from is to. */
int mark_find(struct file *f, int fd, struct span *out);
/* Before a file is published: note these bytes; what was added and is before the mark, others have published. */
int mark_collect(struct file *f, int fd, struct span *out);
/* Move the mark. */
int mark_set(struct file *f, int fd, uint64_t at);
/* Move it to where the bytes end: there are none then. */
int mark_set_at_end(struct file *f, int fd);
/* Before the offset of a descriptor is set: note what is there; and behind that: move the mark to the offset. */
int mark_before_seek(struct file *f, int fd);
int mark_after_seek(struct file *f, int fd);

#endif
