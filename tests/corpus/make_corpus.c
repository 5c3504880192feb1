/* Makes the golden containers; see README. Each has a fixed UUID and fixed records, so that today's writer can be
 * compared with the one that made them.
 *
 *     make_corpus FOLDER [NAME...]     containers FOLDER/NAME, by default all; FOLDER exists, they do not */
#include <stdio.h>
#include <string.h>
#include "corpus_maker.h"

static const struct {
    const char *name;
    void (*make)(struct maker *m, const char *folder, const char *name); /* NULL: no longer written so */
} containers[] = {
    {"any", make_any},
    {"any_plain", make_any_plain},
    {"bounds", make_bounds},
    {"dense", make_dense},
    {"empty", make_empty},
    {"ends", make_ends},
    {"example", make_example},
    {"names", make_names},
    {"names_fixed", make_names_fixed},
    {"no_fences", make_no_fences},
    {"copied", make_copied},
    {"none", make_none},
    {"nothing", make_nothing},
    {"open", make_open},
    {"plain", make_plain},
    {"repeats", make_repeats},
    {"runs", make_runs},
    {"segments", make_segments},
    {"structured", make_structured},
    {"torn", make_torn},
    {"wide", make_wide},
    {"later", make_later},
    {"planes", make_planes},
    {"reopened", make_reopened},
    {"local", NULL}, /* its places depend on lengths that libsnappy packed to */
    {"local_packed", make_local},
    {"local_names", make_local_names},
    {"attributes", make_attributes},
    {"strips", NULL}, /* with constant planes */
    {"sparse", make_strips},
    {"compacted", make_compacted},
    {"ranges", make_ranges},
};

int main(int argc, char **argv)
{
    static struct maker m;

    if (argc < 2) {
        fprintf(stderr, "make_corpus FOLDER [NAME...]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        int is_wanted = argc == 2;
        for (int a = 2; a < argc; a++)
            is_wanted |= strcmp(argv[a], containers[i].name) == 0;
        if (is_wanted && containers[i].make)
            containers[i].make(&m, argv[1], containers[i].name);
    }
    return 0;
}
