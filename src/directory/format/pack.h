/* Compression of a block in the Snappy format. libsnappy's compressor allocates in C++ at each call and ends the
 * process if there is no memory; its decompressor takes long to begin, and the parts of a block are short. These
 * allocate nothing. */
#ifndef DELTAFS_PACK_H
#define DELTAFS_PACK_H

#include <stddef.h>
#include <stdint.h>

/* The longest output for an input of n bytes. */
size_t pack_max(size_t n);

/* Compress n bytes, n < 4 GiB, to `out`, which has room for pack_max(n). In the first `skip` of them no repetitions are
 * looked for. Returns the length of the output. */
size_t pack_compress(const uint8_t *in, size_t n, size_t skip, uint8_t *out);

/* Decompress to `n` bytes. Returns 0, or -1 if the input is not the compression of so many bytes; reads and writes
 * nothing beyond either. */
int pack_decompress(const uint8_t *in, size_t packed, uint8_t *out, size_t n);

#endif
