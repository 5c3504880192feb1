/* Opening and closing a reader, with all of its parts. */
#ifndef DELTAFS_DIRECTORY_READER_OPEN_H
#define DELTAFS_DIRECTORY_READER_OPEN_H

#include "directory/read/reader.h"

/* With at most `threads` threads for reading at several places at once, and `cache` bytes of leaves kept. */
int reader_open(const char *path, uint32_t threads, uint64_t cache, struct reader **out, struct error *e);
void reader_close(struct reader *r);

/* See what is committed now. On failure the reader is as it was. */
int reader_refresh(struct reader *r, struct error *e);

#endif
