/* SPDX-License-Identifier: MIT */
/*
 * Masks names in definition maps in place, letter by letter, so that no length changes.  All text is masked (keys and nested
 * values too) unless each of its words is on a list of words that everybody knows: vendors' libraries and calls, the system's
 * folders, packages of PyPI with their files (public.h), the format's own.  The same name has the same mask within one pack and
 * another one in the next; punctuation of paths and of names in programs stays.
 *
 * Numbers stay, and binary values that are numbers: addresses of native stacks, columns of blocks.  Other binary values, and
 * bytes that no reader reads, become zeroes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analyzer/base/map.h"

#define SL_REDACT_KEY 32

struct sl_redaction {
	const uint8_t *key; /* SL_REDACT_KEY random bytes, by which words are masked; NULL: names are not masked */
	struct sl_map kept; /* words that were not masked */
	uint64_t masked;    /* bytes that were masked or became zeroes */
	uint64_t numbers;   /* whose keys are not the agent's, or of metadata; the first ones are among `kept` */
	uint64_t cleared;   /* definitions that no agent wrote */
	unsigned inside;    /* how deep in metadata */
};

/* Masks all whole maps in `bytes`.  Other bytes become zeroes, and a map that no agent wrote: its letters may be numbers. */
void sl_redact_maps(struct sl_redaction *redaction, uint8_t *bytes, size_t size);
void sl_redact_text(struct sl_redaction *redaction, char *text, size_t size);

/* Adds a word to those that sl_redact_say prints. */
void sl_redact_keep(struct sl_redaction *redaction, const char *word, size_t size);

/* Prints what was not masked, words and numbers, in one line, for review. */
void sl_redact_say(const struct sl_redaction *redaction, FILE *out);
