#include <string.h>
#include "base/sized.h"

/* Copy all members behind struct_size that both structs have; the others become 0. `caller` is one of the two. */
static int sized_copy(void *to, size_t to_size, const void *from, size_t from_size, size_t caller, const char *call,
                      struct error *e)
{
    size_t begin = sizeof caller, common = to_size < from_size ? to_size : from_size;

    if (caller < begin)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: struct_size is not set; set it to sizeof of the struct", call);
    memset((uint8_t *)to + begin, 0, to_size - begin);
    memcpy((uint8_t *)to + begin, (const uint8_t *)from + begin, common - begin);
    return DELTAFS_OK;
}

int sized_fill(void *to, const void *from, size_t size, const char *call, struct error *e)
{
    size_t caller;

    memcpy(&caller, to, sizeof caller);
    return sized_copy(to, caller, from, size, caller, call, e);
}

int sized_take(void *to, const void *from, size_t size, const char *call, struct error *e)
{
    size_t caller;

    memcpy(&caller, from, sizeof caller);
    memcpy(to, &size, sizeof size);
    return sized_copy(to, size, from, caller, caller, call, e);
}
