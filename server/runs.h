/* SPDX-License-Identifier: MIT */
/* Runs that the server knows: the catalogue, whose identity of a run is the SHA-256 of its pack. */
#ifndef SERVER_RUNS_H
#define SERVER_RUNS_H

#include "analyzer/catalogue/store.h"
#include "server/server.h"

/* This thread's; it is closed with the thread.  NULL: why is said on stderr. */
struct sl_store *sl_runs_store(struct sl_server *server);
/*
 * What a child says of a pack, which nobody checked; its project ("": none).  false: it is no card, or the store failed, said;
 * or its project is full, and the pack was removed.
 */
bool sl_runs_put(struct sl_server *server, const char *pack, const char *text, size_t size, char project[SL_CARD_TEXT + 1],
		 bool *full);
bool sl_runs_known(struct sl_server *server, const char *pack);

#endif
