/* deltafs plot: trajectories, or columns over time, as a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/plot.h"

#define FIELDS_ROOM 1100 /* names of all columns */

struct values {
    struct export_request request;
    const char *x, *y, *color;
};

static const struct canvas_kind *const kinds[] = {&canvas_svg, &canvas_png};

/* ---- Which columns ---- */

static int is_own(const char *name)
{
    return strcmp(name, "key") == 0 || strcmp(name, "epoch") == 0;
}

/* Whether `name` is one column of numbers; otherwise a message for the option. */
static int plot_check_number(const char *option, const char *name, const char *schema)
{
    deltafs_schema *s;
    int code = text_of_call(deltafs_schema_parse(schema, &s));

    if (code != EXIT_OK)
        return code;
    if (deltafs_schema_count(s) != 1)
        code = text_fail(EXIT_USAGE, "plot: --%s: '%s' is more than one column", option, name);
    else if (!strchr("fiu", deltafs_schema_field(s, 0)->kind))
        code = text_fail(EXIT_USAGE, "plot: --%s: '%s' has no numbers, but text or bytes", option, name);
    deltafs_schema_destroy(s);
    return code;
}

/* The message of the library, without its place in a list of fields. */
static int plot_fail_name(const char *option, int status)
{
    static const char place[] = "fields: offset 0: ";
    const char *message = deltafs_errmsg(NULL), *found = strstr(message, place);

    return text_fail(text_exit_code(status), "plot: --%s: %s", option, found ? found + strlen(place) : message);
}

static int plot_check(struct plot *p, const char *option, const char *name)
{
    deltafs_columns *columns;

    if (strcmp(name, "key") == 0 && p->x.has_bytes_keys)
        return text_fail(EXIT_USAGE, "plot: --%s: keys of this directory are no numbers", option);
    if (is_own(name))
        return EXIT_OK;
    int status = deltafs_columns_open(p->x.dir, name, &columns);
    if (status != DELTAFS_OK)
        return plot_fail_name(option, status);
    int code = plot_check_number(option, name, deltafs_columns_schema(columns));
    deltafs_columns_close(columns);
    return code;
}

/* Whether there is a column or an attribute of this name, with numbers. */
static int plot_has(struct plot *p, const char *name)
{
    deltafs_columns *columns;
    int is_there = deltafs_columns_open(p->x.dir, name, &columns) == DELTAFS_OK;

    if (is_there)
        deltafs_columns_close(columns);
    return is_there;
}

/* The first column of numbers; it belongs to `all`. */
static const char *plot_first(const deltafs_schema *all)
{
    for (size_t i = 0; i < deltafs_schema_count(all); i++)
        if (strchr("fiu", deltafs_schema_field(all, i)->kind))
            return deltafs_schema_field(all, i)->name;
    return NULL;
}

/* The columns of the axes that the command line does not name: positions, or a column over time. */
static int plot_choose(struct plot *p, const struct values *v, const deltafs_schema *all)
{
    static const char *const positions[PLOT_POSITIONS] = {"x", "y", "z"};
    size_t n = 0;

    for (size_t i = 0; i < PLOT_POSITIONS && !v->y; i++)
        if (plot_has(p, positions[i]))
            p->column[n++].name = positions[i];
    if (n >= 2)
        return EXIT_OK;
    p->column[0].name = plot_has(p, "time") ? "time" : "epoch";
    p->column[1].name = v->y ? v->y : plot_first(all);
    return p->column[1].name ? EXIT_OK : text_fail(EXIT_USAGE, "plot: there is no column with numbers");
}

static int plot_name_columns(struct plot *p, const struct values *v, const deltafs_schema *all)
{
    int code = EXIT_OK;

    p->vertical = 1;
    p->column[PLOT_COLOR].name = v->color;
    if (v->x && !v->y)
        return text_fail(EXIT_USAGE, "plot: --x needs --y");
    if (v->x)
        code = plot_check(p, "x", v->x);
    if (v->y && code == EXIT_OK)
        code = plot_check(p, "y", v->y);
    if (v->color && code == EXIT_OK)
        code = plot_check(p, "color", v->color);
    if (code != EXIT_OK || !v->x)
        return code == EXIT_OK ? plot_choose(p, v, all) : code;
    p->column[0].name = v->x;
    p->column[1].name = v->y;
    return EXIT_OK;
}

/* ---- What is known of them ---- */

/* A number of an attribute, valid for the last epoch; `i` beyond its end is the last one. NaN: there is none. */
static double attribute_number(const struct deltafs_attribute *a, size_t i)
{
    i = i < a->count ? i : a->count - 1;
    switch (a->count > 0 ? a->type : 0) {
    case DELTAFS_ATTRIBUTE_F8:
        return ((const double *)a->value)[i];
    case DELTAFS_ATTRIBUTE_I8:
        return (double)((const int64_t *)a->value)[i];
    case DELTAFS_ATTRIBUTE_U8:
        return (double)((const uint64_t *)a->value)[i];
    default:
        return NAN;
    }
}

/* The length of the box along x, y or z, of the attributes that an import of VPIC's dumps sets: for each rank, where
 * its part begins (x0), how large a cell is (hx) and how many it has (nx). 0: not known. */
static double plot_box(deltafs_dir *dir, const char *name)
{
    struct deltafs_attribute begin = {.struct_size = sizeof begin}, cell = begin, cells = begin;
    const char names[3][3] = {{name[0], '0'}, {'h', name[0]}, {'n', name[0]}};
    double low = INFINITY, high = -INFINITY;

    if (!strchr("xyz", name[0]) || name[1] != '\0' ||
        deltafs_attribute_get(dir, names[0], UINT64_MAX, &begin) != DELTAFS_OK ||
        deltafs_attribute_get(dir, names[1], UINT64_MAX, &cell) != DELTAFS_OK ||
        deltafs_attribute_get(dir, names[2], UINT64_MAX, &cells) != DELTAFS_OK)
        return 0;
    for (size_t i = 0; i < begin.count; i++) {
        double at = attribute_number(&begin, i);
        low = fmin(low, at);
        high = fmax(high, at + attribute_number(&cell, i) * attribute_number(&cells, i));
    }
    return high > low && scale_can(high - low) ? high - low : 0;
}

static void plot_learn(struct plot *p, struct plot_column *c)
{
    static const double length[7] = {1};
    struct deltafs_attribute a = {.struct_size = sizeof a};
    const char cells[] = {'n', c->name[0], '\0'};

    if (deltafs_attribute_get(p->x.dir, c->name, UINT64_MAX, &a) == DELTAFS_OK && a.unit_si != 0) {
        c->unit_si = a.unit_si;
        attribute_dimension_text(&a, c->unit, sizeof c->unit);
        c->is_position = memcmp(a.unit_dimension, length, sizeof length) == 0;
    } else {
        c->is_position = strchr("xyz", c->name[0]) && c->name[1] == '\0';
    }
    c->box = c->is_position ? plot_box(p->x.dir, c->name) : 0;
    c->is_thin = c->box > 0 && deltafs_attribute_get(p->x.dir, cells, UINT64_MAX, &a) == DELTAFS_OK &&
                 attribute_number(&a, 0) == 1;
}

/* ---- Rows: the format of an export ---- */

static int plot_begin(struct export *x)
{
    struct plot *p = (struct plot *)x;

    for (size_t i = 0; i < PLOT_COLUMNS; i++) {
        struct plot_column *c = &p->column[i];
        if (!c->name)
            continue;
        while (c->at + 1 < x->columns && strcmp(x->column[c->at].name, c->name) != 0)
            c->at++;
        c->is_integer = x->column[c->at].kind != 'f';
        plot_learn(p, c);
    }
    return EXIT_OK;
}

static double plot_number(const struct export *x, const struct plot_column *c, const struct deltafs_record *row)
{
    uint8_t number[8];
    size_t size;

    return export_number(&x->column[c->at], export_cell(x, c->at, row, number, &size));
}

static int plot_grow(void **array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return EXIT_OK;
    size_t more = *capacity > 0 ? 2 * *capacity : 64;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return text_fail(EXIT_TROUBLE, "plot: no memory for %zu points", more);
    *array = grown;
    *capacity = more;
    return EXIT_OK;
}

/* A key as a text, which can be drawn, and be in an SVG: what is not a character becomes U+FFFD. */
static void plot_label(const struct deltafs_record *row, char *out)
{
    char shown[4 * KEY_MAX + 1];
    size_t n = (size_t)snprintf(shown, sizeof shown, "%llu", (unsigned long long)row->key), length;

    if (row->key_bytes) {
        text_show(row->key_bytes, row->key_size, shown, sizeof shown);
        n = strlen(shown);
    }
    for (size_t i = 0; i<n; i += length> 0 ? length : 1) {
        length = text_utf8_length(shown + i, n - i);
        if (length == 0 ||
            (length == 3 && (!memcmp(shown + i, "\xef\xbf\xbe", 3) || !memcmp(shown + i, "\xef\xbf\xbf", 3))))
            out = stpcpy(out, "\xef\xbf\xbd");
        else
            out = (char *)memcpy(out, shown + i, length) + length;
    }
    *out = '\0';
}

/* Begin the track of the row. */
static int plot_add_track(struct plot *p, const struct deltafs_record *row)
{
    char label[3 * 4 * KEY_MAX + 1];
    int code = plot_grow((void **)&p->track, p->tracks, &p->track_capacity, sizeof *p->track);

    if (code != EXIT_OK)
        return code;
    plot_label(row, label);
    char *copy = strdup(label);
    if (!copy)
        return text_fail(EXIT_TROUBLE, "plot: no memory for a key");
    p->track[p->tracks++] = (struct plot_track){.label = copy, .first = p->points};
    p->key = *row;
    return EXIT_OK;
}

static int plot_is_new(const struct plot *p, const struct deltafs_record *row)
{
    return p->tracks == 0 || row->key != p->key.key || row->key_bytes != p->key.key_bytes;
}

static int plot_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct plot *p = (struct plot *)x;
    int code = EXIT_OK;

    for (size_t r = 0; r < count && code == EXIT_OK; r++) {
        code = plot_grow((void **)&p->point, p->points, &p->point_capacity, sizeof *p->point);
        if (code == EXIT_OK && plot_is_new(p, &row[r]))
            code = plot_add_track(p, &row[r]);
        if (code != EXIT_OK)
            return code;
        for (size_t i = 0; i < PLOT_COLUMNS; i++)
            p->point[p->points].value[i] = p->column[i].name ? plot_number(x, &p->column[i], &row[r]) : NAN;
        p->track[p->tracks - 1].count++;
        p->points++;
    }
    return code;
}

/* How far the numbers of a column are apart; not at all where the grid has only one cell. */
static double plot_extent(const struct plot *p, size_t column)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < p->points; i++)
        if (scale_can(p->point[i].value[column])) {
            low = fmin(low, p->point[i].value[column]);
            high = fmax(high, p->point[i].value[column]);
        }
    return p->column[column].is_thin ? 0 : high - low;
}

/* Of three positions, leave out the one in which the tracks extend least. */
static void plot_choose_plane(struct plot *p)
{
    size_t least = PLOT_POSITIONS - 1;

    for (size_t i = PLOT_POSITIONS; i-- > 0;)
        if (plot_extent(p, i) < plot_extent(p, least))
            least = i;
    p->horizontal = least == 0;
    p->vertical = least == 2 ? 1 : 2;
}

static int plot_end(struct export *x)
{
    struct plot *p = (struct plot *)x;

    if (p->column[PLOT_POSITIONS - 1].name)
        plot_choose_plane(p);
    return plot_draw(p);
}

static void plot_release(struct export *x)
{
    struct plot *p = (struct plot *)x;

    for (size_t i = 0; i < p->tracks; i++)
        free(p->track[i].label);
    free(p->track);
    free(p->point);
}

static const struct export_format plot_format = {
    .name = "plot", .state_size = 1, .begin = plot_begin, .rows = plot_rows, .end = plot_end, .release = plot_release};

/* ---- The command ---- */

/* The columns to read, each once; `fields` is "" if there are none but key and epoch. */
static int plot_list_fields(const struct plot *p, char fields[FIELDS_ROOM])
{
    size_t n = 0;

    fields[0] = '\0';
    for (size_t i = 0; i < PLOT_COLUMNS; i++) {
        const char *name = p->column[i].name;
        int is_there = !name || is_own(name);
        for (size_t k = 0; k < i && !is_there; k++)
            is_there = p->column[k].name && strcmp(p->column[k].name, name) == 0;
        if (!is_there)
            n += (size_t)snprintf(fields + n, FIELDS_ROOM - n, "%s%s", n > 0 ? "," : "", name);
        if (n >= FIELDS_ROOM)
            return text_fail(EXIT_USAGE, "plot: the names of the columns are too long");
    }
    return EXIT_OK;
}

/* Choose the columns and make the picture. */
static int plot_make(struct plot *p, const struct values *v, struct key_list *keys)
{
    struct export_request r = v->request;
    char fields[FIELDS_ROOM];
    deltafs_columns *columns;
    deltafs_schema *all;
    int code = text_of_call(deltafs_columns_open(p->x.dir, NULL, &columns));

    if (code != EXIT_OK)
        return code;
    if (*deltafs_columns_schema(columns) == '\0')
        code = text_fail(EXIT_USAGE, "plot: this directory has no schema, so nothing is known of its columns");
    else
        code = text_of_call(deltafs_schema_parse(deltafs_columns_schema(columns), &all));
    if (code == EXIT_OK) {
        code = plot_name_columns(p, v, all);
        if (code == EXIT_OK)
            code = plot_list_fields(p, fields);
        if (code == EXIT_OK) {
            r.fields = *fields != '\0' ? fields : NULL;
            r.format = &plot_format;
            r.is_forced = 1;
            code = export_make(&p->x, &r, keys);
        }
        deltafs_schema_destroy(all);
    }
    deltafs_columns_close(columns);
    return code;
}

static const struct canvas_kind *plot_kind(const char *to)
{
    size_t n = strlen(to);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (n > strlen(kinds[i]->suffix) && strcmp(to + n - strlen(kinds[i]->suffix), kinds[i]->suffix) == 0)
            return kinds[i];
    return NULL;
}

static int plot_run(const struct command_call *c)
{
    const struct values *v = c->values;
    struct plot p = {.x = {.command = "plot"}};
    struct key_list keys = {0};

    if (!v->request.to)
        return text_fail(EXIT_USAGE, "plot: --output is missing");
    p.kind = plot_kind(v->request.to);
    if (!p.kind)
        return text_fail(EXIT_USAGE, "plot: %s: the name of a picture must end with .png or .svg", v->request.to);
    if (c->count < 2 && !v->request.keys_file)
        return text_fail(EXIT_USAGE, "plot: KEY is missing; give keys, or --keys FILE (`deltafs select DIR "
                                     "--format keys` prints some)");
    int code = export_open(&p.x, &v->request, c, &keys);
    if (code == EXIT_OK)
        code = plot_make(&p, v, &keys);
    export_close(&p.x, &keys);
    return code;
}

static const struct command_option options[] = {
    {"output", 'o', "FILE", "the picture to be made, FILE.png or FILE.svg; an older one is replaced", cmd_parse_text,
     offsetof(struct values, request.to)},
    {"x", 0, "FIELD",
     "the column for the horizontal axis: stored or computed, an attribute that is one\n"
     "                         number, or epoch (default: two of x, y, z, or time)",
     cmd_parse_text, offsetof(struct values, x)},
    {"y", 0, "FIELD", "the same for the vertical axis", cmd_parse_text, offsetof(struct values, y)},
    {"color", 0, "FIELD", "the same for the colour of the lines (default: a colour for each key)", cmd_parse_text,
     offsetof(struct values, color)},
    {"keys", 0, "FILE",
     "read more keys from a file (- is standard input): separated by blanks, or one\n"
     "                         key of bytes on each line",
     cmd_parse_text, offsetof(struct values, request.keys_file)},
    {"hex", 0, NULL, "take keys of bytes in hexadecimal, separated by blanks", NULL,
     offsetof(struct values, request.is_hex)},
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct values, request.epochs)},
    {0}};

const struct command cmd_plot = {.name = "plot",
                                 .usage = "DIR KEY... -o FILE.png|FILE.svg [OPTION...]",
                                 .text = "Draw trajectories, or columns over time.",
                                 .missing = "DIR is missing",
                                 .least = 1,
                                 .size = sizeof(struct values),
                                 .option = options,
                                 .run = plot_run};
