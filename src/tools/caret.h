/* The place of a mistake in an expression, below the message. */
#ifndef DELTAFS_TOOLS_CARET_H
#define DELTAFS_TOOLS_CARET_H

/* Show the place in `text` that the message of the library names, as in "where: offset 7: ...": `name` is then where.
 * Does nothing if `text` is NULL, or if the message names another text. */
void caret_show(const char *name, const char *text, const char *message);

#endif
