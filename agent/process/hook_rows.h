/* SPDX-License-Identifier: MIT */
/* Every call the agent wraps, one row each in hooks/<interface>.def (doc/add-a-hook.md): ids, names, traits. */
#pragma once

#include "agent/hooks/verbs.h"
#include "common/event.h"

/* Ids of rows: SL_API_cudaMalloc.  The second meaning of a call has a tag: SL_API_cuGraphAddNode_free. */
enum sl_api {
	SL_API_none,
#define ROW(verb, kind, ret, name, ...)	 SL_API_##name,
#define ONCE(verb, ret, name, ...)	 SL_API_##name,
#define ALSO(verb, kind, ret, name, tag) SL_API_##name##_##tag,
#define LOOKUP(ret, name, ...)		 SL_API_##name,
#define CHECKED(ret, name, ...)		 SL_API_##name,
#define LAUNCHED			 CHECKED
#define QUERY(ret, name, ...)		 SL_API_##name,
#define RANGE(verb, ret, name, ...)	 SL_API_##name,
#define INJECTED(ret, name, ...)	 SL_API_##name,
#define FRAMEWORK(verb, ret, name, ...)	 SL_API_##name,
#define SLOT(verb, number, name, ...)	 SL_API_##name,
#define HAND(verb, kind, id, name)	 SL_API_##id,
#include "agent/hooks/all.def"
	SL_API_COUNT
};

struct sl_hooks_row {
	/* Exported symbol; stored in place so that the table needs no relocation, and a row is one cache line */
	char name[60];
	uint8_t verb, kind, family;
	bool recorded; /* false: look-ups, queries, and calls that are wrapped only for --limit */
};

extern const struct sl_hooks_row sl_hooks[] SL_HIDDEN; /* [0] stands for no call; ids are indexes */
extern const unsigned sl_hook_count;		       /* SL_API_COUNT */

/* True: the symbol, without its suffix _v2, _ptsz or the like, has this name, as in reports. */
bool sl_hooks_named(const char *symbol, const char *name);
