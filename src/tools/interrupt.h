/* What a command says when it is interrupted (Ctrl-C, or a batch system's signal): what has been kept, and how to go
 * on. */
#ifndef DELTAFS_TOOLS_INTERRUPT_H
#define DELTAFS_TOOLS_INTERRUPT_H

/* From now on SIGHUP, SIGINT and SIGTERM print this message, and then end the process as they do otherwise. A silent
 * rank prints nothing. */
__attribute__((format(printf, 1, 2))) void interrupt_say(const char *fmt, ...);
/* The work is done: they print nothing any more. */
void interrupt_end(void);

#endif
