/* Keys as they are given on the command line and in files. */
#ifndef DELTAFS_TOOLS_KEY_LIST_H
#define DELTAFS_TOOLS_KEY_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KEY_MAX 255 /* bytes of a key */

struct key_list {
    const char *command;  /* for messages */
    int is_bytes, is_hex; /* keys are bytes, given in hexadecimal */
    /* Numbers, or bytes and their sizes. */
    uint64_t *number;
    char **bytes;
    size_t *size;
    size_t count, capacity;
};

/* Each prints a message if it fails, and returns the exit code. `command`, `is_bytes` and `is_hex` are set before; the
 * rest is zero at first. */
int key_list_add(struct key_list *k, const char *text, size_t size);
/* Add the keys of a file, or of standard input if it is "-": separated by blanks, or one key of bytes on each line. */
int key_list_read(struct key_list *k, const char *file);
/* The same of an open file; `name` is for messages. */
int key_list_read_stream(struct key_list *k, FILE *f, const char *name);
/* Refuse hexadecimal digits for keys that are numbers. */
int key_list_check_hex(const struct key_list *k);
void key_list_fini(struct key_list *k);

#endif
