/* A program that knows HDF5 and nothing of DeltaFS, for the tests of the driver: which driver it uses, the environment
 * says.
 *
 *   vfd_probe make FILE             a file with a bit of everything; the same values in each
 *   vfd_probe change FILE           open it again and change some
 *   vfd_probe digest FILE           a checksum of all values in it
 *   vfd_probe why FILE [swmr|write] open it and print the error stack's messages, or "opened"
 *   vfd_probe read FILE DATASET     read it, of doubles, and print the error stack's messages, or nothing
 *   vfd_probe is FILE               what H5Fis_accessible says
 *   vfd_probe delete FILE           by H5Fdelete
 *   vfd_probe flush FILE            write, flush, and die without closing
 *   vfd_probe die FILE              the same without flushing
 *   vfd_probe split FILE            metadata and values in a file each, flushed by a process that dies then
 *   vfd_probe handler FILE          close one with an error handler as HDF5 1.6 had them, which must stay
 *   vfd_probe lists FILE            IDs, and beside them lists in arrays of arrays
 *   vfd_probe vector FILE           short pieces written and read by one call of the driver
 *   vfd_probe none FILE             hand the driver what is no selection, and print the error stack's messages
 *   vfd_probe sieve FILE            what `make` has left: runs that are read with the gaps between them
 *   vfd_probe swmr FILE             one process writes rows, and another that has it open already reads them
 *   vfd_probe hostile FILE N PATH.. change a byte of some PATH, N times, and read FILE each time: must not crash
 *   vfd_probe time FILE MIB GROUPS  wall and processor seconds to write, to read 1 MiB at a time, and to make groups */
#include <hdf5.h>
#include <H5FDdevelop.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS    300
#define COLUMNS 250
#define TEXTS   100
#define MIB     (1u << 20)

/* What any failing call leads to. */
#define NEED(call) probe_need((int64_t)(call), #call, __LINE__)

static int64_t probe_need(int64_t result, const char *call, int line)
{
    if (result >= 0)
        return result;
    fprintf(stderr, "vfd_probe: line %d: %s failed\n", line, call);
    exit(1);
}

static uint64_t probe_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static hid_t probe_dataset(hid_t at, const char *name, hid_t type, int rank, const hsize_t *size, const hsize_t *chunk)
{
    hid_t space = NEED(H5Screate_simple(rank, size, NULL)), how = NEED(H5Pcreate(H5P_DATASET_CREATE));

    if (chunk)
        NEED(H5Pset_chunk(how, rank, chunk));
    if (chunk)
        NEED(H5Pset_shuffle(how));
    hid_t set = NEED(H5Dcreate2(at, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT));
    NEED(H5Pclose(how));
    NEED(H5Sclose(space));
    return set;
}

static hid_t probe_chunks(const hsize_t chunk[2])
{
    hid_t how = NEED(H5Pcreate(H5P_DATASET_CREATE));

    NEED(H5Pset_chunk(how, 2, chunk));
    return how;
}

static void make_arrays(hid_t file)
{
    static double value[ROWS][COLUMNS];
    const hsize_t size[2] = {ROWS, COLUMNS}, chunk[2] = {32, 32};
    uint64_t seed = 1;

    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            value[i][k] = (double)(probe_random(&seed) >> 11);
    hid_t group = NEED(H5Gcreate2(file, "arrays", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t a = probe_dataset(group, "contiguous", H5T_IEEE_F64LE, 2, size, NULL);
    hid_t b = probe_dataset(group, "chunked", H5T_IEEE_F32BE, 2, size, chunk);
    NEED(H5Dwrite(a, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    NEED(H5Dwrite(b, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    NEED(H5Dclose(a));
    NEED(H5Dclose(b));
    NEED(H5Gclose(group));
}

/* Every third row and seventh column, from memory of another shape. */
static void make_strided(hid_t file, int start)
{
    const hsize_t size[2] = {1000, 1000}, first[2] = {(hsize_t)start, 2}, step[2] = {3, 7}, count[2] = {300, 140};
    const hsize_t line = 300 * 140;
    int32_t *value = malloc(line * sizeof *value);
    hid_t set = H5Lexists(file, "strided", H5P_DEFAULT) > 0
                    ? NEED(H5Dopen2(file, "strided", H5P_DEFAULT))
                    : probe_dataset(file, "strided", H5T_STD_I32LE, 2, size, NULL);
    hid_t space = NEED(H5Dget_space(set)), memory = NEED(H5Screate_simple(1, &line, NULL));

    for (hsize_t i = 0; i < line && value; i++)
        value[i] = (int32_t)(i + (hsize_t)start * line);
    NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, step, count, NULL));
    NEED(H5Dwrite(set, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, value));
    NEED(H5Sclose(space));
    NEED(H5Sclose(memory));
    NEED(H5Dclose(set));
    free(value);
}

/* Chunks that are too long for HDF5's cache are handed over as selections, many in one call, whose lists are shortened:
 * a driver that read on behind their ends crashed. */
static void make_large_chunks(hid_t file)
{
    const hsize_t size[2] = {5 * ROWS, 2 * COLUMNS}, chunk[2] = {ROWS, 2 * COLUMNS};
    double *value = malloc(size[0] * size[1] * sizeof *value);
    hid_t set = NEED(H5Dcreate2(file, "large chunks", H5T_IEEE_F64LE, NEED(H5Screate_simple(2, size, NULL)),
                                H5P_DEFAULT, probe_chunks(chunk), H5P_DEFAULT));

    for (size_t i = 0; i < size[0] * size[1] && value; i++)
        value[i] = 0.5 * (double)i;
    NEED(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    NEED(H5Dclose(set));
    free(value);
}

static void make_texts(hid_t file)
{
    static char text[TEXTS][40];
    char *place[TEXTS];
    const hsize_t size = TEXTS;
    hid_t type = NEED(H5Tcopy(H5T_C_S1));

    for (size_t i = 0; i < TEXTS; i++) {
        snprintf(text[i], sizeof text[i], "%.*s %zu", (int)(i % 30), "..............................", i);
        place[i] = text[i];
    }
    NEED(H5Tset_size(type, H5T_VARIABLE));
    hid_t set = probe_dataset(file, "texts", type, 1, &size, NULL);
    NEED(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, place));
    NEED(H5Dclose(set));
    NEED(H5Tclose(type));
}

static void make_attributes(hid_t file)
{
    hid_t space = NEED(H5Screate(H5S_SCALAR));
    char name[32];

    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "attributes %d", i);
        hid_t group = NEED(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        hid_t a = NEED(H5Acreate2(group, "i", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT));
        NEED(H5Awrite(a, H5T_NATIVE_INT, &i));
        NEED(H5Aclose(a));
        NEED(H5Gclose(group));
    }
    NEED(H5Sclose(space));
}

static int probe_make(const char *path)
{
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));

    make_arrays(file);
    make_strided(file, 0);
    make_large_chunks(file);
    make_texts(file);
    NEED(H5Fflush(file, H5F_SCOPE_GLOBAL));
    make_attributes(file);
    NEED(H5Ldelete(file, "attributes 7", H5P_DEFAULT));
    NEED(H5Fclose(file));
    return 0;
}

static int probe_change(const char *path)
{
    hid_t file = NEED(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));

    /* A file that was opened by a relative name stays what it is in another folder. */
    NEED(chdir("/"));
    make_strided(file, 1);
    NEED(H5Ldelete(file, "attributes 11", H5P_DEFAULT));
    NEED(H5Ldelete(file, "texts", H5P_DEFAULT));
    make_texts(file);
    NEED(H5Fclose(file));
    return 0;
}

static int probe_die(const char *path, int is_flushed)
{
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));

    make_arrays(file);
    if (is_flushed)
        NEED(H5Fflush(file, H5F_SCOPE_GLOBAL));
    _exit(0);
}

/* Metadata and values in a file each, of which the latter has fewer bytes than a superblock. */
static hid_t split_open(const char *path, int is_new)
{
    hid_t how = NEED(H5Pcreate(H5P_FILE_ACCESS)), part = NEED(H5Pcreate(H5P_FILE_ACCESS));

    NEED(H5Pset_driver_by_name(part, "deltafs", NULL));
    NEED(H5Pset_fapl_split(how, "-m.h5", part, "-r.h5", part));
    hid_t file = NEED(is_new ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how) : H5Fopen(path, H5F_ACC_RDONLY, how));
    NEED(H5Pclose(part));
    NEED(H5Pclose(how));
    return file;
}

/* What is flushed is there though the process dies; returns 1 if it is not. */
static int probe_split(const char *path)
{
    const hsize_t size = 10;
    double value[10] = {0};
    int status, wrong = 0;
    pid_t child = fork();

    if (child == 0) {
        hid_t file = split_open(path, 1), set = probe_dataset(file, "values", H5T_NATIVE_DOUBLE, 1, &size, NULL);
        for (int i = 0; i < 10; i++)
            value[i] = i + 1;
        NEED(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
        NEED(H5Fflush(file, H5F_SCOPE_GLOBAL));
        _exit(0);
    }
    NEED(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1);
    hid_t file = split_open(path, 0), set = NEED(H5Dopen2(file, "values", H5P_DEFAULT));
    NEED(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    for (int i = 0; i < 10; i++)
        wrong |= value[i] != i + 1;
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    return wrong;
}

static herr_t handler_mine(void *arg)
{
    (void)arg;
    return 0;
}

static int probe_handler(const char *path)
{
    H5E_auto1_t handler = NULL;
    void *arg = NULL;

    NEED(H5Eset_auto1(handler_mine, NULL));
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    make_strided(file, 0);
    NEED(H5Fclose(file));
    NEED(H5Eget_auto1(&handler, &arg));
    NEED(handler == handler_mine ? 0 : -1);
    return 0;
}

/* Millions of what has no columns: nobody may look at each. */
static int probe_lists(const char *path)
{
    const hsize_t rows = 2, sixteen = 16, fifteen = 15;
    const int64_t id[] = {7, 8};
    hid_t type = NEED(H5Tvlen_create(H5T_STD_I32LE));
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    hid_t group = NEED(H5Gcreate2(file, "step_3", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));

    for (int i = 0; i < 7; i++)
        type = NEED(H5Tarray_create2(type, 1, i < 6 ? &sixteen : &fifteen)); /* just below 4 GiB */
    for (int i = 0; i < 2; i++) {
        hid_t ids = probe_dataset(group, i ? "other" : "id", H5T_STD_I64LE, 1, &rows, NULL);
        NEED(H5Dwrite(ids, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, id));
        NEED(H5Dclose(ids));
    }
    NEED(H5Dclose(probe_dataset(group, "nested", type, 1, &rows, NULL)));
    NEED(H5Gclose(group));
    NEED(H5Fclose(file));
    return 0;
}

#define PIECES 2500

/* All but the first two sizes are as the second; the pieces stand in memory the other way round. */
static int probe_vector(const char *path)
{
    static uint8_t byte[2][PIECES][24];
    static haddr_t at[PIECES];
    static void *read_to[PIECES];
    static const void *write_from[PIECES];
    static H5FD_mem_t type[PIECES] = {H5FD_MEM_DRAW, H5FD_MEM_NOLIST};
    static size_t size[PIECES] = {24, 16};
    uint64_t seed = 1;
    H5FD_t *file = H5FDopen(path, H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC, H5P_DEFAULT, HADDR_UNDEF);

    NEED(file ? 0 : -1);
    NEED(H5FDset_eoa(file, H5FD_MEM_DRAW, 100 * PIECES));
    for (size_t i = 0; i < PIECES; i++) {
        at[i] = 100 * i;
        write_from[i] = byte[0][PIECES - 1 - i];
        read_to[i] = byte[1][PIECES - 1 - i];
        for (size_t k = 0; k < (i == PIECES - 1 ? 24 : 16); k++)
            byte[0][i][k] = (uint8_t)probe_random(&seed);
    }
    NEED(H5FDwrite_vector(file, H5P_DEFAULT, PIECES, type, at, size, write_from));
    NEED(H5FDread_vector(file, H5P_DEFAULT, PIECES, type, at, size, read_to));
    NEED(memcmp(byte[0], byte[1], sizeof byte[0]) ? -1 : 0);
    NEED(H5FDclose(file));
    return 0;
}

static int probe_sieve(const char *path)
{
    static double value[ROWS][100];
    const hsize_t first[2] = {0, 0}, count[2] = {ROWS, 100}, line = ROWS * 100;
    uint64_t seed = 1;
    hid_t file = NEED(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = NEED(H5Dopen2(file, "arrays/contiguous", H5P_DEFAULT));
    hid_t space = NEED(H5Dget_space(set)), memory = NEED(H5Screate_simple(1, &line, NULL));
    hid_t dxpl = NEED(H5Pcreate(H5P_DATASET_XFER));

    NEED(H5Pset_selection_io(dxpl, H5D_SELECTION_IO_MODE_ON));
    NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, count, NULL));
    NEED(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, value));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < COLUMNS; k++) {
            double wanted = (double)(probe_random(&seed) >> 11);
            NEED(k >= 100 || value[i][k] == wanted ? 0 : -1);
        }
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    return 0;
}

/* ---- A writer and a reader beside it ---- */

#define SWMR_ROWS 200000

static void swmr_read(const char *path, int go, int done)
{
    int32_t *value = calloc(SWMR_ROWS, sizeof *value);
    char c = 0;

    NEED(read(go, &c, 1) == 1 && value ? 0 : -1);
    hid_t file = NEED(H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT));
    hid_t set = NEED(H5Dopen2(file, "x", H5P_DEFAULT));
    NEED(write(done, &c, 1) == 1 && read(go, &c, 1) == 1 ? 0 : -1);
    NEED(H5Drefresh(set));
    NEED(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    for (int i = 0; i < SWMR_ROWS; i++)
        NEED(value[i] == i ? 0 : -1);
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    free(value);
}

static void swmr_write(const char *path, int go, int done)
{
    const hsize_t none = 0, all = H5S_UNLIMITED, chunk = 1000, rows = SWMR_ROWS;
    int32_t *value = calloc(SWMR_ROWS, sizeof *value);
    char c = 0;
    hid_t fapl = NEED(H5Pcreate(H5P_FILE_ACCESS)), how = NEED(H5Pcreate(H5P_DATASET_CREATE));

    NEED(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    NEED(H5Pset_chunk(how, 1, &chunk));
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
    hid_t set = NEED(
        H5Dcreate2(file, "x", H5T_STD_I32LE, NEED(H5Screate_simple(1, &none, &all)), H5P_DEFAULT, how, H5P_DEFAULT));
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    file = NEED(H5Fopen(path, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, fapl));
    set = NEED(H5Dopen2(file, "x", H5P_DEFAULT));
    NEED(write(go, &c, 1) == 1 && read(done, &c, 1) == 1 ? 0 : -1);
    for (int i = 0; i < SWMR_ROWS && value; i++)
        value[i] = i;
    NEED(H5Dset_extent(set, &rows));
    NEED(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    NEED(H5Fflush(file, H5F_SCOPE_GLOBAL));
    NEED(write(go, &c, 1) == 1 ? 0 : -1);
    free(value);
    int status = -1;
    NEED(wait(&status) > 0 && status == 0 ? 0 : -1);
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
}

static int probe_swmr(const char *path)
{
    int go[2], done[2];

    NEED(pipe(go));
    NEED(pipe(done));
    pid_t child = fork();
    if (child == 0) {
        swmr_read(path, go[0], done[1]);
        exit(0);
    }
    NEED(child);
    close(done[1]);
    swmr_write(path, go[1], done[0]);
    return 0;
}

/* ---- Reading everything ---- */

struct digest {
    uint64_t sum;
    int faults; /* what could not be read */
};

static void digest_add(struct digest *d, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < size; i++)
        d->sum = (d->sum ^ b[i]) * UINT64_C(1099511628211);
}

/* The values in memory's form; of texts, their letters. */
static int digest_values(struct digest *d, hid_t set, hid_t type, hid_t space, hssize_t n)
{
    size_t size = H5Tget_size(type);
    unsigned char *value =
        size && n >= 0 && (uint64_t)n < (UINT64_C(1) << 28) / size ? calloc((size_t)n + 1, size) : NULL;
    int is_text = H5Tis_variable_str(type) > 0, rc = value ? 0 : -1;

    if (value)
        rc = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    for (hssize_t i = 0; i < n && rc >= 0; i++) {
        char *text;
        memcpy(&text, value + (size_t)i * size, is_text ? sizeof text : 0);
        if (is_text)
            digest_add(d, text ? text : "", text ? strlen(text) + 1 : 1);
        else
            digest_add(d, value + (size_t)i * size, size);
    }
    if (is_text && rc >= 0)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, value);
    free(value);
    return rc;
}

static void digest_dataset(struct digest *d, hid_t at, const char *name)
{
    hid_t set = H5Dopen2(at, name, H5P_DEFAULT);
    hid_t stored = set < 0 ? -1 : H5Dget_type(set), space = set < 0 ? -1 : H5Dget_space(set);
    hid_t type = stored < 0 ? -1 : H5Tget_native_type(stored, H5T_DIR_DEFAULT);

    if (type < 0 || space < 0 || digest_values(d, set, type, space, H5Sget_simple_extent_npoints(space)) < 0)
        d->faults++;
    if (type >= 0)
        H5Tclose(type);
    if (stored >= 0)
        H5Tclose(stored);
    if (space >= 0)
        H5Sclose(space);
    if (set >= 0)
        H5Dclose(set);
}

static herr_t digest_attribute(hid_t at, const char *name, const H5A_info_t *info, void *arg)
{
    struct digest *d = arg;
    unsigned char value[1024] = {0};
    hid_t a = H5Aopen(at, name, H5P_DEFAULT), type = a < 0 ? -1 : H5Aget_type(a);

    (void)info;
    if (type < 0 || H5Tget_size(type) > sizeof value || H5Aread(a, type, value) < 0)
        d->faults++;
    digest_add(d, name, strlen(name));
    digest_add(d, value, sizeof value);
    if (type >= 0)
        H5Tclose(type);
    if (a >= 0)
        H5Aclose(a);
    return 0;
}

static herr_t digest_object(hid_t at, const char *name, const H5O_info2_t *info, void *arg)
{
    struct digest *d = arg;
    hid_t object = H5Oopen(at, name, H5P_DEFAULT);
    hsize_t next = 0;

    digest_add(d, name, strlen(name));
    if (object < 0 || H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &next, digest_attribute, arg) < 0)
        d->faults++;
    if (object >= 0)
        H5Oclose(object);
    if (info->type == H5O_TYPE_DATASET)
        digest_dataset(d, at, name);
    return 0;
}

static void digest_file(struct digest *d, const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);

    *d = (struct digest){.sum = UINT64_C(14695981039346656037)};
    if (file < 0 || H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, digest_object, d, H5O_INFO_BASIC) < 0)
        d->faults++;
    if (file >= 0)
        H5Fclose(file);
}

static int probe_digest(const char *path)
{
    struct digest d;

    digest_file(&d, path);
    printf("%016llx\n", (unsigned long long)d.sum);
    return d.faults > 0;
}

/* ---- Errors ---- */

static herr_t why_print(unsigned n, const H5E_error2_t *e, void *arg)
{
    (void)n;
    (void)arg;
    printf("%s\n", e->desc ? e->desc : "");
    return 0;
}

static int probe_why(const char *path, const char *how)
{
    unsigned flags = strcmp(how, "write") == 0  ? H5F_ACC_RDWR
                     : strcmp(how, "swmr") == 0 ? H5F_ACC_RDONLY | H5F_ACC_SWMR_READ
                                                : H5F_ACC_RDONLY;
    struct digest d;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, flags, H5P_DEFAULT);
    if (file < 0) {
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, why_print, NULL);
        return 1;
    }
    H5Fclose(file);
    digest_file(&d, path);
    printf("opened, %d faults\n", d.faults);
    return 0;
}

/* By the driver's own table: HDF5 would look at it first. */
static int probe_none(const char *path)
{
    H5FD_t *file = H5FDopen(path, H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC, H5P_DEFAULT, HADDR_UNDEF);
    hid_t none = H5I_INVALID_HID;
    haddr_t at = 0;
    size_t size = 1;
    char byte;
    void *place = &byte;

    NEED(file ? 0 : -1);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    herr_t rc = file->cls->read_selection(file, H5FD_MEM_DRAW, H5P_DEFAULT, 1, &none, &none, &at, &size, &place);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, why_print, NULL);
    NEED(H5FDclose(file));
    return rc < 0;
}

static int probe_read(const char *path, const char *name)
{
    hid_t file = NEED(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)), set = NEED(H5Dopen2(file, name, H5P_DEFAULT));
    hid_t space = NEED(H5Dget_space(set));
    double *value = malloc((size_t)NEED(H5Sget_simple_extent_npoints(space)) * sizeof *value);

    NEED(value ? 0 : -1);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    int is_read = H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0;
    if (!is_read)
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, why_print, NULL);
    free(value);
    NEED(H5Sclose(space));
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    return !is_read;
}

static int probe_is(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    printf("%d\n", (int)H5Fis_accessible(path, H5P_DEFAULT));
    return 0;
}

static int hostile_digest(const char *path)
{
    struct digest d = {0};

    digest_file(&d, path);
    return d.faults > 0;
}

/* The file is truncated, and made whole afterwards. */
static int hostile_cut(const char *path, int fd, uint64_t at, size_t n)
{
    uint8_t *rest = malloc(n);

    NEED(rest && pread(fd, rest, n, (off_t)at) == (ssize_t)n && ftruncate(fd, (off_t)at) == 0 ? 0 : -1);
    int rc = hostile_digest(path);
    NEED(pwrite(fd, rest, n, (off_t)at) == (ssize_t)n ? 0 : -1);
    free(rest);
    return rc;
}

static int hostile_flip(const char *path, int fd, uint64_t at, unsigned bit)
{
    uint8_t before, after;

    NEED(pread(fd, &before, 1, (off_t)at) == 1 ? 0 : -1);
    after = (uint8_t)(before ^ (1u << bit));
    NEED(pwrite(fd, &after, 1, (off_t)at) == 1 ? 0 : -1);
    int rc = hostile_digest(path);
    NEED(pwrite(fd, &before, 1, (off_t)at) == 1 ? 0 : -1);
    return rc;
}

/* A byte of one of the files becomes another, or the file is truncated there. What is read then does not matter. */
static int hostile_one(const char *path, const char *victim, uint64_t *seed)
{
    struct stat s;
    int fd = open(victim, O_RDWR), rc = 0;

    NEED(fd >= 0 && fstat(fd, &s) == 0 ? 0 : -1);
    if (s.st_size > 0) {
        /* Most of what decides is at the beginning, or the end. */
        uint64_t size = (uint64_t)s.st_size, near = size < 256 ? size : 256, r = probe_random(seed);
        uint64_t at = r % 3 == 0 ? r / 3 % size : r % 3 == 1 ? r / 3 % near : size - 1 - r / 3 % near;
        unsigned what = (unsigned)(probe_random(seed) % 10);
        rc = what < 8 ? hostile_flip(path, fd, at, what) : hostile_cut(path, fd, at, (size_t)(size - at));
    }
    close(fd);
    return rc;
}

static int probe_hostile(const char *path, int count, int files, char **file)
{
    uint64_t seed = 1;
    int found = 0;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int i = 0; i < count; i++)
        found += hostile_one(path, file[probe_random(&seed) % (unsigned)files], &seed);
    printf("%d changes, %d errors\n", count, found);
    return 0;
}

/* ---- Time ---- */

static void time_pass(hid_t set, hsize_t mib, double *value, int is_write)
{
    const hsize_t n = MIB / sizeof *value;
    hid_t space = NEED(H5Dget_space(set)), memory = NEED(H5Screate_simple(1, &n, NULL));

    for (hsize_t i = 0; i < mib; i++) {
        const hsize_t at = i * n;
        NEED(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &n, NULL));
        value[0] = is_write ? (double)i : -1;
        NEED(is_write ? H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value)
                      : H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value));
        NEED(value[0] == (double)i ? 0 : -1);
    }
    NEED(H5Sclose(space));
    NEED(H5Sclose(memory));
}

/* All of a file is on storage, and (or else) nothing of it in memory. A logical file is a folder. */
static int time_settle(const char *path, const struct stat *s, int type, struct FTW *where)
{
    int fd = type == FTW_F ? open(path, O_RDONLY) : -1;

    (void)s;
    (void)where;
    if (fd < 0)
        return 0;
    NEED(fsync(fd));
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return close(fd);
}

/* Wall and processor seconds since the last call. */
static void time_lap(const char *what)
{
    static struct timespec wall, cpu;
    struct timespec now[2];

    clock_gettime(CLOCK_MONOTONIC, &now[0]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now[1]);
    if (what)
        printf("%s %.4f %.4f\n", what,
               (double)(now[0].tv_sec - wall.tv_sec) + 1e-9 * (double)(now[0].tv_nsec - wall.tv_nsec),
               (double)(now[1].tv_sec - cpu.tv_sec) + 1e-9 * (double)(now[1].tv_nsec - cpu.tv_nsec));
    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
}

static void time_read(const char *path, hsize_t mib, double *value, const char *what)
{
    time_lap(NULL);
    hid_t file = NEED(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = NEED(H5Dopen2(file, "values", H5P_DEFAULT));
    time_pass(set, mib, value, 0);
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    time_lap(what);
}

static int probe_time(const char *path, hsize_t mib, int groups)
{
    const hsize_t size = mib * (MIB / sizeof(double));
    double *value = malloc(MIB);
    char name[32];

    NEED(value ? 0 : -1);
    /* Not what calloc gives: the system keeps that as one page, which is always in the processor's nearest cache. */
    for (size_t i = 0; i < MIB / sizeof *value; i++)
        value[i] = 1 / (double)(i + 1);
    time_lap(NULL);
    hid_t file = NEED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    hid_t set = probe_dataset(file, "values", H5T_NATIVE_DOUBLE, 1, &size, NULL);
    time_pass(set, mib, value, 1);
    NEED(H5Dclose(set));
    NEED(H5Fclose(file));
    time_lap("write");
    NEED(nftw(path, time_settle, 8, FTW_PHYS));
    time_lap("settle");
    time_read(path, mib, value, "cold-read");
    time_read(path, mib, value, "read");
    file = NEED(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    for (int i = 0; i < groups; i++) {
        snprintf(name, sizeof name, "group %d", i);
        NEED(H5Gclose(NEED(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    }
    NEED(H5Fclose(file));
    time_lap("groups");
    free(value);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    if (strcmp(what, "make") == 0)
        return probe_make(argv[2]);
    if (strcmp(what, "change") == 0)
        return probe_change(argv[2]);
    if (strcmp(what, "digest") == 0)
        return probe_digest(argv[2]);
    if (strcmp(what, "why") == 0)
        return probe_why(argv[2], argc > 3 ? argv[3] : "read");
    if (strcmp(what, "read") == 0 && argc > 3)
        return probe_read(argv[2], argv[3]);
    if (strcmp(what, "is") == 0)
        return probe_is(argv[2]);
    if (strcmp(what, "delete") == 0)
        return H5Fdelete(argv[2], H5P_DEFAULT) < 0;
    if (strcmp(what, "flush") == 0 || strcmp(what, "die") == 0)
        return probe_die(argv[2], strcmp(what, "flush") == 0);
    if (strcmp(what, "split") == 0)
        return probe_split(argv[2]);
    if (strcmp(what, "handler") == 0)
        return probe_handler(argv[2]);
    if (strcmp(what, "lists") == 0)
        return probe_lists(argv[2]);
    if (strcmp(what, "vector") == 0)
        return probe_vector(argv[2]);
    if (strcmp(what, "none") == 0)
        return probe_none(argv[2]);
    if (strcmp(what, "sieve") == 0)
        return probe_sieve(argv[2]);
    if (strcmp(what, "swmr") == 0)
        return probe_swmr(argv[2]);
    if (strcmp(what, "hostile") == 0 && argc > 4)
        return probe_hostile(argv[2], atoi(argv[3]), argc - 4, argv + 4);
    if (strcmp(what, "time") == 0 && argc > 4)
        return probe_time(argv[2], (hsize_t)atoi(argv[3]), atoi(argv[4]));
    fprintf(stderr, "vfd_probe: see its source for what it takes\n");
    return 2;
}
