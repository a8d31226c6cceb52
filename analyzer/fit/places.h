/* SPDX-License-Identifier: MIT */
/* Models of how a driver chooses the addresses of segments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"
#include "analyzer/model/state/parts.h"

/*
 * The placement decides which of several equal blocks is taken up to PyTorch 2.11 (torch_rules.c); from 2.12 on it makes no
 * difference.
 */
enum sl_fit_ties {
	SL_FIT_ASCENDING,  /* each begins where the one before ends */
	SL_FIT_DESCENDING, /* each ends where the one before begins */
	SL_FIT_REUSED,	   /* in slots of powers of two: the slot that was freed last, else the next higher one */
	SL_FIT_GIVEN,	   /* where sl_fit_place said, else ascending */
	SL_FIT_WAYS,
};
#define SL_FIT_MODELS	  SL_FIT_GIVEN
#define SL_FIT_ALL_MODELS ((1u << SL_FIT_MODELS) - 1)

/* All zeroes, except for the model: nothing was placed yet. */
struct sl_fit_places {
	enum sl_fit_ties model;	       /* below SL_FIT_MODELS */
	uint64_t next;		       /* end of the segment that was placed last; its beginning if descending */
	SL_VECTOR(uint64_t) freed[64]; /* slots, by their powers of two */
};

uint64_t sl_fit_places_take(struct sl_fit_places *places, uint64_t bytes);
void sl_fit_places_give(struct sl_fit_places *places, uint64_t address, uint64_t bytes);
void sl_fit_places_free(struct sl_fit_places *places);

/* Which models put the segments where they were recorded. */
struct sl_fit_placed {
	struct sl_fit_places models[SL_FIT_MODELS];
	struct sl_table live; /* kept while a model is still right */
	unsigned count;	      /* segments so far */
	unsigned wrong;	      /* 1 << model: it put a segment elsewhere */
	bool anew;	      /* a segment came elsewhere although a slot of its size was free again */
};

void sl_fit_placed_add(struct sl_fit_placed *placed, uint64_t address, uint64_t bytes);
void sl_fit_placed_remove(struct sl_fit_placed *placed, uint64_t address);
/*
 * 1 << model for each model that explains the recorded addresses exactly.  All models, and SL_FIT_GIVEN, where no model does or the
 * segments are too few. Addresses that only rise or fall do not exclude SL_FIT_REUSED: only a free slot that was passed over does.
 */
unsigned sl_fit_placed_models(const struct sl_fit_placed *placed);
void sl_fit_placed_free(struct sl_fit_placed *placed);
