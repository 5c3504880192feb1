/* Messages between nodes that are shorter or longer than the library has them. A program that is linked with this needs
 * the linker's --wrap=plan_make, and the library's objects themselves. */
#ifndef TEST_MPI_MESSAGE_H
#define TEST_MPI_MESSAGE_H

#include <stdint.h>

/* From here on, plans have messages of at most so many bytes. 0: as the library has them. All ranks must call it. */
void limit_message(uint64_t bytes);

#endif
