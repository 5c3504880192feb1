/* A quick test for values that nothing makes smaller, so that no time is spent on trying. */
#ifndef DELTAFS_DIRECTORY_NOISE_H
#define DELTAFS_DIRECTORY_NOISE_H

#include <stddef.h>
#include <stdint.h>

#define NOISE_SAMPLE 16 /* values that are looked at, and the fewest that there must be */
#define NOISE_BYTES  8  /* shorter values have too few bits to tell, and are never noise */

/* Whether too few bits are the same, or follow from others, in all values of a sample. Values, order, n and size are
 * those of planes_split. */
int values_are_noise(const uint8_t *values, const uint32_t *order, size_t n, size_t size);

#endif
