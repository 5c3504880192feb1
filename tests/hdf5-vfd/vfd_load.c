/* Loads a module out of sight, as Python does, and calls its function index_file with each argument.
 *
 *     vfd_load MODULE FILE... */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, *symbol;
    int (*call)(const char *file), status = 0;

    if (!module || !(symbol = dlsym(module, "index_file"))) {
        fprintf(stderr, "%s\n", module || argc > 1 ? dlerror() : "no module");
        return 2;
    }
    memcpy(&call, &symbol, sizeof call);
    for (int i = 2; i < argc && status == 0; i++)
        status = call(argv[i]);
    return status == 0 ? 0 : 1;
}
