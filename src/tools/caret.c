#include <stdio.h>
#include <string.h>
#include "tools/caret.h"
#include "tools/text.h"

#define CARET_BEFORE 60 /* bytes of an expression that are shown before a mistake, */
#define CARET_SHOWN  70 /* and in all, so that the line fits */

void caret_show(const char *name, const char *text, const char *message)
{
    char wanted[300], before[4 * CARET_SHOWN + 5], shown[4 * CARET_SHOWN + 5];
    size_t at, width = 0;

    snprintf(wanted, sizeof wanted, "%s: offset ", name);
    const char *found = strstr(message, wanted);
    if (!text || !found || sscanf(found + strlen(wanted), "%zu", &at) != 1 || at > strlen(text))
        return;
    size_t first = at > CARET_BEFORE ? at - CARET_BEFORE : 0;
    size_t n = strlen(text + first) < CARET_SHOWN ? strlen(text + first) : CARET_SHOWN;
    text_show(text + first, at - first, before, sizeof before);
    text_show(text + first, n, shown, sizeof shown);
    for (const char *p = before; *p != '\0'; p++)
        width += ((unsigned char)*p & 0xc0) != 0x80; /* characters, not bytes */
    fprintf(stderr, "    %s\n    %*s^\n", shown, (int)width, "");
}
