/* SPDX-License-Identifier: MIT */
/*
 * What is computed of packs: by children (server/child/), one after the other, on a thread of its own, each in a folder that is
 * removed after it.  What they make is kept as files: STORE/pages/ab/abcd.../report.html and report.json of a pack,
 * "failed" with a sentence where nothing could be made, STORE/pages/compare/A-B.html of two, and beside
 * report.html the last windows of the run that somebody looked at.
 */
#ifndef SERVER_WORK_H
#define SERVER_WORK_H

#include <stdbool.h>

#include "server/packs.h"

struct sl_server;
struct sl_work;

/* Packs that nothing was made of yet are begun with.  NULL: errno. */
struct sl_work *sl_work_new(struct sl_server *server);
void sl_work_free(struct sl_work *work);

void sl_work_index(struct sl_work *work, const char *pack);
/* Asks for it unless that was done; false: too much is asked for already. */
bool sl_work_compare(struct sl_work *work, const char *before, const char *after);

/* The same of a part of a run, in ns since it began. */
bool sl_work_window(struct sl_work *work, const char *pack, uint64_t from_ns, uint64_t to_ns);

#endif
