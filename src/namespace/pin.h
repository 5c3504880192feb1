/* Pins: what a namespace must keep for a snapshot, or for a namespace on top of it. A pin is a text log in the folder
 * of the namespace, PIN.UUID, with the UUID of that snapshot or namespace:
 *     Deltafs version=1 uuid=UUID
 *     Pin time=T holder=TEXT
 *     Layer                            for each of the layers that are this namespace,
 *     Table number=N limit=LABEL       and behind it for each of its tables, by number
 *     End
 * One without the line End keeps all: it is written before it is known what the snapshot consists of. If its last line
 * is "begun", the process that wrote it holds the lease of a view (view.h) in the namespace until it is complete. */
#ifndef DELTAFS_NAMESPACE_PIN_H
#define DELTAFS_NAMESPACE_PIN_H

#include "namespace/layers.h"

struct pin {
    uint8_t uuid[16];
    const char *holder; /* what the pin is for: REG@NAME, or the path of a namespace */
    int sync;
    int has_view; /* the process holds the lease of a view until this call has ended */
};

/* Pin all of the namespace at `path`; pin_set then says what is needed of the namespace of a layer: the tables of all
 * layers that are this namespace, by whatever path. After an error, pin_begin has left no pin. */
int pin_begin(struct io *io, const char *path, const struct pin *pin, struct error *e);
int pin_set(struct io *io, const struct layer *of, const struct pin *pin, const struct layers *layers, struct error *e);
/* Pin what the layers have of every namespace. After an error none of these pins is left. */
int pin_layers(struct io *io, const struct pin *pin, const struct layers *layers, struct error *e);
/* Remove a pin; that there is none is no error. Or those in all namespaces. */
int pin_remove(struct io *io, const char *path, const uint8_t uuid[16], struct error *e);
int pin_remove_layers(struct io *io, const uint8_t uuid[16], const struct layers *layers, struct error *e);

/* All pins of a namespace. */
struct pins {
    struct layer_table *table; /* of all layers */
    size_t count, room;
    struct pin_layer {
        size_t first, count; /* tables */
    } * layer;
    size_t layers, layer_room;
    size_t pins;
    int keep_all; /* one of them keeps all */
    int begun;    /* one that does has the line begun */
};
int pins_read(struct io *io, const char *path, struct pins *out, struct error *e);
/* Remove those with the line begun. There is the lease of the folder, and no view. */
int pins_remove_begun(struct io *io, const char *path, struct error *e);
void pins_fini(struct pins *p);
/* What a layer has of a table, one of p->table; NULL: nothing. */
const struct layer_table *pin_layer_table(const struct pins *p, const struct pin_layer *layer, uint64_t number);

#endif
