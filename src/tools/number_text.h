/* Numbers as text: the shortest that reads back as the same number. */
#ifndef DELTAFS_TOOLS_NUMBER_TEXT_H
#define DELTAFS_TOOLS_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_TEXT_ROOM 40 /* for the text of any number, and a zero at its end */

/* All return the number of characters. */

/* The fewest digits that read back as the same double, and of these the nearest to it; "nan", "inf", "-inf". Always has
 * a '.', an 'e' or letters, to show that it is a float. For one thread. */
size_t number_text_float(double v, char *out);

size_t number_text_unsigned(uint64_t v, char *out);
size_t number_text_signed(int64_t v, char *out);

#endif
