/* SPDX-License-Identifier: MIT */
/* Attaches to processes without a recording, until an interrupt, a time limit, or the end of all of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sl_attach_watch;

struct sl_attach_watch *sl_watch_new(const char *folder);

/* NULL: the kernel lets us watch; else why not (static text). */
const char *sl_watch_open(struct sl_attach_watch *watch);

/* A trace could not be written. */
bool sl_watch_failed(const struct sl_attach_watch *watch);

/* True: the process has loaded a GPU vendor's library that can be watched. */
bool sl_watch_uses_gpu(long pid);

/* NULL: the process is watched from now on; else why not (static text). */
const char *sl_watch_add(struct sl_attach_watch *watch, long pid);

size_t sl_watch_count(const struct sl_attach_watch *watch);

bool sl_watch_has(const struct sl_attach_watch *watch, long pid);

/*
 * Runs until an interrupt, or for `seconds` where that is not 0.  search is called every second to add new processes; where it
 * is NULL, the end of all processes ends the watch too.  False: a trace could not be written.
 */
bool sl_watch_run(struct sl_attach_watch *watch, double seconds, void (*search)(void *data), void *data);

void sl_watch_free(struct sl_attach_watch *watch);
