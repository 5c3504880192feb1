/* Selects while there is no memory: each allocation fails in turn. All rows come, or DELTAFS_ERR_MEMORY. */
#include <deltafs/deltafs_query.h>
#include "unit_help.h"
#include "unit_memory.h"

#define RECORDS 100

static deltafs_dir *create(const char *name)
{
    deltafs_dir *d = unit_create(unit_path("%s", name), unit_options("schema", "x:f4,n:u4", "threads", "0", NULL));
    const struct deltafs_attribute a = {
        .struct_size = sizeof a, .name = "twice", .type = DELTAFS_ATTRIBUTE_EXPRESSION, .value = "2*n"};

    CHECK_CALL(d, deltafs_attribute_set(d, &a), DELTAFS_OK);
    for (uint32_t i = 0; i < RECORDS; i++) {
        const uint32_t value[2] = {0, i};
        CHECK_CALL(d, deltafs_append(d, i, value, sizeof value), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return unit_open(unit_path("%s", name));
}

static int select_rows(deltafs_dir *d, const struct deltafs_select_options *o, size_t *rows)
{
    const struct deltafs_record *row;
    deltafs_select *s;
    size_t n = 1;
    int status = deltafs_select_open(d, o, &s);

    *rows = 0;
    if (status != DELTAFS_OK)
        return status;
    for (; n > 0 && status == DELTAFS_OK; *rows += status == DELTAFS_OK ? n : 0)
        status = deltafs_select_next(s, &row, &n);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    return status;
}

static void check_all(deltafs_dir *d, const struct deltafs_select_options *o, size_t want)
{
    int has_failed = 1;
    size_t rows;

    for (uint64_t k = 0; has_failed; k++) {
        unit_memory_fail_at(k);
        int status = select_rows(d, o, &rows);
        has_failed = unit_memory_end();
        if (status != DELTAFS_OK && (status != DELTAFS_ERR_MEMORY || !has_failed))
            fail_msg("allocation %d: status %d: %s", (int)k, status, deltafs_errmsg(NULL));
        CHECK(status != DELTAFS_OK || rows == want);
    }
}

/* (That a schema could not be parsed was said to be the fault of the schema, or of the fields.) */
static void test_memory(void **state)
{
    deltafs_dir *d = create("memory");

    (void)state;
    check_all(d, &(struct deltafs_select_options){.struct_size = sizeof(struct deltafs_select_options)}, RECORDS);
    check_all(d,
              &(struct deltafs_select_options){
                  .struct_size = sizeof(struct deltafs_select_options), .where = "twice < 20", .fields = "twice,x"},
              10);
    check_all(d,
              &(struct deltafs_select_options){
                  .struct_size = sizeof(struct deltafs_select_options), .by = "n % 7", .top = 5, .fields = "n"},
              5);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
