#include <string.h>
#include "base/sized.h"

/* The size that the caller has set: that of its struct. */
static int sized_get(const void *caller, size_t *size, const char *call, struct error *e)
{
    memcpy(size, caller, sizeof *size);
    return *size >= sizeof *size
               ? DELTAFS_OK
               : error_set(e, DELTAFS_ERR_INVALID, "%s: struct_size is not set; set it to sizeof of the struct", call);
}

/* Copy all members behind struct_size that both structs have; the others become 0. */
static void sized_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
    size_t begin = sizeof(size_t), common = to_size < from_size ? to_size : from_size;

    memset((uint8_t *)to + begin, 0, to_size - begin);
    memcpy((uint8_t *)to + begin, (const uint8_t *)from + begin, common - begin);
}

int sized_fill(void *to, const void *from, size_t size, const char *call, struct error *e)
{
    size_t to_size;
    int status = sized_get(to, &to_size, call, e);

    if (status == DELTAFS_OK)
        sized_copy(to, to_size, from, size);
    return status;
}

int sized_take(void *to, const void *from, size_t size, const char *call, struct error *e)
{
    size_t from_size;
    int status = sized_get(from, &from_size, call, e);

    if (status == DELTAFS_OK) {
        memcpy(to, &size, sizeof size);
        sized_copy(to, size, from, from_size);
    }
    return status;
}
