/* Example: print a particle's trajectory, and the particles that are in a place at a step. No MPI is needed.
 *
 *     cc -o read_ring read_ring.c $(pkg-config --cflags --libs deltafs)
 *     ./read_ring ring 123 20 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_query.h>

/* The fields of a value are little-endian and need not be aligned. */
static float field(const void *value, size_t i)
{
    float f;

    memcpy(&f, (const char *)value + i * sizeof f, sizeof f);
    return f;
}

static int fail(const char *what)
{
    fprintf(stderr, "read_ring: %s: %s\n", what, deltafs_errmsg(NULL));
    return 1;
}

static int print_trajectory(deltafs_dir *dir, uint64_t id)
{
    deltafs_records *records;

    if (deltafs_get(dir, id, NULL, &records) != DELTAFS_OK)
        return fail("deltafs_get");
    for (size_t i = 0; i < records->count; i++) {
        const struct deltafs_record *r = &records->record[i];
        printf("step %llu: %g %g\n", (unsigned long long)r->label, (double)field(r->value, 0),
               (double)field(r->value, 1));
    }
    deltafs_records_destroy(records);
    return 0;
}

/* The particles near the place (1, 0). */
static int print_near(deltafs_dir *dir, uint64_t step)
{
    struct deltafs_range range = {step, step};
    struct deltafs_select_options options = {.struct_size = sizeof options, .range = &range, .fields = "y"};
    const struct deltafs_record *row;
    deltafs_select *select;
    size_t n = 1;
    int status;

    options.where = "x > 0.999 * r"; /* r is a computed column */
    if (deltafs_select_open(dir, &options, &select) != DELTAFS_OK)
        return fail("deltafs_select_open");
    while ((status = deltafs_select_next(select, &row, &n)) == DELTAFS_OK && n > 0)
        for (size_t i = 0; i < n; i++)
            printf("near: %llu %g\n", (unsigned long long)row[i].key, (double)field(row[i].value, 0));
    if (status != DELTAFS_OK)
        fail("deltafs_select_next");
    deltafs_select_close(select);
    return status != DELTAFS_OK;
}

int main(int argc, char **argv)
{
    deltafs_dir *dir;

    if (argc != 4)
        return fprintf(stderr, "usage: read_ring DIR ID STEP\n"), 2;
    if (deltafs_open(argv[1], NULL, &dir) != DELTAFS_OK)
        return fail("deltafs_open");
    int code = print_trajectory(dir, strtoull(argv[2], NULL, 10));
    if (code == 0)
        code = print_near(dir, strtoull(argv[3], NULL, 10));
    deltafs_close(dir);
    return code;
}
