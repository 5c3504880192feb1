/* What the parts of posix_calls share. */
#ifndef TESTS_POSIX_CALLS_H
#define TESTS_POSIX_CALLS_H
#include <sys/types.h>

extern const char *folder; /* the one that is the argument of the program */

/* Print one result: a label, and a number; if that is negative, the error. */
void say(const char *label, long long n);
/* A pointer: whether it is there. */
void say_pointer(const char *label, const void *p);
void say_text(const char *label, const char *text);
/* Bytes of a file. */
void say_bytes(const char *label, const char *path, off_t at, size_t size);
void make_file(const char *path, const char *text);
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
