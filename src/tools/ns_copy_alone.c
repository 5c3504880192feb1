#include "tools/ns_copy.h"

void ns_copy_ranks(int *rank, int *ranks)
{
    *rank = 0;
    *ranks = 1;
}

int ns_copy_agree(int code)
{
    return code;
}

void ns_copy_broadcast(void *bytes, size_t size)
{
    (void)bytes;
    (void)size;
}
