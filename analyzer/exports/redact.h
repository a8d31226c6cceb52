/* SPDX-License-Identifier: MIT */
/*
 * Masks names in definition maps in place, letter by letter, so that no length changes.  All text is masked (keys, nested values,
 * text stored as bytes) unless each of its words is on a list of words that everybody knows: vendors' libraries and calls, the
 * system's folders, the format's own.  The same name has the same mask within one pack and another one in the next; punctuation
 * stays.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analyzer/base/map.h"

struct sl_redaction {
	uint64_t salt;
	struct sl_map kept; /* words that were not masked */
	uint64_t masked;    /* bytes of masked words */
};

/* Masks all whole maps in `bytes`; other bytes become zeroes. */
void sl_redact_maps(struct sl_redaction *redaction, uint8_t *bytes, size_t size);

/* Prints the words that were not masked in one line, for review. */
void sl_redact_say(const struct sl_redaction *redaction, FILE *out);
