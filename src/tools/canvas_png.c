/* A picture as PNG, by cairo. Its library is loaded when it is needed, and its few functions that are used are declared
 * here: so neither building nor running the other commands needs cairo. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/canvas.h"
#include "tools/text.h"

#define LIBRARY "libcairo.so.2"
#define SCALE   2 /* pixels for each unit */

enum { FORMAT_RGB24 = 1, JOIN_ROUND = 1, SUCCESS = 0, WRITE_ERROR = 11 };

struct extents {
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
};

typedef int png_writer(void *file, const unsigned char *bytes, unsigned n);

/* Cairo's functions, without "cairo_". A `void *` is a drawing context, or a surface. */
struct cairo {
    void *(*image_surface_create)(int format, int width, int height);
    void *(*create)(void *surface);
    int (*status)(void *);
    const char *(*status_to_string)(int);
    int (*surface_write_to_png_stream)(void *surface, png_writer *, void *file);
    void (*destroy)(void *);
    void (*surface_destroy)(void *surface);
    void (*scale)(void *, double, double);
    void (*save)(void *);
    void (*restore)(void *);
    void (*rotate)(void *, double);
    void (*translate)(void *, double, double);
    void (*set_source_rgb)(void *, double, double, double);
    void (*set_line_width)(void *, double);
    void (*set_line_join)(void *, int);
    void (*set_dash)(void *, const double *, int, double);
    void (*move_to)(void *, double, double);
    void (*line_to)(void *, double, double);
    void (*rectangle)(void *, double, double, double, double);
    void (*arc)(void *, double, double, double, double, double);
    void (*stroke)(void *);
    void (*fill)(void *);
    void (*select_font_face)(void *, const char *family, int slant, int weight);
    void (*set_font_size)(void *, double);
    void (*text_extents)(void *, const char *, struct extents *);
    void (*show_text)(void *, const char *);
};

static const char *const names[] = {"image_surface_create",
                                    "create",
                                    "status",
                                    "status_to_string",
                                    "surface_write_to_png_stream",
                                    "destroy",
                                    "surface_destroy",
                                    "scale",
                                    "save",
                                    "restore",
                                    "rotate",
                                    "translate",
                                    "set_source_rgb",
                                    "set_line_width",
                                    "set_line_join",
                                    "set_dash",
                                    "move_to",
                                    "line_to",
                                    "rectangle",
                                    "arc",
                                    "stroke",
                                    "fill",
                                    "select_font_face",
                                    "set_font_size",
                                    "text_extents",
                                    "show_text"};

_Static_assert(sizeof(struct cairo) == sizeof names, "a name for each function");

struct png {
    struct cairo f;
    void *surface, *context;
};

static int png_load(const struct canvas *c, struct cairo *f)
{
    char name[64];
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "cairo_%s", names[i]);
        void *symbol = dlsym(library, name);
        if (!symbol)
            library = NULL;
        memcpy((char *)f + i * sizeof symbol, &symbol, sizeof symbol);
    }
    if (library)
        return EXIT_OK;
    return text_fail(EXIT_TROUBLE,
                     "plot: %s: PNG needs the library cairo (Debian: libcairo2), but %s; install it, or end "
                     "the name with .svg, which needs no library",
                     c->name, dlerror());
}

static int png_begin(struct canvas *c)
{
    struct png *p = calloc(1, sizeof *p);
    int code = p ? png_load(c, &p->f) : text_fail(EXIT_TROUBLE, "plot: no memory for a picture");

    if (code != EXIT_OK) {
        free(p);
        return code;
    }
    c->state = p;
    p->surface = p->f.image_surface_create(FORMAT_RGB24, SCALE * (int)c->width, SCALE * (int)c->height);
    p->context = p->f.create(p->surface);
    p->f.scale(p->context, SCALE, SCALE);
    p->f.select_font_face(p->context, "sans-serif", 0, 0);
    p->f.set_line_join(p->context, JOIN_ROUND);
    return EXIT_OK;
}

static int png_write(void *file, const unsigned char *bytes, unsigned n)
{
    return fwrite(bytes, 1, n, file) == n ? SUCCESS : WRITE_ERROR;
}

static int png_end(struct canvas *c)
{
    struct png *p = c->state;
    int status = p->f.status(p->context), code = EXIT_OK;

    errno = 0;
    if (status == SUCCESS)
        status = p->f.surface_write_to_png_stream(p->surface, png_write, c->file);
    if (status != SUCCESS)
        code = text_fail(EXIT_TROUBLE, "cannot write to %s: %s", c->name,
                         errno != 0 ? strerror(errno) : p->f.status_to_string(status));
    p->f.destroy(p->context);
    p->f.surface_destroy(p->surface);
    free(p);
    return code;
}

static void png_group(struct canvas *c, const char *name)
{
    (void)c;
    (void)name;
}

static void png_color(const struct png *p, uint32_t rgb)
{
    p->f.set_source_rgb(p->context, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0);
}

static void png_line(struct canvas *c, const struct pen *pen, const struct point *at, size_t n)
{
    static const double dash[] = {CANVAS_DASH, CANVAS_DASH / 2};
    const struct png *p = c->state;
    int is_begun = 0;

    png_color(p, pen->rgb);
    p->f.set_line_width(p->context, pen->width);
    p->f.set_dash(p->context, dash, pen->is_dashed ? 2 : 0, 0);
    for (size_t i = 0; i < n; i++) {
        if (!isnan(at[i].x))
            (is_begun ? p->f.line_to : p->f.move_to)(p->context, at[i].x, at[i].y);
        is_begun = !isnan(at[i].x);
    }
    p->f.stroke(p->context);
}

static void png_area(struct canvas *c, uint32_t rgb, double x, double y, double width, double height)
{
    const struct png *p = c->state;

    png_color(p, rgb);
    p->f.rectangle(p->context, x, y, width, height);
    p->f.fill(p->context);
}

static void png_dot(struct canvas *c, uint32_t rgb, struct point at, double radius)
{
    const struct png *p = c->state;

    png_color(p, rgb);
    p->f.arc(p->context, at.x, at.y, radius, 0, 2 * acos(-1));
    p->f.fill(p->context);
}

static void png_text(struct canvas *c, const struct lettering *l, struct point at, const char *text)
{
    static const double share[] = {0, 0.5, 1};
    const struct png *p = c->state;
    struct extents size;

    p->f.save(p->context);
    png_color(p, l->rgb);
    p->f.set_font_size(p->context, l->size);
    p->f.text_extents(p->context, text, &size);
    p->f.translate(p->context, at.x, at.y);
    if (l->is_upward)
        p->f.rotate(p->context, -acos(-1) / 2);
    p->f.move_to(p->context, -share[l->anchor] * size.x_advance, 0);
    p->f.show_text(p->context, text);
    p->f.restore(p->context);
}

const struct canvas_kind canvas_png = {.suffix = ".png",
                                       .begin = png_begin,
                                       .end = png_end,
                                       .group = png_group,
                                       .line = png_line,
                                       .area = png_area,
                                       .dot = png_dot,
                                       .text = png_text};
