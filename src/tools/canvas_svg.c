/* A picture as SVG. Text stays text: it can be searched, and is drawn in a font of the viewer. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "tools/canvas.h"
#include "tools/text.h"

static void svg_escape(FILE *f, const char *text)
{
    for (; *text; text++) {
        const char *as = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (as || *text == '"')
            fputs(as ? as : "&quot;", f);
        else
            putc(*text, f);
    }
}

static int svg_begin(struct canvas *c)
{
    fprintf(c->file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\"\n"
            "  font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" fill=\"none\" stroke-linejoin=\"round\">\n",
            c->width, c->height, c->width, c->height);
    return EXIT_OK;
}

static int svg_end(struct canvas *c)
{
    fputs("</svg>\n", c->file);
    return ferror(c->file) ? text_fail(EXIT_TROUBLE, "cannot write to %s: %s", c->name, strerror(errno)) : EXIT_OK;
}

static void svg_group(struct canvas *c, const char *name)
{
    if (!name) {
        fputs("</g>\n", c->file);
        return;
    }
    fputs("<g><title>", c->file);
    svg_escape(c->file, name);
    fputs("</title>\n", c->file);
}

static void svg_line(struct canvas *c, const struct pen *pen, const struct point *p, size_t n)
{
    char last[64] = "", now[64];
    int is_begun = 0;

    fputs("<path d=\"", c->file);
    for (size_t i = 0; i < n; i++) {
        if (isnan(p[i].x)) {
            is_begun = 0;
            continue;
        }
        snprintf(now, sizeof now, "%.2f %.2f", p[i].x, p[i].y);
        if (!is_begun || strcmp(now, last) != 0)
            fprintf(c->file, "%c%s", is_begun ? 'L' : 'M', now);
        memcpy(last, now, sizeof last);
        is_begun = 1;
    }
    fprintf(c->file, "\" stroke=\"#%06x\" stroke-width=\"%g\"", (unsigned)pen->rgb, pen->width);
    if (pen->is_dashed)
        fprintf(c->file, " stroke-dasharray=\"%g %g\"", CANVAS_DASH, CANVAS_DASH / 2);
    fputs("/>\n", c->file);
}

static void svg_area(struct canvas *c, uint32_t rgb, double x, double y, double width, double height)
{
    fprintf(c->file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n", x, y, width,
            height, (unsigned)rgb);
}

static void svg_dot(struct canvas *c, uint32_t rgb, struct point p, double radius)
{
    fprintf(c->file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\" fill=\"#%06x\"/>\n", p.x, p.y, radius, (unsigned)rgb);
}

static void svg_text(struct canvas *c, const struct lettering *l, struct point p, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};

    fprintf(c->file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" text-anchor=\"%s\" fill=\"#%06x\"", p.x, p.y,
            l->size, anchors[l->anchor], (unsigned)l->rgb);
    if (l->is_upward)
        fprintf(c->file, " transform=\"rotate(-90 %.2f %.2f)\"", p.x, p.y);
    putc('>', c->file);
    svg_escape(c->file, text);
    fputs("</text>\n", c->file);
}

const struct canvas_kind canvas_svg = {.suffix = ".svg",
                                       .begin = svg_begin,
                                       .end = svg_end,
                                       .group = svg_group,
                                       .line = svg_line,
                                       .area = svg_area,
                                       .dot = svg_dot,
                                       .text = svg_text};
