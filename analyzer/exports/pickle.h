/* SPDX-License-Identifier: MIT */
/*
 * Writes Python's pickle, protocol 2, with only the opcodes that PyTorch's memory viewer reads: no LONG4, no bytes, no classes. 
 * Lists and dicts are written in batches of 1000: the viewer spreads each batch into the arguments of a call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SL_PICKLE_DEPTH 16

struct sl_pickle {
	FILE *out;
	unsigned depth, batch[SL_PICKLE_DEPTH];
	bool dict[SL_PICKLE_DEPTH];
	uint32_t memos;
};

void sl_pickle_begin(struct sl_pickle *pickle, FILE *out);
void sl_pickle_end(struct sl_pickle *pickle);

/* Containers; each item of a list, each value of a dict is followed by sl_pickle_next. */
void sl_pickle_list(struct sl_pickle *pickle);
void sl_pickle_dict(struct sl_pickle *pickle);
void sl_pickle_next(struct sl_pickle *pickle);
void sl_pickle_close(struct sl_pickle *pickle);

void sl_pickle_text(struct sl_pickle *pickle, const char *text); /* through base/escape.h */
void sl_pickle_int(struct sl_pickle *pickle, int64_t value);
void sl_pickle_bool(struct sl_pickle *pickle, bool truth);

/* Remember what was written last; returns the number for sl_pickle_recall. */
uint32_t sl_pickle_remember(struct sl_pickle *pickle);
void sl_pickle_recall(struct sl_pickle *pickle, uint32_t memo);

/* Writes a key and its value into a dict. */
void sl_pickle_put_int(struct sl_pickle *pickle, const char *key, int64_t value);
void sl_pickle_put_text(struct sl_pickle *pickle, const char *key, const char *text);
void sl_pickle_put_empty(struct sl_pickle *pickle, const char *key); /* an empty list */
