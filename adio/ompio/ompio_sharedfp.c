/* Where the shared file pointer of a file lives.
 *
 * Open MPI has three components for it. sm uses shared memory and serves the ranks of one node. lockedfile uses a small
 * file beside the file, whose name it is given without the prefix, and serves several nodes; a file of a pool cannot
 * have one. individual exchanges two writes of a rank within a microsecond, and ours often are that close. So it is
 * never used, whatever the hint OMPIO_SHAREDFP_RELAXED_ORDERING says; the others keep the order that it asks for. */
#include "ompi/mca/sharedfp/base/base.h"
#include "ompio_deltafs.h"

#define NAME_LENGTH_MAX 224 /* with what it puts behind the name, this fits into its 256 bytes */

static mca_sharedfp_base_module_1_0_0_t lockedfile; /* Open MPI's, but for its file_open */
static mca_sharedfp_base_module_file_open_fn_t lockedfile_open;

static int lockedfile_open_path(struct ompi_communicator_t *comm, const char *name, int amode, struct opal_info_t *info,
                                ompio_file_t *fh)
{
    return lockedfile_open(comm, ompio_deltafs_path(name), amode, info, fh);
}

static mca_sharedfp_base_component_2_0_0_t *component_named(const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_sharedfp_base_framework.framework_components, mca_base_component_list_item_t)
    if (strcmp(item->cli_component->mca_component_name, name) == 0)
        return (mca_sharedfp_base_component_2_0_0_t *)(uintptr_t)item->cli_component;
    return NULL;
}

/* Whether the component serves the file, which it sees under the name `as`. A long name would overflow lockedfile. */
static mca_sharedfp_base_module_1_0_0_t *choose(ompio_file_t *fh, const char *component, const char *as)
{
    mca_sharedfp_base_component_2_0_0_t *c = component_named(component);
    const char *name = fh->f_filename;
    mca_sharedfp_base_module_1_0_0_t *module = NULL;
    int priority;

    if (c != NULL && strlen(as) < NAME_LENGTH_MAX) {
        fh->f_filename = as;
        module = c->sharedfpm_file_query(fh, &priority);
        fh->f_filename = name;
    }
    if (module == NULL || module->sharedfp_module_init(fh) != OMPI_SUCCESS)
        return NULL;
    fh->f_sharedfp_component = &c->sharedfpm_version;
    return fh->f_sharedfp = module;
}

void ompio_sharedfp_choose(ompio_file_t *fh)
{
    fh->f_sharedfp = NULL; /* without any its calls are refused */
    fh->f_sharedfp_component = NULL;
    if (choose(fh, "sm", OMPIO_DELTAFS_PREFIX) == NULL &&
        !deltafs_mpi_file_is_pooled(((const struct ompio_deltafs *)fh->f_fs_ptr)->handle) &&
        choose(fh, "lockedfile", ompio_deltafs_path(fh->f_filename)) != NULL) {
        lockedfile_open = fh->f_sharedfp->sharedfp_file_open;
        lockedfile = *fh->f_sharedfp;
        lockedfile.sharedfp_file_open = lockedfile_open_path;
        fh->f_sharedfp = &lockedfile;
    }
}
