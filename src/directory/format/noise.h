/* A quick test for values, and for bytes of them, that nothing makes smaller, so that no time is spent on trying. */
#ifndef DELTAFS_DIRECTORY_NOISE_H
#define DELTAFS_DIRECTORY_NOISE_H

#include <stddef.h>
#include <stdint.h>

#define NOISE_PAIRS  16 /* of neighbours that are looked at */
#define NOISE_VALUES 32 /* the fewest values that there must be */
#define NOISE_BYTES  8  /* shorter values have too few bits to tell, and are never noise as a whole */

struct noise {
    size_t size; /* 0: there are too few values, and none is noise */
    const uint8_t *value[NOISE_PAIRS], *next[NOISE_PAIRS];
};

/* Choose the values that are looked at. Values, n and size are those of planes_split. */
void noise_choose(struct noise *s, const uint8_t *values, size_t n, size_t size);
/* Whether too few of the values' bits are regular. */
int noise_is_all(const struct noise *s);
/* How many of the `size` bytes from `at` on are before the first one that has a regular bit. */
size_t noise_front(const struct noise *s, size_t at, size_t size);

#endif
