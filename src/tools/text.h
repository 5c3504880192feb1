/* What both commands share: messages, numbers in and out. */
#ifndef DELTAFS_TOOLS_TEXT_H
#define DELTAFS_TOOLS_TEXT_H

#include <stdint.h>
#include <stdio.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_NOT_FOUND = 1,
    EXIT_USAGE = 2,
    EXIT_TROUBLE = 3, /* input, output, damage */
};

/* The command's name, in front of its messages. */
extern const char *text_program;

/* Bytes so that a terminal shows them: control characters become \n, \r, \t or \xHH. What does not fit `room` bytes (at
 * least 5) is left out. */
void text_show(const char *bytes, size_t n, char *out, size_t room);

/* "PROGRAM: message", as text_show has it, and a newline to standard error; returns `code`. Where a message of the
 * library's tells a program what to call or set, it says the command's option instead. */
__attribute__((format(printf, 2, 3))) int text_fail(int code, const char *fmt, ...);

/* An unsigned number, decimal or hexadecimal after 0x; the whole text. Returns 0, or -1. */
int text_number(const char *text, uint64_t *out);

/* Room for any number that text_float writes. */
#define TEXT_FLOAT_MAX 40
/* The fewest digits (of 15, 16, 17) that read back as the same double; "nan", "inf", "-inf". Always has a '.', an 'e'
 * or letters, so that it is seen to be a float. */
void text_float(double v, char out[TEXT_FLOAT_MAX]);

/* A path without what MPI-IO's names have in front, `deltafs:`. */
const char *text_path(const char *name);

/* What makes a word of `n` things a plural: "s", or "" of one. */
const char *text_plural(uint64_t n);

/* The exit code for a status of the library. */
int text_exit_code(int status);

/* EXIT_OK if standard output was written completely; otherwise a message, and the trouble's code. */
int text_finish(void);

#endif
