/* Compression of a block in the Snappy format.
 *
 * libsnappy decompresses without allocating memory, and readers use it. Its compressor allocates in C++ at each call
 * and ends the process if there is no memory, so writers use this one. It allocates nothing. */
#ifndef DELTAFS_PACK_H
#define DELTAFS_PACK_H

#include <stddef.h>
#include <stdint.h>

/* The longest output for an input of n bytes. */
size_t pack_max(size_t n);

/* Compress n bytes, n < 4 GiB, to `out`, which has room for pack_max(n). Returns the length of the output. */
size_t pack_compress(const uint8_t *in, size_t n, uint8_t *out);

#endif
