/* Streams of files of mounts. */
#ifndef DELTAFS_POSIX_STREAMS_H
#define DELTAFS_POSIX_STREAMS_H

/* At the end of the process: write what is in their buffers. The C library would do so when it is too late. */
void streams_flush(void);

#endif
