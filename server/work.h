/* SPDX-License-Identifier: MIT */
/*
 * Computes pages from packs.  Child processes (server/child/) do it, one after the other, on a thread of its own, each in a
 * folder that is removed afterwards.  Results are kept as files (server/places.h): STORE/pages/ab/abcd.../page.msgpack.gz and
 * report.json of a pack ("failed", with a sentence, where that was impossible), STORE/pages/compare/A-B.page.msgpack.gz of two
 * packs, and beside the page of a pack the latest windows of the run that somebody asked for.
 */
#pragma once

#include <stdbool.h>

#include "server/packs.h"

struct sl_server;
struct sl_work;

/* Begins with packs that have no pages yet.  NULL: errno. */
struct sl_work *sl_work_new(struct sl_server *server);
void sl_work_free(struct sl_work *work);

void sl_work_index(struct sl_work *work, const char *pack);
/* Queues the work unless it has been done; false: the queue is full. */
bool sl_work_compare(struct sl_work *work, const char *before, const char *after);

/* The same for a window of a run, in ns since it began. */
bool sl_work_window(struct sl_work *work, const char *pack, uint64_t from_ns, uint64_t to_ns);
