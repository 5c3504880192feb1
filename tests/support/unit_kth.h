/* File operations of which the k-th fails, whatever it is. */
#ifndef DELTAFS_UNIT_KTH_H
#define DELTAFS_UNIT_KTH_H

#include "io/io.h"

/* From now on the operations of `out` are counted, from 0, and number `k` fails with `errnum`; a write has then written
 * the half of its bytes. What is opened is closed by the same. */
void unit_kth_begin(struct io *out, uint64_t k, int errnum);
/* The same for files that are opened in the usual way; only operations of threads that have asked for it by
 * unit_kth_count are counted. */
void unit_kth_begin_default(uint64_t k, int errnum);
void unit_kth_count(int is_on);
/* Whether it came to that; fails the test if a file is still open. */
int unit_kth_end(void);
/* The same, but files may be open. */
int unit_kth_has_failed(void);

#endif
