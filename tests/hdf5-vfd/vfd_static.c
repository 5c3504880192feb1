/* A program that shows the process a part of an HDF5, as one does to which HDF5 is linked statically with -rdynamic.
 * Indexes a file: by another HDF5, which must not call this one. */
#include <stdio.h>
#include <stdlib.h>
#include <deltafs/deltafs_fileindex.h>

int H5Fopen(const char *name);
int H5open(void);
int H5E_clear_stack(void *stack);

int H5Fopen(const char *name)
{
    (void)name;
    abort();
}

int H5open(void)
{
    abort();
}

/* HDF5's own, which each of its functions calls. */
int H5E_clear_stack(void *stack)
{
    (void)stack;
    abort();
}

int main(int argc, char **argv)
{
    deltafs_options *o = NULL;
    int status = argc == 2 ? deltafs_options_create(&o) : DELTAFS_ERR_INVALID;

    if (status == DELTAFS_OK)
        status = deltafs_options_set(o, "key", "/no/such");
    if (status == DELTAFS_OK)
        status = deltafs_index_closed(argv[1], o);
    if (status != DELTAFS_OK)
        fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
    deltafs_options_destroy(o);
    return status != DELTAFS_OK;
}
