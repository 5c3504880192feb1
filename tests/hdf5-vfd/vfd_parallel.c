/* A parallel HDF5 program: all ranks write one file, with HDF5's driver for MPI-IO or with DeltaFS's, and read it back.
 *
 *   vfd_parallel mpio|deltafs FILE write|read|once [HINT]
 *
 * A small metadata cache has HDF5 write metadata early and read back what other ranks have written; `once` has
 * that written collectively, and needs no atomic mode. With HINT, which is deltafs_NAME=VALUE, that is set, or after
 * RANK: by that rank alone.
 *
 *   vfd_parallel mpio|deltafs FILE CALLS [HINT]
 *
 * CALLS is create, open, change, parts, read-parts, write-parts, groups, heaps, metadata, atomicity, control, or
 * delete. Each rank prints what its calls come to, and what HDF5's error stack says first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_hdf5.h>
#include <H5FDdevelop.h>

#define ROWS    64 /* of each rank */
#define COLUMNS 500
#define GROUPS  300

#define NEED(call) parallel_need((int64_t)(call), #call, __LINE__)

static int rank, ranks;

static int64_t parallel_need(int64_t result, const char *call, int line)
{
    if (result >= 0)
        return result;
    fprintf(stderr, "vfd_parallel: rank %d, line %d: %s failed\n", rank, line, call);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return -1;
}

static hid_t parallel_access(const char *driver, const char *hint)
{
    hid_t fapl = NEED(H5Pcreate(H5P_FILE_ACCESS));
    H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    MPI_Info info = MPI_INFO_NULL;

    const char *colon = hint ? strchr(hint, ':') : NULL;

    if (colon && atoi(hint) != rank)
        hint = NULL;
    else if (colon)
        hint = colon + 1;
    if (hint) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(hint, "="), hint);
        MPI_Info_create(&info);
        MPI_Info_set(info, name, hint + strcspn(hint, "=") + 1);
    }
    if (strcmp(driver, "mpio") == 0)
        NEED(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, info));
    else
        NEED(H5Pset_fapl_deltafs(fapl, MPI_COMM_WORLD, info));
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    NEED(H5Pget_mdc_config(fapl, &cache));
    cache.set_initial_size = 1;
    cache.initial_size = cache.min_size = cache.max_size = 64 << 10;
    cache.dirty_bytes_threshold = 32 << 10;
    NEED(H5Pset_mdc_config(fapl, &cache));
    return fapl;
}

static double parallel_value(hsize_t row, size_t column)
{
    return (double)row * 1000.25 + (double)column;
}

/* This rank's rows: every `ranks`th, so that all write to all chunks. */
static void parallel_rows(hid_t set, hid_t dxpl, int is_write, int whose)
{
    static double value[ROWS][COLUMNS];
    const hsize_t first[2] = {(hsize_t)whose, 0}, step[2] = {(hsize_t)ranks, 1}, count[2] = {ROWS, COLUMNS};
    hid_t space = NEED(H5Dget_space(set)), memory = NEED(H5Screate_simple(2, count, NULL));

    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            value[i][k] = is_write ? parallel_value((hsize_t)whose + i * (hsize_t)ranks, k) : -1;
    NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, step, count, NULL));
    if (is_write)
        NEED(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, value));
    else
        NEED(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, value));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            NEED(value[i][k] == parallel_value((hsize_t)whose + i * (hsize_t)ranks, k) ? 0 : -1);
    NEED(H5Sclose(space));
    NEED(H5Sclose(memory));
}

static hid_t parallel_make(hid_t file, const char *name, hid_t type, hsize_t chunk_rows)
{
    const hsize_t size[2] = {(hsize_t)(ROWS * ranks), COLUMNS}, chunk[2] = {chunk_rows, 100};
    hid_t space = NEED(H5Screate_simple(2, size, NULL)), how = NEED(H5Pcreate(H5P_DATASET_CREATE));

    if (chunk_rows > 0)
        NEED(H5Pset_chunk(how, 2, chunk));
    hid_t set = NEED(H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT));
    NEED(H5Pclose(how));
    NEED(H5Sclose(space));
    return set;
}

/* HDF5 has rank 0 write the fill value of a contiguous dataset, and the others wait for that, but tells its driver
 * nothing: they are to read it all the same. */
static void parallel_fill(hid_t file, int is_write)
{
    const hsize_t size = 1000;
    const double fill = 42.5;
    double value[1000] = {0};
    hid_t space = NEED(H5Screate_simple(1, &size, NULL)), how = NEED(H5Pcreate(H5P_DATASET_CREATE));

    NEED(H5Pset_fill_value(how, H5T_NATIVE_DOUBLE, &fill));
    hid_t set = is_write ? NEED(H5Dcreate2(file, "filled", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT))
                         : NEED(H5Dopen2(file, "filled", H5P_DEFAULT));
    NEED(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    for (size_t i = 0; i < size; i++)
        NEED(value[i] == fill ? 0 : -1);
    NEED(H5Dclose(set));
    NEED(H5Pclose(how));
    NEED(H5Sclose(space));
}

/* Chunked datasets, to which each rank writes as soon as they are made, while others may still be filling them. */
static void parallel_at_once(hid_t file, int is_write)
{
    enum { SETS = 20, OWN = 1000 };
    const hsize_t own = OWN, first = (hsize_t)rank * OWN, size = (hsize_t)ranks * OWN, chunk = 300;
    hid_t space = NEED(H5Screate_simple(1, &size, NULL)), memory = NEED(H5Screate_simple(1, &own, NULL));
    hid_t how = NEED(H5Pcreate(H5P_DATASET_CREATE));
    double value[OWN];
    char name[32];

    NEED(H5Pset_chunk(how, 1, &chunk));
    NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &own, NULL));
    for (int i = 0; i < SETS; i++) {
        snprintf(name, sizeof name, "at once %d", i);
        hid_t set = is_write ? NEED(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT))
                             : NEED(H5Dopen2(file, name, H5P_DEFAULT));
        for (size_t k = 0; k < OWN; k++)
            value[k] = is_write ? parallel_value(first + k, (size_t)i) : -1;
        if (is_write)
            NEED(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value));
        else
            NEED(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value));
        for (size_t k = 0; k < OWN; k++)
            NEED(value[k] == parallel_value(first + k, (size_t)i) ? 0 : -1);
        NEED(H5Dclose(set));
    }
    NEED(H5Pclose(how));
    NEED(H5Sclose(memory));
    NEED(H5Sclose(space));
}

static void parallel_groups(hid_t file, int is_write)
{
    hid_t space = NEED(H5Screate(H5S_SCALAR));
    char name[32];

    for (int i = 0; i < GROUPS; i++) {
        int value = i;
        snprintf(name, sizeof name, "group %d", i);
        hid_t group = is_write ? NEED(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))
                               : NEED(H5Gopen2(file, name, H5P_DEFAULT));
        hid_t a = is_write ? NEED(H5Acreate2(group, "i", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT))
                           : NEED(H5Aopen(group, "i", H5P_DEFAULT));
        if (is_write)
            NEED(H5Awrite(a, H5T_NATIVE_INT, &value));
        else
            NEED(H5Aread(a, H5T_NATIVE_INT, &value));
        NEED(value == i ? 0 : -1);
        NEED(H5Aclose(a));
        NEED(H5Gclose(group));
    }
    NEED(H5Sclose(space));
}

static void parallel_write(const char *path, hid_t fapl, hid_t independent, hid_t collective)
{
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
    hid_t set[4] = {
        parallel_make(file, "contiguous", H5T_NATIVE_DOUBLE, 0), parallel_make(file, "chunked", H5T_NATIVE_DOUBLE, 16),
        parallel_make(file, "converted", H5T_IEEE_F64BE, 0), parallel_make(file, "together", H5T_NATIVE_DOUBLE, 10)};

    parallel_fill(file, 1);
    parallel_at_once(file, 1);
    parallel_rows(set[0], independent, 1, rank);
    parallel_groups(file, 1);
    parallel_rows(set[1], independent, 1, rank);
    parallel_rows(set[2], collective, 1, rank);
    parallel_rows(set[3], collective, 1, rank);
    NEED(H5Fflush(file, H5F_SCOPE_GLOBAL));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        parallel_rows(set[i], independent, 0, (rank + 1) % ranks);
    parallel_groups(file, 0);
    for (int i = 0; i < 4; i++)
        NEED(H5Dclose(set[i]));
    NEED(H5Fclose(file));
}

static void parallel_read(const char *path, hid_t fapl, hid_t independent, hid_t collective)
{
    static const char *const name[] = {"contiguous", "chunked", "converted", "together"};
    hid_t file = NEED(H5Fopen(path, H5F_ACC_RDONLY, fapl));

    for (int i = 0; i < 4; i++) {
        hid_t set = NEED(H5Dopen2(file, name[i], H5P_DEFAULT));
        parallel_rows(set, independent, 0, (rank + 1) % ranks);
        parallel_rows(set, collective, 0, rank);
        NEED(H5Dclose(set));
    }
    parallel_groups(file, 0);
    parallel_fill(file, 0);
    parallel_at_once(file, 0);
    NEED(H5Fclose(file));
}

static void parallel_once(const char *path, hid_t fapl)
{
    NEED(H5Pset_coll_metadata_write(fapl, 1));
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));

    parallel_at_once(file, 1);
    parallel_groups(file, 1);
    parallel_groups(file, 0);
    NEED(H5Fclose(file));
    file = NEED(H5Fopen(path, H5F_ACC_RDONLY, fapl));
    parallel_at_once(file, 0);
    parallel_groups(file, 0);
    NEED(H5Fclose(file));
}

/* ---- Calls that may fail ---- */

static herr_t try_note(unsigned n, const H5E_error2_t *e, void *arg)
{
    if (n == 0)
        snprintf(arg, 512, "%s", e->desc ? e->desc : "");
    return 0;
}

/* Line by line, in one piece each. */
static int try_report(const char *what, int64_t result)
{
    char why[512] = "";

    if (result < 0)
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, try_note, why);
    printf("%s %d: %s%s\n", what, rank, result < 0 ? "failed: " : "ok", why);
    fflush(stdout);
    return result >= 0;
}

/* HDF5's questions to a driver that knows MPI, with and without a place for the answer. */
static void try_control(const char *path, hid_t fapl)
{
    static const uint64_t code[] = {H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE, H5FD_CTL_GET_MPI_INFO_OPCODE,
                                    H5FD_CTL_GET_MPI_RANK_OPCODE, H5FD_CTL_GET_MPI_SIZE_OPCODE,
                                    H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE};
    H5FD_t *file = H5FDopen(path, H5F_ACC_RDONLY, fapl, HADDR_UNDEF);
    void *place, *nowhere = NULL;
    MPI_Comm answer;

    for (size_t i = 0; file && i < sizeof code / sizeof *code; i++) {
        place = &answer;
        try_report("control", H5FDctl(file, code[i], H5FD_CTL_FAIL_IF_UNKNOWN_FLAG, NULL, &place));
        try_report("without", H5FDctl(file, code[i], H5FD_CTL_FAIL_IF_UNKNOWN_FLAG, NULL, i % 2 ? NULL : &nowhere));
    }
    try_report("close", file ? H5FDclose(file) : -1);
}

/* The last rank, and no other, writes one value. */
static void try_change(hid_t file)
{
    const hsize_t one = 1, first = 0;
    const int64_t value = 999999999;
    hid_t set = NEED(H5Dopen2(file, "Timestep_0/id1", H5P_DEFAULT)), space = NEED(H5Dget_space(set));
    hid_t memory = NEED(H5Screate_simple(1, &one, NULL));

    NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &one, NULL));
    if (rank == ranks - 1)
        NEED(H5Dwrite(set, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value));
    NEED(H5Sclose(memory));
    NEED(H5Sclose(space));
    NEED(H5Dclose(set));
}

/* Datasets of which each rank has PART values: two of chunks, the one with checksums, and one to be read and written
 * value by value. */
enum { PART_CHUNK = 40000, PART = 3 * PART_CHUNK };

static const struct part {
    const char *name;
    hsize_t chunk, step;
    int is_checked;
} parts[] = {{"checked", PART_CHUNK, 1, 1}, {"chunked", PART_CHUNK, 1, 0}, {"scattered", 0, 2, 0}};

enum { PARTS = sizeof parts / sizeof *parts };

static void try_make_parts(hid_t file)
{
    const hsize_t size = (hsize_t)ranks * PART;
    hid_t space = NEED(H5Screate_simple(1, &size, NULL));

    for (size_t i = 0; i < PARTS; i++) {
        hid_t how = NEED(H5Pcreate(H5P_DATASET_CREATE));
        if (parts[i].chunk > 0)
            NEED(H5Pset_chunk(how, 1, &parts[i].chunk));
        if (parts[i].is_checked)
            NEED(H5Pset_fletcher32(how));
        NEED(H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY));
        hid_t set = H5Dcreate2(file, parts[i].name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
        try_report(parts[i].name, set);
        if (set >= 0)
            NEED(H5Dclose(set));
        NEED(H5Pclose(how));
    }
    NEED(H5Sclose(space));
}

/* All but the ends of each rank's values, so that chunks which are filtered are read before they are written. */
static void try_parts(hid_t file, hid_t dxpl, int is_write)
{
    static double value[PART];

    for (size_t i = 0; i < PARTS; i++) {
        const hsize_t first = (hsize_t)rank * PART + 100, count = (PART - 200) / parts[i].step;
        hid_t set = NEED(H5Dopen2(file, parts[i].name, H5P_DEFAULT)), space = NEED(H5Dget_space(set));
        hid_t memory = NEED(H5Screate_simple(1, &count, NULL));
        NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &parts[i].step, &count, NULL));
        try_report(parts[i].name, is_write ? H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, value)
                                           : H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, value));
        NEED(H5Sclose(memory));
        NEED(H5Sclose(space));
        NEED(H5Dclose(set));
    }
}

/* So few that all stay in the cache until they are flushed. */
static void try_groups(hid_t file)
{
    enum { FEW = 20 };
    char name[32];

    for (int i = 0; i < FEW; i++) {
        snprintf(name, sizeof name, "group %d", i);
        NEED(H5Gclose(NEED(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    }
    try_report("flush", H5Fflush(file, H5F_SCOPE_GLOBAL));
    try_report("flush", H5Fflush(file, H5F_SCOPE_GLOBAL));
}

/* Values without a fixed size, each with a heap of its own, which HDF5 gives to the driver as values. */
static void try_heaps(hid_t file)
{
    enum { HEAPS = 60, SIZE = 3000 };
    static char text[SIZE + 1];
    const char *value = text;
    hid_t type = NEED(H5Tcopy(H5T_C_S1)), space = NEED(H5Screate(H5S_SCALAR));
    char name[32];

    memset(text, 't', SIZE);
    NEED(H5Tset_size(type, H5T_VARIABLE));
    for (int i = 0; i < HEAPS; i++) {
        snprintf(name, sizeof name, "text %d", i);
        hid_t a = NEED(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
        NEED(H5Awrite(a, type, &value));
        NEED(H5Aclose(a));
    }
    NEED(H5Sclose(space));
    NEED(H5Tclose(type));
    try_report("flush", H5Fflush(file, H5F_SCOPE_GLOBAL));
}

/* The driver's own calls: each rank writes metadata, and reads them and what is beside them. */
static void try_metadata(const char *path, hid_t fapl)
{
    enum { SIZE = 100 };
    const haddr_t at = (haddr_t)rank * 2 * SIZE;
    char bytes[SIZE] = "metadata";
    H5FD_t *file = H5FDopen(path, H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC, fapl, HADDR_UNDEF);

    NEED(file ? 0 : -1);
    NEED(H5FDset_eoa(file, H5FD_MEM_DEFAULT, (haddr_t)ranks * 2 * SIZE));
    try_report("write", H5FDwrite(file, H5FD_MEM_OHDR, H5P_DEFAULT, at, SIZE, bytes));
    try_report("write", H5FDwrite(file, H5FD_MEM_OHDR, H5P_DEFAULT, at + SIZE / 2, SIZE, bytes));
    try_report("read", H5FDread(file, H5FD_MEM_OHDR, H5P_DEFAULT, at + 3 * SIZE / 2 - 1, 2, bytes));
    try_report("beside", H5FDread(file, H5FD_MEM_OHDR, H5P_DEFAULT, at + 3 * SIZE / 2, SIZE / 2, bytes));
    try_report("values", H5FDwrite(file, H5FD_MEM_DRAW, H5P_DEFAULT, at, SIZE, bytes));
    try_report("truncate", H5FDtruncate(file, H5P_DEFAULT, 0));
    try_report("flush", H5FDflush(file, H5P_DEFAULT, 0));
    try_report("close", H5FDclose(file));
}

static void parallel_try(const char *what, const char *path, hid_t fapl, hid_t collective)
{
    hbool_t is_atomic = 0;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (strcmp(what, "control") == 0) {
        try_control(path, fapl);
        return;
    }
    if (strcmp(what, "metadata") == 0) {
        try_metadata(path, fapl);
        return;
    }
    if (strcmp(what, "delete") == 0) {
        try_report("delete", H5Fdelete(path, fapl));
        return;
    }
    int is_read = strcmp(what, "open") == 0 || strcmp(what, "read-parts") == 0;
    int is_change = strcmp(what, "change") == 0 || strcmp(what, "write-parts") == 0;
    hid_t file = is_read     ? H5Fopen(path, H5F_ACC_RDONLY, fapl)
                 : is_change ? H5Fopen(path, H5F_ACC_RDWR, fapl)
                             : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    if (!try_report("open", file))
        return;
    if (strcmp(what, "atomicity") == 0) {
        try_report("set", H5Fset_mpi_atomicity(file, 1));
        try_report("get", H5Fget_mpi_atomicity(file, &is_atomic));
    } else if (strcmp(what, "open") == 0) {
        try_report("dataset", H5Lexists(file, "trajectory", H5P_DEFAULT) > 0 ? 0 : -1);
    }
    if (strcmp(what, "change") == 0)
        try_change(file);
    else if (strcmp(what, "groups") == 0)
        try_groups(file);
    else if (strcmp(what, "heaps") == 0)
        try_heaps(file);
    else if (strcmp(what, "parts") == 0)
        try_make_parts(file);
    else if (strcmp(what, "read-parts") == 0 || strcmp(what, "write-parts") == 0)
        try_parts(file, collective, strcmp(what, "write-parts") == 0);
    try_report("close", H5Fclose(file));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) {
        fprintf(stderr, "vfd_parallel: see its source for what it takes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    hid_t fapl = parallel_access(argv[1], argc > 4 ? argv[4] : NULL);
    hid_t independent = NEED(H5Pcreate(H5P_DATASET_XFER)), collective = NEED(H5Pcreate(H5P_DATASET_XFER));
    NEED(H5Pset_dxpl_mpio(collective, H5FD_MPIO_COLLECTIVE));
    /* By MPI datatypes, or by selections; and of many chunks together, or one after another. */
    NEED(H5Pset_selection_io(collective,
                             getenv("VFD_SELECTION") ? H5D_SELECTION_IO_MODE_ON : H5D_SELECTION_IO_MODE_OFF));
    if (getenv("VFD_CHUNKS")) {
        NEED(H5Pset_dxpl_mpio_chunk_opt(collective, H5FD_MPIO_CHUNK_MULTI_IO));
        /* Also chunks to which one rank writes. */
        NEED(H5Pset_dxpl_mpio_chunk_opt_ratio(collective, 0));
    }
    if (strcmp(argv[3], "write") == 0)
        parallel_write(argv[2], fapl, independent, collective);
    else if (strcmp(argv[3], "read") == 0)
        parallel_read(argv[2], fapl, independent, collective);
    else if (strcmp(argv[3], "once") == 0)
        parallel_once(argv[2], fapl);
    else
        parallel_try(argv[3], argv[2], fapl, collective);
    NEED(H5Pclose(fapl));
    NEED(H5Pclose(independent));
    NEED(H5Pclose(collective));
    MPI_Finalize();
    return 0;
}
