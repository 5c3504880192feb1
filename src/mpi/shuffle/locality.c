/* PMIx is asked only where the process was started under it (Open MPI's mpirun, Slurm), and loaded only then: a program
 * started in another way does not need its library. */
#include "config.h"
#include <sched.h>
#include <stdio.h>
#include "mpi/shuffle/locality.h"

#define CACHE_PATH "/sys/devices/system/cpu/cpu%zu/cache/index3/shared_cpu_list"

/* One more than the first of the processors that share a cache with this one; 0 if the system does not tell. */
static int locality_cache_of(size_t processor)
{
    char path[sizeof CACHE_PATH + 16];
    int first;

    snprintf(path, sizeof path, CACHE_PATH, processor);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    int found = fscanf(f, "%d", &first) == 1 && first >= 0 ? first + 1 : 0;
    fclose(f);
    return found;
}

int locality_cache(void)
{
    cpu_set_t set;
    int cache = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        int its = CPU_ISSET(i, &set) ? locality_cache_of(i) : cache;
        if (CPU_ISSET(i, &set) && (its == 0 || (cache != 0 && its != cache)))
            return 0;
        cache = its;
    }
    return cache;
}

#if HAVE_PMIX
#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PMIX_LIBRARY   "libpmix.so.2"
#define DOMAINS_INSIDE 256 /* NUMA domains that a package can have here */

/* The number after a two-letter name in a text such as "SK0:L30:NM1"; 0 if it is not there. */
static unsigned locality_number(const char *text, const char *name)
{
    for (const char *p = text; p; p = strchr(p, ':')) {
        p += *p == ':';
        if (strncmp(p, name, 2) == 0)
            return (unsigned)strtoul(p + 2, NULL, 10);
    }
    return 0;
}

static int locality_parse(const char *text)
{
    unsigned domain = locality_number(text, "SK") * DOMAINS_INSIDE + locality_number(text, "NM") % DOMAINS_INSIDE;

    return (int)(domain % LOCALITY_DOMAINS);
}

static int locality_ask(void *library)
{
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_info_t optional = {.key = PMIX_OPTIONAL, .value = {.type = PMIX_BOOL, .data = {.flag = 1}}};
    pmix_value_t *value = NULL;
    pmix_proc_t own;
    int found = 0;

    *(void **)&init = dlsym(library, "PMIx_Init");
    *(void **)&get = dlsym(library, "PMIx_Get");
    *(void **)&finalize = dlsym(library, "PMIx_Finalize");
    if (!init || !get || !finalize || init(&own, NULL, 0) != PMIX_SUCCESS)
        return 0;
    /* Do not wait for what the server does not know yet. */
    if (get(&own, PMIX_LOCALITY_STRING, &optional, 1, &value) == PMIX_SUCCESS && value) {
        if (value->type == PMIX_STRING && value->data.string) {
            found = locality_parse(value->data.string);
            free(value->data.string);
        }
        free(value);
    }
    finalize(NULL, 0);
    return found;
}

static int domain; /* of the process */

static void locality_find(void)
{
    if (!getenv("PMIX_NAMESPACE") || !getenv("PMIX_RANK"))
        return;
    void *library = dlopen(PMIX_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    domain = locality_ask(library);
    dlclose(library);
}

int locality_domain(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, locality_find);
    return domain;
}

#else

int locality_domain(void)
{
    return 0;
}

#endif
