/* A picture made of lines, areas, points and text, in units of 1/96 inch, from the upper left corner. Drawn as SVG,
 * which needs no library, or as PNG by cairo, which is loaded when it is needed. */
#ifndef DELTAFS_TOOLS_CANVAS_H
#define DELTAFS_TOOLS_CANVAS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct canvas {
    const struct canvas_kind *kind;
    FILE *file;       /* gets the picture */
    const char *name; /* of the file, for messages */
    double width, height;
    void *state; /* of the kind */
};

struct pen {
    uint32_t rgb;
    double width;
    int is_dashed;
};

struct point {
    double x, y;
};

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct lettering {
    uint32_t rgb;
    double size;
    enum anchor anchor;
    int is_upward; /* turned to the left */
};

struct canvas_kind {
    const char *suffix;
    /* These two print a message if they fail, and return the exit code. */
    int (*begin)(struct canvas *c);
    int (*end)(struct canvas *c); /* the picture is in the file, which is to be flushed; called after begin */
    /* What is drawn from now on belongs to a thing of this name; NULL: to none. */
    void (*group)(struct canvas *c, const char *name);
    /* A line through these points. It is interrupted at each point whose x is NaN. */
    void (*line)(struct canvas *c, const struct pen *pen, const struct point *p, size_t n);
    void (*area)(struct canvas *c, uint32_t rgb, double x, double y, double width, double height);
    void (*dot)(struct canvas *c, uint32_t rgb, struct point p, double radius);
    void (*text)(struct canvas *c, const struct lettering *l, struct point p, const char *text);
};

extern const struct canvas_kind canvas_svg, canvas_png;

#define CANVAS_DASH 6.0 /* length of a dash; a gap is half of it */

#endif
