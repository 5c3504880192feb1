/* Small chunks that are read in the order of their keys, as the files of a folder are by a program that reads those
 * first that were written first: they come from a scan, which reads many of them at once. */
#ifndef DELTAFS_NAMESPACE_CHUNK_STREAM_H
#define DELTAFS_NAMESPACE_CHUNK_STREAM_H

#include <stddef.h>
#include <deltafs/deltafs.h>

/* Zeroed, it can be used. */
struct chunk_stream {
    deltafs_iter *iter;                  /* NULL: nothing is scanned */
    const struct deltafs_record *record; /* its next one */
    uint64_t last;                       /* the key that was asked for last */
    unsigned ascending;                  /* so many were above the one before */
    unsigned failures;                   /* scans in row that were of little use */
    unsigned hits;                       /* of this scan */
    size_t credit;                       /* bytes that it may skip */
};

/* The record of a chunk of at most `room` bytes, valid until the next call; NULL: it is to be looked up. `dir` is
 * always the same, until the stream is closed. */
const struct deltafs_record *chunk_stream_find(struct chunk_stream *s, deltafs_dir *dir, uint64_t key, size_t room);
/* Before `dir` is closed or refreshed. */
void chunk_stream_close(struct chunk_stream *s);

#endif
