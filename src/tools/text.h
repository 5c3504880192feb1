/* What both commands share: messages, exit codes, numbers. */
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

/* Whether this rank prints nothing, because rank 0 prints it. */
extern int text_is_silent;

/* Bytes of the UTF-8 character at `text`, of which `n` are there: 1 to 4, or 0 if it is none: incomplete, longer than
 * necessary, a surrogate, or beyond U+10FFFF. */
size_t text_utf8_length(const char *text, size_t n);

/* Bytes of what a terminal shows for the character at `text`, or 0 if its first byte is one of a control character.
 * These are U+0000 to U+001F and U+007F to U+009F, in UTF-8 or as one byte. */
size_t text_character(const char *text, size_t n);

/* Make bytes printable on a terminal: control characters become \n, \r, \t or \xHH. What does not fit into `room` bytes
 * (at least 5) is left out. */
void text_show(const char *bytes, size_t n, char *out, size_t room);

/* Print a line to standard output, of which a part may be a name from elsewhere. */
__attribute__((format(printf, 1, 2))) void text_say(const char *fmt, ...);

/* Print "PROGRAM: message" to standard error; returns `code`. A silent rank keeps the message instead. */
__attribute__((format(printf, 2, 3))) int text_fail(int code, const char *fmt, ...);

/* Keep a message of this rank alone, for ranks_agree to print; returns `code`. */
__attribute__((format(printf, 2, 3))) int text_keep(int code, const char *fmt, ...);
const char *text_kept(void); /* the message kept last, or "" */
void text_print_kept(void);

/* An unsigned number, decimal or hexadecimal after 0x; the whole text. Returns 0, or -1. */
int text_number(const char *text, uint64_t *out);

/* A path without the prefix of MPI-IO's names, `deltafs:`. */
const char *text_path(const char *name);

/* Whether a name is NS:/PATH, which is split at the first ":/". */
int text_is_in_namespace(const char *name);

/* The ending of a word for `n` things: "s", or "" for one. */
const char *text_plural(uint64_t n);

/* The exit code for a status of the library. */
int text_exit_code(int status);

/* EXIT_OK if a call of the library returned DELTAFS_OK; otherwise its message, and EXIT_TROUBLE. */
int text_of_call(int status);

/* EXIT_OK if standard output was written completely; otherwise a message, and EXIT_TROUBLE. */
int text_finish(void);

/* Whether the last part of a path ends like dump.STEP.RANK or dump.STEP.RANK.bin. */
int text_ends_in_rank(const char *path);

#endif
