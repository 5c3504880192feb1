/* The configuration string (HDF5_DRIVER_CONFIG, or the program's own): NAME=VALUE ..., separated by ';' or blanks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "h5fd.h"

#define SEPARATORS "; \t\n"

/* A size, with K, M or G. */
static int config_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end;

    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

    if (errno || end == text || *text == '-' || (*end && (!unit || end[1])) || n > UINT64_MAX >> shift)
        return -1;
    *out = (uint64_t)n << shift;
    return 0;
}

static int config_set(struct vfd_config *config, const struct vfd_calls *calls, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: the driver's configuration: '%s' is not NAME=VALUE", word);
    *value++ = '\0';
    if (strcmp(word, "records") == 0) {
        if (config_size(value, &config->records) != 0)
            return vfd_fail(
                calls, VFD_CANNOT_OPEN,
                "deltafs: the driver's configuration: records takes a number of bytes, with K, M or G, not '%s'",
                value);
        return 0;
    }
    if (deltafs_options_set(config->options, word, value) == DELTAFS_OK)
        return 0;
    return vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: the driver's configuration: %s%s", deltafs_errmsg(NULL),
                    strncmp(deltafs_errmsg(NULL), "no option", 9) == 0 ? "; and, of the driver's own, records" : "");
}

int vfd_config_init(struct vfd_config *config, const struct vfd_calls *calls, hid_t fapl)
{
    int rc = 0;

    *config = (struct vfd_config){0};
    if (vfd_result(calls, VFD_CANNOT_OPEN, deltafs_options_create(&config->options)) != 0)
        return -1;
    ssize_t size = calls->config ? calls->config(fapl, NULL, 0) : 0;
    if (size > 0) {
        char *text = calloc(1, (size_t)size + 1), *rest;
        if (!text || calls->config(fapl, text, (size_t)size + 1) != size)
            rc = vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: the driver's configuration cannot be read");
        for (char *word = rc == 0 ? strtok_r(text, SEPARATORS, &rest) : NULL; word && rc == 0;
             word = strtok_r(NULL, SEPARATORS, &rest))
            rc = config_set(config, calls, word);
        free(text);
    }
    if (rc != 0)
        vfd_config_fini(config);
    return rc;
}

void vfd_config_fini(struct vfd_config *config)
{
    deltafs_options_destroy(config->options);
    config->options = NULL;
}
