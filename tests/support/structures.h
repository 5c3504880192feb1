/* The structures of a log (blocks, those of values too, leaves, fences, footers, the tail's trailer), found by the
 * lengths that they say they have, and sealed: with checksums that are right for whatever stands in them, as a hostile
 * file's are. */
#ifndef DELTAFS_STRUCTURES_H
#define DELTAFS_STRUCTURES_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of the structure that begins at `at` of bytes[0 .. n); 0 if none does. */
size_t structure_length(const uint8_t *bytes, size_t n, size_t at);
/* Seal a block, and its strips, if its flags say that it has them. */
void structures_seal_block(uint32_t seed, uint8_t *block, size_t n, uint32_t strips);
/* Seal all structures of a log; what is no structure is passed over byte by byte. */
void structures_seal_log(uint32_t seed, uint8_t *bytes, size_t n);
/* Seal the header and the batches of an extent log, as far as they have lengths that can be. */
void structures_seal_extents(uint32_t seed, uint8_t *bytes, size_t n);
/* Give all whole lines of a manifest their checksums, where they have room for them. */
void structures_seal_manifest(uint8_t *bytes, size_t n);

#endif
