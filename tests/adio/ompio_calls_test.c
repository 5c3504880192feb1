/* The calls of MPI-IO one by one: what each returns, and what it leaves behind.
 *
 *     ompio_calls_test FILE FOLDER      FILE: with the prefix; FOLDER: a folder without it, which is no logical file
 *
 * Knows nothing of DeltaFS but the prefix and its hints. With FILE_LIMIT in the environment, only what happens when
 * files may not grow any more. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int rank, ranks, failed, handled;
static const char *name;

#define CHECK(condition)   check((condition) != 0, #condition, __LINE__)
#define OK(call)           code_is((call), MPI_SUCCESS, #call, __LINE__)
#define FAILS(call, class) code_is((call), class, #call, __LINE__)

static void check(int is_right, const char *what, int line)
{
    if (is_right)
        return;
    fprintf(stderr, "rank %d, line %d: not so: %s\n", rank, line, what);
    failed++;
}

static void code_is(int code, int class, const char *call, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, found = MPI_SUCCESS;

    MPI_Error_string(code, text, &length);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &found);
    if (found == class)
        return;
    fprintf(stderr, "rank %d, line %d: class %d instead of %d: %s: %s\n", rank, line, found, class, call, text);
    failed++;
}

static int count_of(MPI_Status *status)
{
    int n;

    MPI_Get_count(status, MPI_BYTE, &n);
    return n;
}

static MPI_File open_all(int amode)
{
    MPI_File file = MPI_FILE_NULL;

    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
    return file;
}

static void remove_all(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void opens(const char *folder)
{
    MPI_File file;
    char text[MPI_MAX_ERROR_STRING], other[4096];
    int length, code, amode;

    code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    FAILS(code, MPI_ERR_NO_SUCH_FILE);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, strrchr(name, '/') + 1) != NULL);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);

    file = open_all(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
    OK(MPI_File_get_amode(file, &amode));
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY));
    OK(MPI_File_close(&file));
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    /* The file that was there stays. */
    FAILS(MPI_File_open(MPI_COMM_WORLD, name,
                        MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                        &file),
          MPI_ERR_FILE_EXISTS);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    remove_all();

    file = open_all(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_get_amode(file, &amode));
    CHECK(amode & MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_close(&file));
    FAILS(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);

    snprintf(other, sizeof other, "deltafs:%s", folder);
    FAILS(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
          MPI_ERR_BAD_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    FAILS(MPI_File_delete(other, MPI_INFO_NULL), MPI_ERR_BAD_FILE);
}

static void sizes(void)
{
    MPI_File file = open_all(MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset size, at;
    MPI_Status status;
    char bytes[100];

    OK(MPI_File_preallocate(file, 1000));
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 1000);
    OK(MPI_File_preallocate(file, 10));
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 1000);
    memset(bytes, 1, sizeof bytes);
    OK(MPI_File_read_at(file, 950, bytes, 100, MPI_BYTE, &status));
    CHECK(count_of(&status) == 50);
    CHECK(bytes[0] == 0 && bytes[49] == 0);
    OK(MPI_File_read_at_all(file, 950, bytes, 100, MPI_BYTE, &status));
    CHECK(count_of(&status) == 50);
    OK(MPI_File_read_at(file, 5000, bytes, 100, MPI_BYTE, &status));
    CHECK(count_of(&status) == 0);
    OK(MPI_File_set_size(file, 77));
    OK(MPI_File_seek(file, -7, MPI_SEEK_END));
    OK(MPI_File_read(file, bytes, 100, MPI_BYTE, &status));
    CHECK(count_of(&status) == 7);
    OK(MPI_File_get_position(file, &at));
    if (ranks > 1) {
        FAILS(MPI_File_set_size(file, 100 + rank), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_preallocate(file, 100 + rank), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_atomicity(file, rank == 0), MPI_ERR_NOT_SAME);
    }
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 77);
    OK(MPI_File_close(&file));

    file = open_all(MPI_MODE_WRONLY | MPI_MODE_APPEND);
    OK(MPI_File_get_position(file, &at));
    CHECK(at == 77);
    OK(MPI_File_preallocate(file, 177)); /* without reading */
    FAILS(MPI_File_read(file, bytes, 1, MPI_BYTE, &status), MPI_ERR_ACCESS);
    OK(MPI_File_close(&file));

    file = open_all(MPI_MODE_RDONLY);
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 177);
    FAILS(MPI_File_write(file, bytes, 1, MPI_BYTE, &status), MPI_ERR_READ_ONLY);
    CHECK(MPI_File_set_size(file, 1) != MPI_SUCCESS);
    CHECK(MPI_File_preallocate(file, 1000) != MPI_SUCCESS);
    OK(MPI_File_sync(file));
    OK(MPI_File_close(&file));
    remove_all();
}

static void hints(void)
{
    MPI_File file;
    MPI_Info info, used;
    char value[MPI_MAX_INFO_VAL + 1];
    int found;

    MPI_Info_create(&info);
    MPI_Info_set(info, "deltafs_sync", "none");
    MPI_Info_set(info, "striping_unit", "65536");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    OK(MPI_File_get_info(file, &used));
    MPI_Info_get(used, "deltafs_sync", MPI_MAX_INFO_VAL, value, &found);
    CHECK(found && strcmp(value, "none") == 0);
    MPI_Info_get(used, "deltafs_extents", MPI_MAX_INFO_VAL, value, &found);
    CHECK(found && strcmp(value, "parallel") == 0);
#if OMPI_MAJOR_VERSION < 5 /* later ones show only the hints that they used */
    MPI_Info_get(used, "striping_unit", MPI_MAX_INFO_VAL, value, &found);
    CHECK(found);
#endif
    MPI_Info_free(&used);
    OK(MPI_File_close(&file));
    MPI_Info_set(info, "deltafs_extents", "sideways");
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), MPI_ERR_INFO_VALUE);
    MPI_Info_delete(info, "deltafs_extents");
    if (rank == ranks - 1)
        MPI_Info_set(info, "deltafs_nonsense", "1");
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    remove_all();
}

/* Each rank's write is seen by the next without a sync. */
static void atomic_mode(void)
{
    MPI_File file = open_all(MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype type;
    MPI_Status status;
    int flag, seen[8];

    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 1);
    MPI_Type_vector(8, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 2 * ranks; turn++) {
        int numbers[8];
        for (int i = 0; i < 8; i++)
            numbers[i] = turn * 10 + i;
        if (turn % ranks == rank)
            OK(MPI_File_write_at(file, 0, numbers, 8, MPI_INT, &status));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_read_at(file, 0, seen, 8, MPI_INT, &status));
        CHECK(memcmp(seen, numbers, sizeof seen) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* All at once over each other: one is seen whole. */
    for (int i = 0; i < 8; i++)
        seen[i] = rank;
    OK(MPI_File_write_at(file, 0, seen, 8, MPI_INT, &status));
    OK(MPI_File_read_at(file, 0, seen, 8, MPI_INT, &status));
    for (int i = 1; i < 8; i++)
        CHECK(seen[i] == seen[0]);
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_close(&file));
    MPI_Type_free(&type);
    remove_all();
}

static void shared_pointer(void)
{
    MPI_File file;
    MPI_Info info;
    MPI_Status status;
    MPI_Offset at, size;
    int number = 100 + rank, seen, sum = 0;

    MPI_Info_create(&info);
    if (getenv("RELAXED") != NULL)
        MPI_Info_set(info, "OMPIO_SHAREDFP_RELAXED_ORDERING", "true");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    for (int i = 0; i < 5; i++)
        OK(MPI_File_write_shared(file, &number, 1, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &at));
    CHECK(at == (MPI_Offset)(5 * ranks * (int)sizeof number));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_write_ordered(file, &number, 1, MPI_INT, &status));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_sync(file));
    OK(MPI_File_seek_shared(file, (MPI_Offset)(5 * ranks * (int)sizeof number), MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, &seen, 1, MPI_INT, &status));
    CHECK(count_of(&status) == sizeof seen && seen == number);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_get_size(file, &size));
    CHECK(size == (MPI_Offset)(6 * ranks * (int)sizeof number));
    for (int i = 0; i < 5 * ranks; i++) {
        OK(MPI_File_read(file, &seen, 1, MPI_INT, &status));
        sum += seen;
    }
    CHECK(sum == 5 * (100 * ranks + ranks * (ranks - 1) / 2));
    OK(MPI_File_close(&file));
    remove_all();
}

static void several_files(void)
{
    char other[4096];
    MPI_File one, two;
    MPI_Status status;
    int number = rank, seen = -1;

    snprintf(other, sizeof other, "%s.%d", name, rank);
    one = open_all(MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_open(MPI_COMM_SELF, other, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &two));
    OK(MPI_File_set_view(one, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at(one, rank, &number, 1, MPI_INT, &status));
    OK(MPI_File_write_at(two, 0, &number, 1, MPI_INT, &status));
    OK(MPI_File_read_at(two, 0, &seen, 1, MPI_INT, &status));
    CHECK(seen == rank);
    OK(MPI_File_close(&two));
    OK(MPI_File_read_at(one, rank, &seen, 1, MPI_INT, &status));
    CHECK(seen == rank);
    OK(MPI_File_close(&one));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &one));
    unsigned char bytes[4];
    OK(MPI_File_read_at(one, 4 * rank, bytes, 4, MPI_BYTE, &status));
    CHECK(bytes[0] == 0 && bytes[3] == rank); /* most significant first */
    OK(MPI_File_close(&one));
    remove_all();
}

/* Rank 0 has another handle on the file, of its own: what it writes later wins, whichever handle it uses. PnetCDF
 * writes the number of records so. */
static void two_handles(void)
{
    MPI_File file = open_all(MPI_MODE_CREATE | MPI_MODE_RDWR), own;
    char got[9] = "";

    if (rank == 0) {
        OK(MPI_File_write_at(file, 0, "abcdefgh", 8, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
        OK(MPI_File_write_at(own, 4, "0000", 4, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_write_at(file, 4, "2222", 4, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_write_at(own, 6, "33", 2, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_write_at(file, 7, "4", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_close(&file));
    if (rank == 0)
        OK(MPI_File_close(&own));
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_all(MPI_MODE_RDONLY);
    OK(MPI_File_read_at(file, 0, got, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(strcmp(got, "abcd2234") == 0);
    OK(MPI_File_close(&file));
    remove_all();
}

static void handler(MPI_File *file, int *code, ...)
{
    (void)file;
    CHECK(*code != MPI_SUCCESS);
    handled++;
}

/* No file may grow beyond a megabyte. A write that is told of must be stored: writes, the sync or the close say that it
 * cannot be, to each rank. */
static void limited(void)
{
    MPI_File file = open_all(MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Errhandler eh;
    MPI_Request request;
    MPI_Status status;
    struct rlimit limit = {1 << 20, 1 << 20};
    int bytes = 1 << 18, code = MPI_SUCCESS;
    char *buffer = calloc(1, (size_t)bytes);

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 64 && code == MPI_SUCCESS; i++) {
        MPI_Offset at = (MPI_Offset)bytes * (i * ranks + rank);
        code = i % 2 ? MPI_File_write_at(file, at, buffer, bytes, MPI_BYTE, &status)
                     : MPI_File_iwrite_at(file, at, buffer, bytes, MPI_BYTE, &request);
        if (i % 2 == 0 && code == MPI_SUCCESS)
            OK(MPI_Wait(&request, &status));
    }
    CHECK(code != MPI_SUCCESS); /* no buffer is that large */
    CHECK(MPI_File_sync(file) != MPI_SUCCESS);
    MPI_File_create_errhandler(handler, &eh);
    MPI_File_set_errhandler(file, eh);
    MPI_File_close(&file);
    CHECK(handled > 0);
    MPI_Errhandler_free(&eh);
    free(buffer);
}

int main(int argc, char **argv)
{
    int all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    name = argv[1];
    if (getenv("FILE_LIMIT") != NULL) {
        limited();
    } else if (getenv("ONLY_SHARED") != NULL) {
        shared_pointer();
    } else {
        opens(argv[2]);
        sizes();
        hints();
        if (getenv("NO_ATOMIC") == NULL)
            atomic_mode();
        shared_pointer();
        several_files();
        two_handles();
    }
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
