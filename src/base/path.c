#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/path.h"

char *path_absolute(const char *path)
{
    char *here = path[0] == '/' ? NULL : get_current_dir_name(), *out = NULL;

    /* A folder that has no name any more: what is in it cannot be found otherwise. */
    if (!here)
        return strdup(path);
    if (asprintf(&out, "%s/%s", strcmp(here, "/") == 0 ? "" : here, path) < 0)
        out = NULL;
    free(here);
    return out;
}
