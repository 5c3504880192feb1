/* The picture: axes, tracks, and a legend of keys or a bar of colours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/plot.h"

#define WIDE         600.0 /* the area that the axes enclose */
#define HIGH         400.0
#define SQUARE       520.0 /* its larger side, if both axes have the same scale; */
#define NARROW       180.0 /* its smaller side is not below this */
#define MARGIN       16.0
#define TICK         5.0
#define SMALL        12.0 /* letters */
#define LARGE        14.0
#define LETTER       0.6  /* width of a letter, as a part of its size */
#define ROW          18.0 /* of the legend */
#define BAR          14.0 /* width of the bar of colours */
#define PADDING      0.04 /* of the range of values, at each side */
#define LEGEND_MOST  12   /* keys */
#define LEGEND_BYTES 28   /* of a key */
#define MARKED_EACH  40   /* points of a track, */
#define MARKED_ALL   600  /* and of all tracks, that get a mark */
#define SHADES       64
#define JUMP         4 /* a jump is so many times longer than other steps */

enum { INK = 0x222222, FRAME = 0x555555, GRID = 0xe6e6e6, UNKNOWN = 0x999999, PAPER = 0xffffff };

/* Colours that differ in lightness, too: for the colour-blind, and for printers that have black only. */
static const uint32_t key_colors[] = {0x1b5fa8, 0xe07b00, 0x17937a, 0xb8437f, 0x62b1e2, 0x7c4a1d, 0x2b2b2b};

#define COLORS (sizeof key_colors / sizeof key_colors[0])

/* From dark to light in equal steps. */
static const uint32_t shade_colors[] = {0x061e78, 0x073e68, 0x085671, 0x0c6e7b, 0x138681,
                                        0x16a176, 0x49ba46, 0xaac630, 0xfacc3d};

#define SHADE_COLORS (sizeof shade_colors / sizeof shade_colors[0])

struct span {
    double low, high;
};

struct drawing {
    const struct plot *plot;
    struct canvas canvas;
    struct scale horizontal, vertical, color;
    struct span extent[2]; /* of the values on the axes */
    struct point *place;   /* of each point of the longest track, and of the interruptions between them */
    int has_color, is_marked;
    double legend; /* its width */
};

/* ---- Ranges ---- */

static struct span span_of(const struct plot *p, size_t column)
{
    struct span s = {INFINITY, -INFINITY};

    for (size_t i = 0; i < p->points; i++) {
        const double *v = p->point[i].value;
        if (!scale_can(v[p->horizontal]) || !scale_can(v[p->vertical]) || !scale_can(v[column]))
            continue;
        s.low = fmin(s.low, v[column]);
        s.high = fmax(s.high, v[column]);
    }
    return s;
}

static struct span span_pad(struct span s)
{
    double more = PADDING * (s.high - s.low);

    return (struct span){s.low - more, s.high + more};
}

static int is_same_scale(const struct plot *p)
{
    const struct plot_column *a = &p->column[p->horizontal], *b = &p->column[p->vertical];

    return a->is_position && b->is_position && a->unit_si == b->unit_si;
}

/* Make a range so wide that `size` units of the picture have the same scale as those of the other axis. */
static struct span span_widen(struct span s, double width)
{
    double more = (width - (s.high - s.low)) / 2;

    return more > 0 ? (struct span){s.low - more, s.high + more} : s;
}

/* The area of the axes, and the values at its ends. */
static void draw_fit(const struct plot *p, struct span *h, struct span *v, double *width, double *height)
{
    double dx = h->high - h->low, dy = v->high - v->low;

    *width = WIDE;
    *height = HIGH;
    if (!is_same_scale(p) || !(dx > 0 || dy > 0))
        return;
    double per_unit = SQUARE / fmax(dx, dy);
    *width = fmax(NARROW, per_unit * dx);
    *height = fmax(NARROW, per_unit * dy);
    *h = span_widen(*h, *width / per_unit);
    *v = span_widen(*v, *height / per_unit);
}

/* ---- Text ---- */

static double text_width(const char *text, double size)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80; /* characters, not bytes */
    return LETTER * size * (double)n;
}

/* Append `n` bytes of a number, raised. */
static char *text_raise(char *to, const char *number, size_t n)
{
    static const char *const digits[] = {"\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",
                                         "\xe2\x81\xb4", "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7",
                                         "\xe2\x81\xb8", "\xe2\x81\xb9"};

    for (size_t i = 0; i < n; i++)
        to = stpcpy(to, number[i] == '-' ? "\xe2\x81\xbb" : digits[number[i] - '0']);
    return to;
}

/* "m s^-2" with raised numbers. */
static char *text_unit(char *to, const char *unit)
{
    while (*unit) {
        size_t n = *unit == '^' ? strspn(unit + 1, "-0123456789") : 0;
        if (n > 0 && unit[1 + n] != '.') {
            to = text_raise(to, unit + 1, n);
            unit += 1 + n;
        } else {
            *to++ = *unit++;
        }
    }
    *to = '\0';
    return to;
}

/* A factor, as a power of ten if it is one. */
static char *text_factor(char *to, double factor)
{
    char number[16];
    double power = round(log10(factor));

    if (!(fabs(log10(factor) - power) < 1e-9)) /* not that of 0 either */
        return to + sprintf(to, "%.6g", factor);
    int n = sprintf(number, "%.0f", power);
    return text_raise(stpcpy(to, "10"), number, (size_t)n);
}

#define TITLE_ROOM (4 * ATTRIBUTE_DIMENSION_ROOM + 512)

/* What an axis shows: "x (10^-6 m)". */
static void draw_title(const struct plot_column *c, const struct scale *s, char out[TITLE_ROOM])
{
    double factor = (c->unit_si != 0 ? c->unit_si : 1) * pow(10, s->power);
    int has_factor = fabs(log10(factor)) > 1e-9;
    char *to = out + snprintf(out, 300, "%.255s", c->name);

    if (!has_factor && c->unit[0] == '\0')
        return;
    to = stpcpy(to, c->unit_si != 0 ? " (" : " (\xc3\x97");
    if (has_factor)
        to = text_factor(to, factor);
    if (has_factor && c->unit[0] != '\0')
        *to++ = ' ';
    stpcpy(text_unit(to, c->unit), ")");
}

static double draw_label_width(const struct scale *s)
{
    char text[SCALE_LABEL_ROOM];
    double widest = 0;

    for (int i = 0; i < s->ticks; i++) {
        scale_label(s, i, text);
        widest = fmax(widest, text_width(text, SMALL));
    }
    return widest;
}

static void draw_text(struct drawing *d, double size, enum anchor anchor, double x, double y, const char *text)
{
    const struct lettering l = {.rgb = INK, .size = size, .anchor = anchor};

    d->canvas.kind->text(&d->canvas, &l, (struct point){x, y}, text);
}

static void draw_upward(struct drawing *d, double x, double y, const char *text)
{
    const struct lettering l = {.rgb = INK, .size = LARGE, .anchor = ANCHOR_MIDDLE, .is_upward = 1};

    d->canvas.kind->text(&d->canvas, &l, (struct point){x, y}, text);
}

static void draw_segment(struct drawing *d, uint32_t rgb, double width, double x1, double y1, double x2, double y2)
{
    const struct pen pen = {.rgb = rgb, .width = width};
    const struct point p[2] = {{x1, y1}, {x2, y2}};

    d->canvas.kind->line(&d->canvas, &pen, p, 2);
}

/* ---- Axes ---- */

static void draw_grid(struct drawing *d)
{
    const struct scale *h = &d->horizontal, *v = &d->vertical;

    for (int i = 0; i < h->ticks; i++) {
        double x = scale_place(h, scale_tick(h, i));
        draw_segment(d, GRID, 1, x, v->from, x, v->to);
    }
    for (int i = 0; i < v->ticks; i++) {
        double y = scale_place(v, scale_tick(v, i));
        draw_segment(d, GRID, 1, h->from, y, h->to, y);
    }
}

static void draw_horizontal_axis(struct drawing *d)
{
    const struct scale *h = &d->horizontal;
    char text[TITLE_ROOM];
    double y = d->vertical.from;

    for (int i = 0; i < h->ticks; i++) {
        double x = scale_place(h, scale_tick(h, i));
        draw_segment(d, FRAME, 1, x, y, x, y + TICK);
        scale_label(h, i, text);
        draw_text(d, SMALL, ANCHOR_MIDDLE, x, y + TICK + SMALL + 3, text);
    }
    draw_title(&d->plot->column[d->plot->horizontal], h, text);
    draw_text(d, LARGE, ANCHOR_MIDDLE, (h->from + h->to) / 2, y + TICK + SMALL + 3 + LARGE + 8, text);
}

/* At the left of `x`, or, if `side` is 1, at its right. */
static void draw_vertical_axis(struct drawing *d, const struct scale *v, size_t column, double x, int side)
{
    char text[TITLE_ROOM];

    for (int i = 0; i < v->ticks; i++) {
        double y = scale_place(v, scale_tick(v, i));
        draw_segment(d, FRAME, 1, x, y, x + side * TICK, y);
        scale_label(v, i, text);
        draw_text(d, SMALL, side > 0 ? ANCHOR_START : ANCHOR_END, x + side * (TICK + 4), y + 0.35 * SMALL, text);
    }
    draw_title(&d->plot->column[column], v, text);
    double away = TICK + 4 + draw_label_width(v) + 8;
    draw_upward(d, side > 0 ? x + away + LARGE : x - away, (v->from + v->to) / 2, text);
}

static void draw_frame(struct drawing *d, double left, double right)
{
    const struct scale *v = &d->vertical;
    const struct pen pen = {.rgb = FRAME, .width = 1};
    const struct point p[5] = {
        {left, v->from}, {right, v->from}, {right, v->to}, {left, v->to}, {left, v->from},
    };

    d->canvas.kind->line(&d->canvas, &pen, p, 5);
}

/* ---- Colours ---- */

static uint32_t shade(size_t i)
{
    double at = (double)i / (SHADES - 1) * (SHADE_COLORS - 1);
    size_t k = at < SHADE_COLORS - 1 ? (size_t)at : SHADE_COLORS - 2;
    uint32_t rgb = 0;

    for (unsigned shift = 0; shift < 24; shift += 8) {
        double a = shade_colors[k] >> shift & 255, b = shade_colors[k + 1] >> shift & 255;
        rgb |= (uint32_t)lround(a + (b - a) * (at - (double)k)) << shift;
    }
    return rgb;
}

static uint32_t draw_color(const struct drawing *d, double v)
{
    double part = (v - d->color.low) / (d->color.high - d->color.low);

    return scale_can(v) ? shade((size_t)lround(fmin(fmax(part, 0), 1) * (SHADES - 1))) : UNKNOWN;
}

static void draw_bar(struct drawing *d)
{
    const struct scale *v = &d->color;
    double x = d->horizontal.to + MARGIN, each = (v->from - v->to) / SHADES;

    for (size_t i = 0; i < SHADES; i++) {
        double y = v->from - (double)(i + 1) * each;
        d->canvas.kind->area(&d->canvas, shade(i), x, y, BAR, i > 0 ? each + 0.5 : each);
    }
    draw_frame(d, x, x + BAR);
    draw_vertical_axis(d, v, PLOT_COLOR, x + BAR, 1);
}

/* ---- Tracks ---- */

static double draw_width(const struct plot *p)
{
    return p->tracks <= LEGEND_MOST ? 1.6 : p->tracks <= 100 ? 1 : 0.6;
}

static struct pen draw_pen(const struct drawing *d, size_t track)
{
    return (struct pen){.rgb = key_colors[track % COLORS],
                        .width = draw_width(d->plot),
                        .is_dashed = d->plot->tracks <= LEGEND_MOST && track >= COLORS};
}

/* The mean of the steps of a track along a column that are not longer than `longest`; 0 if there are none. */
static double track_mean_step(const struct plot *p, const struct plot_track *t, size_t column, double longest)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = t->first + 1; i < t->first + t->count; i++) {
        double step = fabs(p->point[i].value[column] - p->point[i - 1].value[column]);
        if (step <= longest) {
            sum += step;
            n++;
        }
    }
    return n > 0 ? sum / (double)n : 0;
}

/* From which length on a step along a column is one from a side of a periodic box to the other. */
static double track_jump(const struct drawing *d, const struct plot_track *t, size_t column, struct span all)
{
    const struct plot_column *c = &d->plot->column[column];
    double half = (c->box > 0 ? c->box : all.high - all.low) / 2;

    if (!c->is_position)
        return INFINITY;
    if (c->box > 0)
        return half;
    double mean = track_mean_step(d->plot, t, column, half);
    return mean > 0 ? fmax(half, JUMP * mean) : INFINITY;
}

/* Where the points of a track are, with an interruption before each that is not connected to the one before. Returns
 * how many there are; of[i] gets the point of place[i], or SIZE_MAX. */
static size_t track_places(struct drawing *d, const struct plot_track *t, size_t *of)
{
    const struct plot *p = d->plot;
    double most_h = track_jump(d, t, p->horizontal, d->extent[0]);
    double most_v = track_jump(d, t, p->vertical, d->extent[1]);
    const double *last = NULL;
    size_t n = 0;

    for (size_t i = t->first; i < t->first + t->count; i++) {
        const double *v = p->point[i].value;
        double h = v[p->horizontal], w = v[p->vertical];
        int is_there = scale_can(h) && scale_can(w);
        if (!is_there || (last && (fabs(h - last[p->horizontal]) > most_h || fabs(w - last[p->vertical]) > most_v))) {
            of[n] = SIZE_MAX;
            d->place[n++] = (struct point){NAN, NAN};
        }
        if (is_there) {
            of[n] = i;
            d->place[n++] = (struct point){scale_place(&d->horizontal, h), scale_place(&d->vertical, w)};
        }
        last = is_there ? v : NULL;
    }
    return n;
}

/* The colour of the line from place `i` - 1 to place `i`. */
static uint32_t track_color(const struct drawing *d, const size_t *of, size_t i)
{
    if (of[i - 1] == SIZE_MAX || of[i] == SIZE_MAX)
        return UNKNOWN;
    return draw_color(d, (d->plot->point[of[i - 1]].value[PLOT_COLOR] + d->plot->point[of[i]].value[PLOT_COLOR]) / 2);
}

/* A line for each part of the track that has one colour. */
static void track_lines(struct drawing *d, struct pen pen, const size_t *of, size_t n)
{
    size_t first = 0;

    if (!d->has_color)
        d->canvas.kind->line(&d->canvas, &pen, d->place, n);
    for (size_t i = 1; i < n && d->has_color; i++) {
        pen.rgb = track_color(d, of, i);
        if (i + 1 < n && track_color(d, of, i + 1) == pen.rgb)
            continue;
        if (of[i] != SIZE_MAX && of[i - 1] != SIZE_MAX)
            d->canvas.kind->line(&d->canvas, &pen, d->place + first, i - first + 1);
        first = i;
    }
}

/* Whether all places of a track are so near to each other that a line through them cannot be seen. */
static int track_is_still(const struct drawing *d, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!(hypot(d->place[i].x - d->place[0].x, d->place[i].y - d->place[0].y) < 1))
            return 0;
    return 1;
}

/* Marks: of all points if there are few; of what has no line that can be seen; a larger one of the last point. */
static void track_dots(struct drawing *d, struct pen pen, const size_t *of, size_t n)
{
    int is_still = track_is_still(d, n);

    for (size_t i = 0; i < n; i++) {
        int is_alone = (i == 0 || of[i - 1] == SIZE_MAX) && (i + 1 == n || of[i + 1] == SIZE_MAX);
        if (of[i] == SIZE_MAX || !(d->is_marked || is_alone || (is_still && i == 0)))
            continue;
        uint32_t rgb = d->has_color ? draw_color(d, d->plot->point[of[i]].value[PLOT_COLOR]) : pen.rgb;
        double radius = !d->is_marked ? pen.width : i + 1 == n ? 4 : 2.2;
        d->canvas.kind->dot(&d->canvas, rgb, d->place[i], radius);
    }
}

static void draw_track(struct drawing *d, size_t track, size_t *of)
{
    const struct plot_track *t = &d->plot->track[track];
    struct pen pen = draw_pen(d, track);
    size_t n = track_places(d, t, of);

    pen.is_dashed = pen.is_dashed && !d->has_color;
    d->canvas.kind->group(&d->canvas, t->label);
    track_lines(d, pen, of, n);
    track_dots(d, pen, of, n);
    d->canvas.kind->group(&d->canvas, NULL);
}

/* ---- The legend ---- */

static int has_legend(const struct plot *p)
{
    return !p->column[PLOT_COLOR].name && p->tracks <= LEGEND_MOST;
}

/* A key, shortened if it is long. */
static const char *legend_label(const struct plot_track *t, char out[LEGEND_BYTES + 4])
{
    size_t n = 0, length;

    if (strlen(t->label) <= LEGEND_BYTES)
        return t->label;
    while (n + (length = text_character(t->label + n, strlen(t->label + n))) <= LEGEND_BYTES && length > 0)
        n += length;
    memcpy(out, t->label, n);
    memcpy(out + n, "\xe2\x80\xa6", 4);
    return out;
}

static double legend_width(const struct drawing *d)
{
    char label[LEGEND_BYTES + 4];
    double widest = 0;

    if (d->has_color)
        return MARGIN + BAR + TICK + 4 + draw_label_width(&d->color) + 8 + LARGE + 6;
    for (size_t i = 0; i < d->plot->tracks && has_legend(d->plot); i++)
        widest = fmax(widest, text_width(legend_label(&d->plot->track[i], label), SMALL));
    return widest > 0 ? MARGIN + 32 + widest + 8 : MARGIN;
}

static void draw_legend(struct drawing *d)
{
    char label[LEGEND_BYTES + 4];
    double x = d->horizontal.to + MARGIN, y = d->vertical.to + ROW / 2;

    for (size_t i = 0; i < d->plot->tracks; i++, y += ROW) {
        const struct pen pen = draw_pen(d, i);
        const struct point p[2] = {{x, y}, {x + 24, y}};
        d->canvas.kind->line(&d->canvas, &pen, p, 2);
        draw_text(d, SMALL, ANCHOR_START, x + 32, y + 0.35 * SMALL, legend_label(&d->plot->track[i], label));
    }
}

/* ---- All ---- */

/* Where everything is. */
static void draw_lay_out(struct drawing *d)
{
    const struct plot *p = d->plot;
    struct span h = span_pad(d->extent[0]), v = span_pad(d->extent[1]), c = span_of(p, PLOT_COLOR);
    double width, height, below = TICK + SMALL + 3 + LARGE + 8 + 10;

    draw_fit(p, &h, &v, &width, &height);
    scale_make(&d->horizontal, h.low, h.high, (int)fmax(width / 80, 3), p->column[p->horizontal].is_integer);
    scale_make(&d->vertical, v.low, v.high, (int)(height / 50), p->column[p->vertical].is_integer);
    if (d->has_color)
        scale_make(&d->color, c.low, c.high, (int)(height / 50), p->column[PLOT_COLOR].is_integer);
    double left = 8 + LARGE + 8 + draw_label_width(&d->vertical) + 4 + TICK;
    double beside = fmax(legend_width(d), SMALL * 2);
    if (has_legend(p) && height < ROW * (double)p->tracks)
        below += ROW * (double)p->tracks - height - below > 0 ? ROW * (double)p->tracks - height - below : 0;
    d->horizontal.from = left;
    d->horizontal.to = left + width;
    d->vertical.from = MARGIN + height;
    d->vertical.to = MARGIN;
    d->color.from = d->vertical.from;
    d->color.to = d->vertical.to;
    d->canvas.width = ceil(left + width + beside);
    d->canvas.height = ceil(MARGIN + height + below);
}

static void draw_all(struct drawing *d, size_t *of)
{
    const struct plot *p = d->plot;

    d->canvas.kind->area(&d->canvas, PAPER, 0, 0, d->canvas.width, d->canvas.height);
    draw_grid(d);
    for (size_t i = 0; i < p->tracks; i++)
        draw_track(d, i, of);
    draw_frame(d, d->horizontal.from, d->horizontal.to);
    draw_horizontal_axis(d);
    draw_vertical_axis(d, &d->vertical, p->vertical, d->horizontal.from, -1);
    if (d->has_color)
        draw_bar(d);
    else if (has_legend(p))
        draw_legend(d);
}

int plot_draw(const struct plot *p)
{
    struct drawing d = {.plot = p, .canvas = {.kind = p->kind, .file = p->x.file, .name = p->x.name}};
    size_t longest = 0;
    struct span c = span_of(p, PLOT_COLOR);

    d.extent[0] = span_of(p, p->horizontal);
    d.extent[1] = span_of(p, p->vertical);
    if (d.extent[0].low > d.extent[0].high)
        return text_fail(EXIT_NOT_FOUND, "plot: nothing to draw: no record has numbers for both %s and %s",
                         p->column[p->horizontal].name, p->column[p->vertical].name);
    if (p->column[PLOT_COLOR].name && c.low > c.high)
        return text_fail(EXIT_NOT_FOUND, "plot: no record that can be drawn has a number for %s",
                         p->column[PLOT_COLOR].name);
    for (size_t i = 0; i < p->tracks; i++)
        longest = p->track[i].count > longest ? p->track[i].count : longest;
    d.has_color = p->column[PLOT_COLOR].name != NULL;
    d.is_marked = longest <= MARKED_EACH && p->points <= MARKED_ALL;
    d.place = malloc(2 * longest * sizeof *d.place);
    size_t *of = malloc(2 * longest * sizeof *of);
    int code = d.place && of ? EXIT_OK : text_fail(EXIT_TROUBLE, "plot: no memory for %zu points", longest);
    draw_lay_out(&d);
    if (code == EXIT_OK && (code = d.canvas.kind->begin(&d.canvas)) == EXIT_OK) {
        draw_all(&d, of);
        code = d.canvas.kind->end(&d.canvas);
    }
    free(of);
    free(d.place);
    return code;
}
