/* Results that programs of the tests print, and what they need. */
#ifndef TESTS_POSIX_SAY_H
#define TESTS_POSIX_SAY_H

/* Print one result: a label, and a number; if that is negative, the error. */
void say(const char *label, long long n);
/* End the program with a message if a call has failed: its result is negative. */
void check(const char *what, long long result);
#define CHECK(call) check(#call, (long long)(call))
/* Create a file with this text, and nothing else in it; print an error. */
void make_file(const char *path, const char *text);

#endif
