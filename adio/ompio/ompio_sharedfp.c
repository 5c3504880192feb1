/* Where the shared file pointer of a logical file lives.
 *
 * Ranks of one node keep it in shared memory (Open MPI's sharedfp component sm), which knows the file's name only as a
 * name. For several nodes there is lockedfile, a small file beside the file, which it makes under the name that it is
 * given, with the prefix: it finds no such folder. So it is given the path. What is left else is the component
 * individual, which leaves the order of what is written to be made at close, by clocks; that is not taken unless the
 * program asks for it with the hint OMPIO_SHAREDFP_RELAXED_ORDERING. */
#include "ompi/mca/sharedfp/base/base.h"
#include "ompio_deltafs.h"

static mca_sharedfp_base_module_1_0_0_t lockedfile; /* Open MPI's, but for its file_open */
static mca_sharedfp_base_module_file_open_fn_t lockedfile_open;

static int lockedfile_open_path(struct ompi_communicator_t *comm, const char *name, int amode, struct opal_info_t *info,
                                ompio_file_t *fh)
{
    return lockedfile_open(comm, ompio_is_deltafs(name) ? ompio_deltafs_path(name) : name, amode, info, fh);
}

static int is_named(const mca_base_component_t *component, const char *name)
{
    return component != NULL && strcmp(component->mca_component_name, name) == 0;
}

static int is_relaxed(const ompio_file_t *fh)
{
    char value[MPI_MAX_INFO_VAL + 1];
    int found = 0;

    opal_info_get(fh->f_info, "OMPIO_SHAREDFP_RELAXED_ORDERING", MPI_MAX_INFO_VAL, value, &found);
    return found;
}

void ompio_sharedfp_choose(ompio_file_t *fh)
{
    const char *name = fh->f_filename;
    mca_base_component_list_item_t *item;
    mca_sharedfp_base_component_2_0_0_t *component;
    mca_sharedfp_base_module_1_0_0_t *module;
    int priority;

    if (is_named(fh->f_sharedfp_component, "sm") ||
        (is_named(fh->f_sharedfp_component, "individual") && is_relaxed(fh)))
        return;
    fh->f_sharedfp = NULL; /* then its calls are refused with a message */
    fh->f_sharedfp_component = NULL;
    OPAL_LIST_FOREACH(item, &ompi_sharedfp_base_framework.framework_components, mca_base_component_list_item_t)
    {
        if (!is_named(item->cli_component, "lockedfile"))
            continue;
        component = (mca_sharedfp_base_component_2_0_0_t *)(uintptr_t)item->cli_component;
        fh->f_filename = ompio_deltafs_path(name); /* it tries whether there are locks, beside it */
        module = component->sharedfpm_file_query(fh, &priority);
        fh->f_filename = name;
        if (module == NULL || module->sharedfp_module_init(fh) != OMPI_SUCCESS)
            continue;
        lockedfile_open = module->sharedfp_file_open;
        lockedfile = *module;
        lockedfile.sharedfp_file_open = lockedfile_open_path;
        fh->f_sharedfp = &lockedfile;
        fh->f_sharedfp_component = &component->sharedfpm_version;
    }
}
