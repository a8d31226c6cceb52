/* SPDX-License-Identifier: MIT */
/* Attachment to processes that have no recording of their own: until an interrupt, the end of the time or of all of them. */
#ifndef ATTACH_WATCH_H
#define ATTACH_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct sl_attach_watch;

struct sl_attach_watch *sl_watch_new(const char *folder);

/* It has a library of a GPU's vendor loaded that can be watched. */
bool sl_watch_uses_gpu(long pid);

/* NULL: it is watched from now on; else why not, static. */
const char *sl_watch_add(struct sl_attach_watch *watch, long pid);

size_t sl_watch_count(const struct sl_attach_watch *watch);

bool sl_watch_has(const struct sl_attach_watch *watch, long pid);

/*
 * Until an interrupt or, where seconds is not 0, so long.  search: called every second to add what has come; where it is NULL the end
 * of all processes is the end too.  False: a trace could not be written.
 */
bool sl_watch_run(struct sl_attach_watch *watch, double seconds, void (*search)(void *data), void *data);

void sl_watch_free(struct sl_attach_watch *watch);

#endif
