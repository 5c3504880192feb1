/* deltafs plot: trajectories as a picture. cmd_plot.c is the command, which is an export (export.h) whose format is a
 * picture: it chooses the columns, takes the rows, and draws. plot_scale.c divides axes, plot_draw.c draws. */
#ifndef DELTAFS_TOOLS_PLOT_H
#define DELTAFS_TOOLS_PLOT_H

#include "tools/attribute_text.h"
#include "tools/canvas.h"
#include "tools/export.h"

/* Columns that are read: candidates for the axes, and the colour. */
enum { PLOT_POSITIONS = 3, PLOT_COLOR = PLOT_POSITIONS, PLOT_COLUMNS };

struct plot_column {
    const char *name; /* NULL: there is none */
    size_t at;        /* its number in the rows */
    int is_integer, is_position;
    double unit_si; /* 0: not known */
    char unit[ATTRIBUTE_DIMENSION_ROOM];
    double box;  /* the length of the simulated box in this direction; 0: not known */
    int is_thin; /* the box has one cell in this direction */
};

struct plot_point {
    double value[PLOT_COLUMNS];
};

struct plot_track {
    char *label;
    size_t first, count; /* points */
};

struct plot {
    struct export x;
    const struct canvas_kind *kind;
    struct plot_column column[PLOT_COLUMNS];
    size_t horizontal, vertical; /* columns of the axes */
    struct plot_point *point;
    size_t points, point_capacity;
    struct deltafs_record key; /* the row that began the last track */
    struct plot_track *track;
    size_t tracks, track_capacity;
};

/* ---- The division of an axis (plot_scale.c) ---- */

struct scale {
    double low, high;   /* values at its ends */
    double from, to;    /* where they are in the picture */
    double first, step; /* ticks, */
    int ticks;
    int decimals, power; /* whose labels have so many decimals, after division by 10^power */
};

/* Whether a number can be drawn. */
int scale_can(double v);
/* Make `s` for values from low to high, with at most `most` ticks. */
void scale_make(struct scale *s, double low, double high, int most, int is_integer);
double scale_place(const struct scale *s, double v);
double scale_tick(const struct scale *s, int i);

#define SCALE_LABEL_ROOM 400

void scale_label(const struct scale *s, int i, char out[SCALE_LABEL_ROOM]);

/* ---- The picture (plot_draw.c) ---- */

/* Draw all; returns the exit code. */
int plot_draw(const struct plot *p);

#endif
