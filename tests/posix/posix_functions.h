/* What the parts of posix_functions share. */
#ifndef TESTS_POSIX_FUNCTIONS_H
#define TESTS_POSIX_FUNCTIONS_H
#include <stddef.h>
#include <sys/stat.h>
#include "tests/posix/say.h"

#define LARGE (6 << 20) /* bytes of a file that is not in memory when it is opened */

/* Print a result; if that is -1, the error. */
void show(const char *what, long long result);
#define SHOW(call) show(#call, (long long)(call))
/* The bytes of a file, as far as they can be printed. */
void show_file(const char *path);
void show_stat(const char *what, int result, const struct stat *st);
/* A file of LARGE bytes; each number in it is its own place. */
void make_large(const char *path);
/* mmap(), whose result is shown. Returns NULL if it fails. */
char *map(int fd, size_t size, int protection, int flags, off_t from);

/* The parts. */
void opening(void);
void copies(void);
void bytes_of_one(void);
void appending(void);
void large_file(void);
void attributes(void);
void names(void);
void stream_modes(void);
void stream_calls(void);
void large_stream(void);
void opening_again(void);
void mapping(void);
void mapping_large(void);
void mapping_huge(void);
void kernel_calls(void);
void kernel_maps(void);
#endif
