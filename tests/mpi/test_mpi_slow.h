/* Storage that is slow on the ranks that ask for it: the library's own table of file operations, with writes that take
 * their time. The program must have the library linked into it, with libcore.la. */
#ifndef TEST_MPI_SLOW_H
#define TEST_MPI_SLOW_H

#include <stdatomic.h>

/* From now on the writes of directories that are opened here pass through the following. */
void slow_install(void);
/* Each of them takes so long more. */
void slow_writes(unsigned ms);
/* The next one, and all that come while it does, wait until so long after it. */
void slow_stall(unsigned ms);
/* Whether that stall has begun. */
int slow_has_stalled(void);
/* Those that come now wait until *gate is not 0, or, which is an error, so many seconds. */
void slow_hold(const atomic_int *gate, unsigned seconds);
/* Whether any waited too long. */
int slow_is_client_cached(void);

#endif
