/* fcoll component: collective reads and writes of a file.
 *
 * Each rank moves its own bytes: into its own log, or a pool, there is nothing to gain from handing them to an
 * aggregator first. It would also be wrong with Open MPI's two_phase, which reads what is around the holes and writes
 * it back: over bytes of other ranks that are not published yet. So fs refuses to open a file if this component was
 * left out. */
#include "ompio_deltafs.h"

extern mca_fcoll_base_component_2_0_0_t mca_fcoll_deltafs_component;

static mca_fcoll_base_module_1_0_0_t module = {
    .fcoll_module_init = ompio_nothing,
    .fcoll_module_finalize = ompio_nothing,
    .fcoll_file_read_all = mca_common_ompio_file_read,
    .fcoll_file_write_all = mca_common_ompio_file_write,
};

static mca_fcoll_base_module_1_0_0_t *fcoll_file_query(ompio_file_t *fh, int *priority)
{
    return ompio_file_query(fh, priority) ? &module : NULL;
}

/* For deltafs doctor. */
DELTAFS_API const char deltafs_driver_version[] = DELTAFS_VERSION;
DELTAFS_API const char deltafs_driver_mpi[] = OMPIO_BUILT_FOR;

DELTAFS_API mca_fcoll_base_component_2_0_0_t mca_fcoll_deltafs_component = {
    .fcollm_version = {MCA_FCOLL_BASE_VERSION_2_0_0, OMPIO_DELTAFS_VERSION},
    .fcollm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fcollm_init_query = ompio_init_query,
    .fcollm_file_query = fcoll_file_query,
    .fcollm_file_unquery = ompio_nothing,
};
