/* SPDX-License-Identifier: MIT */
/*
 * One event as the model and the column encoder see it.  Expanded from events.def, so that a field, a verb
 * or a kind is written once.
 */
#pragma once

#include <stdbool.h>

#include "common/base.h"

enum sl_field {
#define FIELD(name, sign, unit, help) SL_FIELD_##name,
#include "common/events.def"
#undef FIELD
	SL_FIELD_COUNT
};

/* Id of the Python stack of events that were made asleep, whatever line made them; no interpreter's id is so large. */
#define SL_ASLEEP_STACK UINT32_MAX

/* Every member is 64 bits wide, in the order of enum sl_field: block.c moves them as columns. */
struct sl_event {
#define SL_TYPE_u		      uint64_t
#define SL_TYPE_i		      int64_t
#define FIELD(name, sign, unit, help) SL_TYPE_##sign name;
#include "common/events.def"
#undef FIELD
};
_Static_assert(sizeof(struct sl_event) == 8 * SL_FIELD_COUNT, "block.c treats an event as an array");

enum sl_verb {
#define VERB(name, stamp, help) SL_VERB_##name,
#include "common/events.def"
#undef VERB
	SL_VERB_COUNT
};

enum sl_kind {
#define KIND(name, space, help) SL_KIND_##name,
#include "common/events.def"
#undef KIND
	SL_KIND_COUNT
};

enum sl_flag {
#define FLAG(name, bit, help) SL_FLAG_##name = 1 << (bit),
#include "common/events.def"
#undef FLAG
};

enum sl_family {
#define FAMILY(name, oom, help) SL_FAMILY_##name,
#include "common/events.def"
#undef FAMILY
	SL_FAMILY_COUNT
};

struct sl_field_info {
	const char *name, *unit, *help;
	bool is_signed;
};
extern const struct sl_field_info sl_event_fields[SL_FIELD_COUNT];

struct sl_verb_info {
	const char *name; /* as in the trace header: ALLOC, FREE, ... */
	bool stamped_before;
};
extern const struct sl_verb_info sl_event_verbs[SL_VERB_COUNT] SL_HIDDEN;

struct sl_kind_info {
	const char *name;
	bool on_host;
};
extern const struct sl_kind_info sl_event_kinds[SL_KIND_COUNT] SL_HIDDEN;

struct sl_flag_info {
	const char *name;
	unsigned bit;
};
extern const struct sl_flag_info sl_event_flags[];
extern const unsigned sl_event_flag_count;

struct sl_family_info {
	const char *name;
	int oom; /* result that means out of memory; 0: none does */
};
extern const struct sl_family_info sl_event_families[SL_FAMILY_COUNT] SL_HIDDEN;
