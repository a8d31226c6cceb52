/* SPDX-License-Identifier: MIT */
/* The runs that the server knows: a catalogue in which the SHA-256 of its pack identifies a run. */
#pragma once

#include "analyzer/catalogue/store.h"
#include "server/server.h"

#define SL_RUNS_FILE "catalogue.sqlite" /* in the store's folder */

/* This thread's store; it is closed when the thread ends.  NULL: the reason was printed on stderr. */
struct sl_store *sl_runs_store(struct sl_server *server);
/*
 * Takes the card that a child made from an untrusted pack, and its project ("": none).  False: it is not a card or the store
 * failed, which was printed; or the project is full, and the pack was removed.
 */
bool sl_runs_put(struct sl_server *server, const char *pack, const char *text, size_t size, char project[SL_CARD_TEXT + 1],
		 bool *full);
/* *known: the pack's run is in the catalogue.  False: the catalogue does not answer, which was printed. */
bool sl_runs_known(struct sl_server *server, const char *pack, bool *known);
