/* Input files of an import: opened once on each rank that reads them, read at offsets. Messages go to a text that the
 * caller provides, with the file's name in them. */
#ifndef DELTAFS_TOOLS_INPUT_H
#define DELTAFS_TOOLS_INPUT_H

#include <stddef.h>
#include <stdint.h>

#define INPUT_MESSAGE_MAX 900

struct input {
    const char *path;
    int fd;
    uint64_t size;
};

/* Each returns 0, or -1 with a message. */
int input_open(struct input *in, const char *path, char message[INPUT_MESSAGE_MAX]);
/* Exactly `n` bytes at `offset`. */
int input_read(const struct input *in, uint64_t offset, void *bytes, size_t n, char message[INPUT_MESSAGE_MAX]);
void input_close(struct input *in);

#endif
