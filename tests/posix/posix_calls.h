/* What the parts of posix_calls share. */
#ifndef TESTS_POSIX_CALLS_H
#define TESTS_POSIX_CALLS_H
#include <sys/types.h>
#include "tests/posix/say.h"

extern const char *folder; /* the one that is the argument of the program */

/* A pointer: whether it is there. */
void say_pointer(const char *label, const void *p);
void say_text(const char *label, const char *text);
/* Bytes of a file. */
void say_bytes(const char *label, const char *path, off_t at, size_t size);
/* For qsort(): two char *. */
int compare_names(const void *a, const void *b);

/* The parts. */
void check_folders(void);
void check_walks(void);
void check_paths(void);
void check_names(void);
void check_streams(void);
void check_maps(void);
void check_other(void);
void check_refused(void);
#endif
