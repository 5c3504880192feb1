/* Random UUIDs (RFC 4122, version 4) and their text. */
#ifndef DELTAFS_BASE_UUID_H
#define DELTAFS_BASE_UUID_H

#include "base/error.h"

#define UUID_TEXT_SIZE 37 /* bytes of the text, NUL included */

int uuid_create(uint8_t uuid[16], struct error *e);
void uuid_to_text(const uint8_t uuid[16], char text[UUID_TEXT_SIZE]);
/* Returns 0, or -1 if the text is not exactly what uuid_to_text writes. */
int uuid_parse(const char *text, uint8_t uuid[16]);

#endif
