/* What MPI promises of opening, errors, sizes, pointers and hints, one after another, on the files named DIR/NAME,
 * where DIR may begin with a prefix. It knows nothing of DeltaFS, but with a second argument looks for its hints,
 * and of a file of a pool expects no shared pointer and no atomic mode.
 * (MPICH 4.0.2 as it is fails this test: it counts wrong who uses an error handler that was set for MPI_FILE_NULL.)
 *
 *     adio_calls DIR [deltafs|pool] */
#include <mpi.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 1000

static int rank, ranks;
static int faults;
static const char *folder;
static const char *test;
static int is_pool;

static const char *name_of(const char *name)
{
    static char text[NAME_MAX_BYTES];

    snprintf(text, sizeof text, "%s/%s", folder, name);
    return text;
}

static void expect(int is_right, const char *what, long long got, long long wanted)
{
    if (is_right)
        return;
    faults++;
    fprintf(stderr, "rank %d: %s: %s: %lld, not %lld\n", rank, test, what, got, wanted);
}

static void expect_number(const char *what, long long got, long long wanted)
{
    expect(got == wanted, what, got, wanted);
}

static void expect_class(const char *what, int rc, int wanted)
{
    char text[MPI_MAX_ERROR_STRING];
    int error_class;
    int size;

    MPI_Error_class(rc, &error_class);
    if (error_class == wanted)
        return;
    MPI_Error_string(rc, text, &size);
    fprintf(stderr, "%s\n", text);
    expect(0, what, error_class, wanted);
}

static void expect_text(int rc, const char *wanted)
{
    char text[MPI_MAX_ERROR_STRING];
    int size;

    MPI_Error_string(rc, text, &size);
    if (strstr(text, wanted))
        return;
    fprintf(stderr, "rank %d: %s: no '%s' in '%s'\n", rank, test, wanted, text);
    faults++;
}

static MPI_File file_open(const char *name, int amode)
{
    MPI_File f = MPI_FILE_NULL;

    expect_class("open", MPI_File_open(MPI_COMM_WORLD, name_of(name), amode, MPI_INFO_NULL, &f), MPI_SUCCESS);
    if (f == MPI_FILE_NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return f;
}

static long long file_size(MPI_File f)
{
    MPI_Offset size = -1;

    expect_class("get_size", MPI_File_get_size(f, &size), MPI_SUCCESS);
    return size;
}

static void synchronize(MPI_File f)
{
    expect_class("sync", MPI_File_sync(f), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_class("sync", MPI_File_sync(f), MPI_SUCCESS);
}

static void remove_file(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_File_delete(name_of(name), MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int count_of(MPI_Status *status, MPI_Datatype type)
{
    int count;

    MPI_Get_count(status, type, &count);
    return count;
}

static void test_modes(void)
{
    MPI_File f, g;
    int amode;

    f = file_open("modes", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
    MPI_File_get_amode(f, &amode);
    expect_number("amode", amode, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
    expect_class("reading a file for writing", MPI_File_read_at(f, 0, &amode, 1, MPI_INT, MPI_STATUS_IGNORE),
                 MPI_ERR_ACCESS);
    MPI_File_close(&f);
    int rc = MPI_File_open(MPI_COMM_WORLD, name_of("modes"), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                           MPI_INFO_NULL, &f);
    expect_class("EXCL of one that is there", rc, MPI_ERR_FILE_EXISTS);
    f = file_open("modes", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_File_close(&f);
    f = file_open("modes", MPI_MODE_RDONLY);
    expect_class("writing a file for reading", MPI_File_write_at(f, 0, &amode, 1, MPI_INT, MPI_STATUS_IGNORE),
                 MPI_ERR_READ_ONLY);
    expect_class("set_size of it", MPI_File_set_size(f, 5), MPI_ERR_READ_ONLY);
    MPI_File_close(&f);
    rc = MPI_File_open(MPI_COMM_WORLD, name_of("none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    expect_class("one that is not there", rc, MPI_ERR_NO_SUCH_FILE);
    expect_text(rc, "does not exist");
    rc = MPI_File_open(MPI_COMM_WORLD, name_of("no/such/folder"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    expect_class("one in no folder", rc, MPI_ERR_NO_SUCH_FILE);
    if (rank == 0) {
        rc =
            MPI_File_open(MPI_COMM_SELF, name_of("modes"), MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &g);
        expect_class("open by one", rc, MPI_SUCCESS);
        expect_class("close by one", MPI_File_close(&g), MPI_SUCCESS);
        rc = MPI_File_delete(name_of("modes"), MPI_INFO_NULL);
        expect_class("delete what was deleted", rc, MPI_ERR_NO_SUCH_FILE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    f = file_open("modes", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    expect_class("write", MPI_File_write_at(f, rank, &rank, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    expect_class("close", MPI_File_close(&f), MPI_SUCCESS);
    rc = MPI_File_open(MPI_COMM_WORLD, name_of("modes"), MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    expect_class("one deleted on close", rc, MPI_ERR_NO_SUCH_FILE);
}

/* All ranks make the same file at once, each on its own; one of them wins with EXCL. */
static void test_alone(void)
{
    MPI_File f;
    int won = 0, winners;
    char byte;

    MPI_Barrier(MPI_COMM_WORLD);
    int rc = MPI_File_open(MPI_COMM_SELF, name_of("alone"), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                           MPI_INFO_NULL, &f);
    if (rc == MPI_SUCCESS) {
        won = 1;
        MPI_File_close(&f);
    } else {
        expect_class("EXCL lost", rc, MPI_ERR_FILE_EXISTS);
    }
    MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_number("winners", winners, 1);
    rc = MPI_File_open(MPI_COMM_SELF, name_of("alone"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    expect_class("open of each alone", rc, MPI_SUCCESS);
    byte = (char)('a' + rank);
    expect_class("write", MPI_File_write_at(f, 3 * rank, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_SUCCESS);
    expect_class("close", MPI_File_close(&f), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    rc = MPI_File_open(MPI_COMM_SELF, name_of("alone"), MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    expect_class("open to read", rc, MPI_SUCCESS);
    expect_number("size", file_size(f), 3 * (ranks - 1) + 1);
    for (int i = 0; i < ranks; i++) {
        MPI_File_read_at(f, 3 * i, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
        expect_number("byte", byte, 'a' + i);
    }
    MPI_File_close(&f);
    remove_file("alone");
}

static void test_sizes(void)
{
    MPI_File f = file_open("sizes", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    char bytes[200];

    expect_number("size of a new one", file_size(f), 0);
    expect_class("preallocate", MPI_File_preallocate(f, 1000), MPI_SUCCESS);
    expect_number("size preallocated", file_size(f), 1000);
    expect_class("preallocate less", MPI_File_preallocate(f, 10), MPI_SUCCESS);
    expect_number("size", file_size(f), 1000);
    memset(bytes, 'x', sizeof bytes);
    expect_class("write", MPI_File_write_at_all(f, 100 * rank, bytes, 100, MPI_BYTE, &status), MPI_SUCCESS);
    expect_number("count", count_of(&status, MPI_BYTE), 100);
    expect_class("set_size", MPI_File_set_size(f, 150), MPI_SUCCESS);
    expect_number("size cut", file_size(f), 150);
    synchronize(f);
    expect_class("read", MPI_File_read_at(f, 100, bytes, 200, MPI_BYTE, &status), MPI_SUCCESS);
    expect_number("count up to the end", count_of(&status, MPI_BYTE), 50);
    expect_number("byte", bytes[0], ranks > 1 ? 'x' : 0);
    expect_class("read behind the end", MPI_File_read_at(f, 150, bytes, 1, MPI_BYTE, &status), MPI_SUCCESS);
    expect_number("count behind the end", count_of(&status, MPI_BYTE), 0);
    expect_class("read ints", MPI_File_read_at(f, 141, bytes, 10, MPI_INT, &status), MPI_SUCCESS);
    expect_number("count of parts of ints", count_of(&status, MPI_INT), MPI_UNDEFINED);
    expect_class("set_size", MPI_File_set_size(f, 400), MPI_SUCCESS);
    expect_class("read", MPI_File_read_at(f, 149, bytes, 3, MPI_BYTE, &status), MPI_SUCCESS);
    expect_number("byte that was cut off", bytes[1], 0);
    expect_number("size grown", file_size(f), 400);
    MPI_File_close(&f);

    f = file_open("sizes", MPI_MODE_WRONLY | MPI_MODE_APPEND);
    MPI_Offset position;
    MPI_File_get_position(f, &position);
    expect_number("position to append at", position, 400);
    if (!is_pool) {
        MPI_File_get_position_shared(f, &position);
        expect_number("shared position to append at", position, 400);
    }
    expect_class("write", MPI_File_write(f, bytes, rank == 0 ? 7 : 0, MPI_BYTE, &status), MPI_SUCCESS);
    MPI_File_close(&f);
    f = file_open("sizes", MPI_MODE_RDONLY);
    expect_number("size appended", file_size(f), 407);
    MPI_File_seek(f, -7, MPI_SEEK_END);
    MPI_File_get_position(f, &position);
    expect_number("position from the end", position, 400);
    MPI_File_close(&f);
    remove_file("sizes");
}

static void test_refused(void)
{
    MPI_File f = file_open("refused", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    int flag;

    expect_class("set_atomicity", MPI_File_set_atomicity(f, 0), MPI_SUCCESS);
    int rc = MPI_File_set_atomicity(f, 1);
    expect_class("set_atomicity", rc, MPI_ERR_ARG);
    expect_text(rc, "refused: a file of a pool has no atomic mode");
    MPI_File_get_atomicity(f, &flag);
    expect_number("atomicity", flag, 0);
    expect_class("write_shared", MPI_File_write_shared(f, &rank, 1, MPI_INT, MPI_STATUS_IGNORE),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    expect_class("write_ordered", MPI_File_write_ordered(f, &rank, 1, MPI_INT, MPI_STATUS_IGNORE),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_File_close(&f);
}

static void test_shared(void)
{
    MPI_File f = file_open("shared", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset position;
    int number;
    int *all = malloc((size_t)(4 * ranks) * sizeof *all);
    int *seen = calloc((size_t)ranks, sizeof *seen);

    if (!all || !seen)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_view(f, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < 3; i++) {
        number = 100 * i + rank;
        expect_class("write_ordered", MPI_File_write_ordered(f, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    MPI_File_get_position_shared(f, &position);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_number("shared position", position, 3 * ranks);
    expect_class("write_shared", MPI_File_write_shared(f, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    synchronize(f);
    MPI_File_read_at(f, 0, all, 4 * ranks, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3 * ranks; i++)
        expect_number("ordered number", all[i], 100 * (i / ranks) + i % ranks);
    for (int i = 3 * ranks; i < 4 * ranks; i++)
        if (all[i] >= 0 && all[i] < ranks)
            seen[all[i]]++;
    for (int i = 0; i < ranks; i++)
        expect_number("shared numbers of a rank", seen[i], 1);
    MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
    for (int i = 0; i < 3; i++) {
        expect_class("read_ordered", MPI_File_read_ordered(f, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        expect_number("number read in order", number, 100 * i + rank);
    }
    MPI_File_close(&f);
    free(all);
    free(seen);

    f = file_open("shared", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    expect_class("explicit offset of a sequential file", MPI_File_write_at(f, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    expect_class("write_shared", MPI_File_write_shared(f, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_File_close(&f);
    remove_file("shared");
}

/* What a rank has written is seen by others without more ado. */
static void test_atomic(void)
{
    MPI_File f = file_open("atomic", MPI_MODE_CREATE | MPI_MODE_RDWR);
    char bytes[1000];
    MPI_Status status;
    int flag;

    expect_class("set_atomicity", MPI_File_set_atomicity(f, 1), MPI_SUCCESS);
    MPI_File_get_atomicity(f, &flag);
    expect_number("atomicity", flag, 1);
    for (int i = 0; i < 20; i++) {
        int writer = i % ranks;
        memset(bytes, 'a' + i, sizeof bytes);
        if (rank == writer)
            expect_class("write", MPI_File_write_at(f, 10 * i, bytes, 1000, MPI_BYTE, &status), MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        memset(bytes, 0, sizeof bytes);
        expect_class("read", MPI_File_read_at(f, 10 * i, bytes, 1000, MPI_BYTE, &status), MPI_SUCCESS);
        expect_number("count", count_of(&status, MPI_BYTE), 1000);
        expect_number("first byte", bytes[0], 'a' + i);
        expect_number("last byte", bytes[999], 'a' + i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* Reads see whole writes. */
    if (rank == 0) {
        for (int i = 0; i < 50; i++) {
            memset(bytes, i, sizeof bytes);
            MPI_File_write_at(f, 5000, bytes, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
        }
    } else {
        for (int i = 0; i < 50; i++) {
            MPI_File_read_at(f, 5000, bytes, 1000, MPI_BYTE, &status);
            if (count_of(&status, MPI_BYTE) == 1000)
                expect_number("byte of one write", bytes[999], bytes[0]);
        }
    }
    expect_class("set_atomicity", MPI_File_set_atomicity(f, 0), MPI_SUCCESS);
    MPI_File_close(&f);
    remove_file("atomic");
}

/* Two that are open at once: what the writer has published is seen by the reader when it asks for it. */
static void test_refresh(void)
{
    MPI_File writer = file_open("refresh", MPI_MODE_CREATE | MPI_MODE_WRONLY);
    MPI_File reader = file_open("refresh", MPI_MODE_RDONLY);
    int number = -1;

    for (int i = 0; i < 3; i++) {
        int mine = 10 * i + rank;
        expect_class("write", MPI_File_write_at(writer, 4 * rank, &mine, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        expect_class("sync of the writer", MPI_File_sync(writer), MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        expect_class("sync of the reader", MPI_File_sync(reader), MPI_SUCCESS);
        expect_number("size", file_size(reader), 4 * ranks);
        expect_class("read", MPI_File_read_at(reader, 4 * (ranks - 1), &number, 1, MPI_INT, MPI_STATUS_IGNORE),
                     MPI_SUCCESS);
        expect_number("number", number, 10 * i + ranks - 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&writer);
    MPI_File_close(&reader);
    remove_file("refresh");
}

static int handled;

static void handle(MPI_File *f, int *error_code, ...)
{
    (void)f;
    MPI_Error_class(*error_code, &handled);
    *error_code = MPI_ERR_OTHER; /* what the call is to return */
}

static void test_handlers(void)
{
    MPI_Errhandler handler, got;
    MPI_File f = file_open("handlers", MPI_MODE_CREATE | MPI_MODE_RDWR);

    MPI_File_get_errhandler(f, &got);
    expect(got == MPI_ERRORS_RETURN, "handler at first", got, MPI_ERRORS_RETURN);
    MPI_File_create_errhandler(handle, &handler);
    expect_class("set_errhandler", MPI_File_set_errhandler(f, handler), MPI_SUCCESS);
    MPI_File_get_errhandler(f, &got);
    expect(got == handler, "handler set", got, handler);
    MPI_Errhandler_free(&got);
    expect_number("code of the handler", MPI_File_write_at(f, -1, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
    expect_number("class handled", handled, MPI_ERR_ARG);
    MPI_File_call_errhandler(f, MPI_ERR_NO_SPACE);
    expect_number("class handled", handled, MPI_ERR_NO_SPACE);
    MPI_File_close(&f);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_File_open(MPI_COMM_WORLD, name_of("none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    expect_number("class handled at open", handled, MPI_ERR_NO_SUCH_FILE);
    f = file_open("handlers", MPI_MODE_RDWR); /* begins with that handler */
    handled = 0;
    MPI_File_write_at(f, -1, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    expect_number("class handled", handled, MPI_ERR_ARG);
    MPI_Fint handle_number = MPI_File_c2f(f);
    expect(MPI_File_f2c(handle_number) == f, "Fortran's handle", handle_number, 0);
    expect_number("Fortran's handle again", MPI_File_c2f(f), handle_number);
    MPI_File_close(&f);
    expect(MPI_File_f2c(handle_number) == MPI_FILE_NULL, "Fortran's handle of a closed file", handle_number, 0);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    remove_file("handlers");
}

static void test_hints(int is_deltafs)
{
    MPI_Info info, got;
    MPI_File f;
    char value[MPI_MAX_INFO_VAL];
    int flag;

    MPI_Info_create(&info);
    MPI_Info_set(info, "deltafs_memory", "48M");
    MPI_Info_set(info, "deltafs_extents", "broadcast");
    MPI_Info_set(info, "cb_buffer_size", "1048576");
    MPI_Info_set(info, "somebody_elses", "1");
    int rc = MPI_File_open(MPI_COMM_WORLD, name_of("hints"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f);
    expect_class("open", rc, MPI_SUCCESS);
    MPI_File_get_info(f, &got);
    MPI_Info_get(got, "cb_buffer_size", MPI_MAX_INFO_VAL - 1, value, &flag);
    expect(flag && strcmp(value, "1048576") == 0, "a hint of ROMIO's", flag, 1);
    MPI_Info_get(got, "somebody_elses", MPI_MAX_INFO_VAL - 1, value, &flag);
    expect_number("a hint that is not known", flag, 0);
    MPI_Info_get(got, "deltafs_extents", MPI_MAX_INFO_VAL - 1, value, &flag);
    expect(is_deltafs ? flag && strcmp(value, "broadcast") == 0 : !flag, "a hint of DeltaFS's", flag, is_deltafs);
    MPI_Info_get(got, "deltafs_memory", MPI_MAX_INFO_VAL - 1, value, &flag);
    expect_number("another of DeltaFS's", flag, is_deltafs);
    MPI_Info_get(got, "deltafs_partitions", MPI_MAX_INFO_VAL - 1, value, &flag);
    expect_number("an option that says nothing of files", flag, 0);
    MPI_Info_free(&got);
    MPI_File_close(&f);
    if (is_deltafs) {
        MPI_Info_set(info, "deltafs_extents", "sideways");
        rc = MPI_File_open(MPI_COMM_WORLD, name_of("hints"), MPI_MODE_RDWR, info, &f);
        expect_class("a hint of a bad value", rc, MPI_ERR_INFO_VALUE);
        expect_text(rc, "sideways");
        MPI_Info_delete(info, "deltafs_extents");
        MPI_Info_set(info, "deltafs_indicks", "parallel");
        rc = MPI_File_open(MPI_COMM_WORLD, name_of("hints"), MPI_MODE_RDWR, info, &f);
        expect_class("a hint of a bad name", rc, MPI_ERR_INFO_VALUE);
    }
    MPI_Info_free(&info);
    remove_file("hints");
}

/* Types whose bytes are out of order in memory, or lie on both sides of the buffer's address. */
static void test_types(void)
{
    MPI_File f = file_open("types", MPI_MODE_CREATE | MPI_MODE_RDWR);
    int blocks[2] = {4, 4};
    MPI_Aint places[2] = {4, 0};
    MPI_Aint around[2] = {-8, 4};
    MPI_Datatype swapped, sides;
    char bytes[24] = "abcdefghijklmnopqrstuvw";
    char got[25] = "";

    MPI_Type_create_hindexed(2, blocks, places, MPI_CHAR, &swapped);
    MPI_Type_commit(&swapped);
    MPI_Type_create_hindexed(2, blocks, around, MPI_CHAR, &sides);
    MPI_Type_commit(&sides);
    MPI_File_write_at(f, 100 * rank, bytes, 2, swapped, MPI_STATUS_IGNORE);
    MPI_File_write_at(f, 100 * rank + 16, bytes + 8, 1, sides, MPI_STATUS_IGNORE);
    MPI_File_read_at(f, 100 * rank, got, 24, MPI_CHAR, MPI_STATUS_IGNORE);
    expect(strcmp(got, "efghabcdmnopijklabcdmnop") == 0, "bytes in the type's order", got[0], 'e');
    memset(got, '.', 24);
    MPI_File_read_at(f, 100 * rank, got, 2, swapped, MPI_STATUS_IGNORE);
    expect(memcmp(got, "abcdefghijklmnop........", 24) == 0, "bytes read in the type's order", got[0], 'a');
    MPI_Type_free(&swapped);
    MPI_Type_free(&sides);
    MPI_File_close(&f);
    remove_file("types");
}

#define LONG (5 << 20) /* bytes of a file: more than a driver may move at once */

/* Where the pointer is after a read of `items` from the file's begin on. */
static void check_pointer(MPI_File f, const char *what, MPI_Datatype memory, int items, MPI_Offset wanted,
                          int is_collective)
{
    static char bytes[4 * LONG];
    MPI_Offset at = -1;
    MPI_Status status;

    MPI_File_seek(f, 0, MPI_SEEK_SET);
    if (is_collective)
        expect_class(what, MPI_File_read_all(f, bytes, items, memory, &status), MPI_SUCCESS);
    else
        expect_class(what, MPI_File_read(f, bytes, items, memory, &status), MPI_SUCCESS);
    MPI_File_get_position(f, &at);
    expect_number(what, at, wanted);
}

/* Reading beyond the end of the file: the pointer is behind what was read or, if the memory or the view has gaps,
 * behind what was asked for. */
static void test_pointers(void)
{
    MPI_File f = file_open("pointers", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype gaps, view, resized;

    MPI_Type_vector(2, 1, 2, MPI_CHAR, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Type_contiguous(1, MPI_CHAR, &view);
    MPI_Type_create_resized(view, 0, 2, &resized);
    MPI_Type_commit(&resized);
    MPI_File_set_size(f, LONG);
    for (int is_collective = 0; is_collective < 2; is_collective++) {
        if (!is_collective) /* else it depends on how many ranks there are */
            check_pointer(f, "contiguous", MPI_CHAR, LONG + 1000, LONG, is_collective);
        check_pointer(f, "gaps in memory", gaps, LONG, 2 * LONG, is_collective);
    }
    MPI_File_set_view(f, 0, MPI_CHAR, resized, "native", MPI_INFO_NULL);
    for (int is_collective = 0; is_collective < 2; is_collective++) {
        check_pointer(f, "gaps in the view", MPI_CHAR, 2 * LONG, 2 * LONG, is_collective);
        check_pointer(f, "gaps in both", gaps, LONG, 2 * LONG, is_collective);
    }
    MPI_File_close(&f);
    MPI_Type_free(&gaps);
    MPI_Type_free(&view);
    MPI_Type_free(&resized);
    remove_file("pointers");
}

/* Of collective calls one after another the last one wins, whoever of the ranks writes in it. */
static void test_turns(int mode)
{
    MPI_File f = file_open("turns", MPI_MODE_CREATE | mode);
    char byte;

    for (int writer = ranks - 1; writer >= 0; writer--) {
        byte = (char)('a' + writer);
        MPI_File_write_at_all(f, 0, &byte, rank == writer, MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&f);
    f = file_open("turns", MPI_MODE_RDONLY);
    MPI_File_read_at_all(f, 0, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    expect_number("the last writer's byte", byte, 'a');
    MPI_File_close(&f);
    remove_file("turns");
}

/* Rank 0 has another handle on the file, of its own: what it writes later wins, whichever handle it uses. PnetCDF
 * writes the number of records so. */
static void test_handles(void)
{
    MPI_File f = file_open("handles", MPI_MODE_CREATE | MPI_MODE_RDWR), g;
    MPI_Status *none = MPI_STATUS_IGNORE;
    char got[9] = "";

    if (rank == 0) {
        expect_class("write", MPI_File_write_at(f, 0, "abcdefgh", 8, MPI_BYTE, none), MPI_SUCCESS);
        expect_class("open", MPI_File_open(MPI_COMM_SELF, name_of("handles"), MPI_MODE_RDWR, MPI_INFO_NULL, &g),
                     MPI_SUCCESS);
        expect_class("write", MPI_File_write_at(g, 4, "0000", 4, MPI_BYTE, none), MPI_SUCCESS);
        expect_class("write", MPI_File_write_at(f, 4, "2222", 4, MPI_BYTE, none), MPI_SUCCESS);
        expect_class("write", MPI_File_write_at(g, 6, "33", 2, MPI_BYTE, none), MPI_SUCCESS);
        expect_class("write", MPI_File_write_at(f, 7, "4", 1, MPI_BYTE, none), MPI_SUCCESS);
    }
    MPI_File_close(&f);
    if (rank == 0)
        MPI_File_close(&g);
    MPI_Barrier(MPI_COMM_WORLD);
    f = file_open("handles", MPI_MODE_RDONLY);
    expect_class("read", MPI_File_read_at(f, 0, got, 8, MPI_BYTE, none), MPI_SUCCESS);
    expect_number("bytes are as written last", strcmp(got, "abcd2234"), 0);
    MPI_File_close(&f);
    remove_file("handles");
}

#if MPI_VERSION >= 4
#define LARGE 10

/* Types of 24 bytes in a row that were made with large counts, which MPI_Type_get_envelope refuses to speak of. (Of
 * such types that have gaps MPICH's own ROMIO cannot write or read anything.) */
static void make_large(MPI_Datatype *type)
{
    MPI_Count lengths[2] = {3, 3}, bytes[2] = {0, 12}, six = 6, zero = 0;
    MPI_Datatype ints[2] = {MPI_INT, MPI_FLOAT}, pair;

    MPI_Type_contiguous_c(6, MPI_INT, &type[0]);
    MPI_Type_vector_c(3, 2, 2, MPI_INT, &type[1]);
    MPI_Type_create_hvector_c(2, 3, 12, MPI_INT, &type[2]);
    MPI_Type_contiguous_c(2, MPI_CHAR, &pair);
    MPI_Type_indexed_c(2, lengths, (MPI_Count[]){0, 3}, MPI_INT, &type[3]);
    MPI_Type_create_hindexed_c(2, lengths, bytes, MPI_INT, &type[4]);
    MPI_Type_create_indexed_block_c(2, 6, (MPI_Count[]){0, 6}, pair, &type[5]);
    MPI_Type_create_hindexed_block_c(2, 3, bytes, MPI_INT, &type[6]);
    MPI_Type_create_struct_c(2, lengths, bytes, ints, &type[7]);
    MPI_Type_create_resized_c(type[0], 0, 24, &type[8]);
    MPI_Type_create_subarray_c(1, &six, &six, &zero, MPI_ORDER_C, MPI_INT, &type[9]);
    MPI_Type_free(&pair);
    for (int i = 0; i < LARGE; i++)
        MPI_Type_commit(&type[i]);
}

static void test_large_counts(void)
{
    MPI_File f = file_open("large", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype type[LARGE];
    char bytes[48], got[48];

    make_large(type);
    for (int i = 0; i < LARGE; i++) {
        MPI_Offset at = 100 * (rank * LARGE + i);
        MPI_Status status;
        memset(got, 0, sizeof got);
        for (int k = 0; k < 48; k++)
            bytes[k] = (char)(i + k);
        expect_class("write", MPI_File_write_at(f, at, bytes, 2, type[i], MPI_STATUS_IGNORE), MPI_SUCCESS);
        expect_class("read", MPI_File_read_at(f, at, got, 2, type[i], &status), MPI_SUCCESS);
        expect_number("items read", count_of(&status, type[i]), 2);
        expect_number("bytes that differ in type", memcmp(bytes, got, 48) == 0 ? -1 : i, -1);
        MPI_Type_free(&type[i]);
    }
    MPI_File_close(&f);
    remove_file("large");
}
#endif

int main(int argc, char **argv)
{
    int all;
    int is_deltafs = argc > 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    folder = argv[1];
    is_pool = argc > 2 && strcmp(argv[2], "pool") == 0;
    test = "modes", test_modes();
    test = "alone", test_alone();
    test = "sizes", test_sizes();
    if (is_pool) {
        test = "refused", test_refused();
    } else {
        test = "shared", test_shared();
        test = "atomic", test_atomic();
    }
    if (is_deltafs) /* ROMIO's others have MPI_File_sync for writers only */
        test = "refresh", test_refresh();
    test = "handlers", test_handlers();
    test = "hints", test_hints(is_deltafs);
    test = "types", test_types();
    test = "turns, writing only", test_turns(MPI_MODE_WRONLY);
    test = "turns", test_turns(MPI_MODE_RDWR);
    test = "pointers", test_pointers();
    test = "handles", test_handles();
#if MPI_VERSION >= 4
    test = "large counts", test_large_counts();
#endif
    MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d faults\n", all);
    MPI_Finalize();
    return all > 0;
}
