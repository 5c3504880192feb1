#include "posix/next.h"
#include <dlfcn.h>
#include <stdlib.h>

struct next next;

/* A function that this C library does not have stays NULL: then no program calls it. */
void next_begin(void)
{
#define NEXT_FIND(type, name, parameters) *(void **)&next.name = dlsym(RTLD_NEXT, #name);
    NEXT_FUNCTIONS(NEXT_FIND)
#undef NEXT_FIND
}
