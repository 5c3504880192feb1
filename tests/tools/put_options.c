#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "put_options.h"

int complain(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    return -1;
}

deltafs_options *put_options(int argc, char **argv, int from, int *is_abandoned)
{
    deltafs_options *o;

    *is_abandoned = 0;
    if (deltafs_options_create(&o) != DELTAFS_OK)
        return NULL;
    for (int i = from; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (strcmp(argv[i], "--abandon") == 0) {
            *is_abandoned = 1;
            continue;
        }
        if (equals)
            *equals++ = '\0';
        if (!equals || deltafs_options_set(o, argv[i], equals) != DELTAFS_OK) {
            complain(argv[i], equals ? deltafs_errmsg(NULL) : "neither OPTION=VALUE nor --abandon");
            deltafs_options_destroy(o);
            return NULL;
        }
    }
    return o;
}
