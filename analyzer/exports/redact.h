/* SPDX-License-Identifier: MIT */
/*
 * Writes a new trace from a decoded one.  Every text is replaced, word by word, except public names (public.h) and names of the
 * format (known.h).  A word has the same replacement everywhere in one pack, and another one in the next.  Numbers stay.  What the
 * format does not name is left out: unknown keys and columns, other binary values.
 */
#pragma once

#include <msgpack.h>
#include <stdio.h>

#include "analyzer/base/map.h"
#include "analyzer/trace/trace.h"
#include "common/tracefile.h"

#define SL_REDACT_KEY 32

struct sl_redaction {
	const uint8_t *key;   /* SL_REDACT_KEY random bytes, by which words are replaced; NULL: no trace is to be redacted */
	struct sl_map kept;   /* public names that stayed */
	msgpack_sbuffer text; /* the text in work */
};

/* Takes a frame before it is compressed; `index` lacks its length and check.  False ends the trace. */
typedef bool sl_redact_take(void *context, struct sl_frame_index index, const void *plain, size_t size);

/*
 * Hands over the frames of the new trace: those of all files in their order, then what only the ring has.  What cannot be decoded
 * becomes a gap, and is damage of `trace`.
 */
bool sl_redact_trace(struct sl_redaction *redaction, struct sl_trace *trace, sl_redact_take *take, void *context);

/* The ring of the new trace: how the process ended and what the recorder lost, as numbers.  It has no segments. */
void sl_redact_ring(struct sl_ringfile *ring, const struct sl_trace *trace);

/* Adds a word to those that sl_redact_say prints, in one line, for review. */
void sl_redact_keep(struct sl_redaction *redaction, const char *word, size_t size);
void sl_redact_say(const struct sl_redaction *redaction, FILE *out);
void sl_redact_free(struct sl_redaction *redaction);
