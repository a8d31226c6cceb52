/* SPDX-License-Identifier: MIT */
/* The runs that the server knows: a catalogue in which the SHA-256 of its pack identifies a run. */
#pragma once

#include "analyzer/catalogue/store.h"
#include "server/server.h"

/*
 * False: the catalogue is damaged, misplaced, none of ours or may not be written, which was printed; so is what may pass, a disk
 * that is full say.
 * Before the first thread.
 */
bool sl_runs_examine(const struct sl_server *server);
/* This thread's store; it is closed when the thread ends.  NULL: the reason was printed on stderr. */
struct sl_store *sl_runs_store(struct sl_server *server);
enum sl_runs_put {
	SL_RUNS_PUT,
	SL_RUNS_NO_CARD, /* which was printed */
	SL_RUNS_BUSY,	 /* another process writes into the catalogue, which was printed */
	SL_RUNS_LATER,	 /* the catalogue did not take it for another reason, which was printed and may stay */
	SL_RUNS_FULL	 /* so is the project, and the pack was removed */
};
/* Takes the card that a child made from an untrusted pack, and tells its project ("": none). */
enum sl_runs_put sl_runs_put(struct sl_server *server, const char *pack, const char *text, size_t size,
			     char project[SL_CARD_TEXT + 1]);
/* *known: the pack's run is in the catalogue.  False: the catalogue does not answer, which was printed. */
bool sl_runs_known(struct sl_server *server, const char *pack, bool *known);
/* True: what was made of the pack says why it cannot be kept; `why` is that sentence, of one line. */
bool sl_runs_unreadable(const struct sl_server *server, const char *pack, char *why, size_t size);
