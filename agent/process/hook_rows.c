/* SPDX-License-Identifier: MIT */
#include "agent/process/hook_rows.h"

#define JOIN_(a, b)	JOIN__(a, b)
#define JOIN__(a, b)	a##b
#define OF_FAMILY(what) JOIN_(what, ROW_FAMILY)

const struct sl_hooks_row sl_hooks[SL_API_COUNT] = {
	[SL_API_none] = {""},
#define ROW(verb, kind, ret, name, ...)	 {#name, SL_VERB_##verb, SL_KIND_##kind, OF_FAMILY(SL_FAMILY_), true},
#define ONCE(verb, ret, name, ...)	 {#name, SL_VERB_##verb, SL_KIND_none, OF_FAMILY(SL_FAMILY_), true},
#define ALSO(verb, kind, ret, name, tag) {#name, SL_VERB_##verb, SL_KIND_##kind, OF_FAMILY(SL_FAMILY_), true},
#define LOOKUP(ret, name, ...)		 {#name, SL_VERB_CALL, SL_KIND_none, OF_FAMILY(SL_FAMILY_), false},
#define CHECKED(ret, name, ...)		 {#name, SL_VERB_CALL, SL_KIND_none, OF_FAMILY(SL_FAMILY_), true},
#define LAUNCHED			 CHECKED
#define QUERY(ret, name, ...)		 {#name, SL_VERB_CALL, SL_KIND_none, OF_FAMILY(SL_FAMILY_), false},
#define RANGE(verb, ret, name, ...)	 {#name, SL_VERB_##verb, SL_KIND_none, OF_FAMILY(SL_FAMILY_), SL_VERB_##verb != SL_VERB_CALL},
#define INJECTED(ret, name, ...)	 {#name, SL_VERB_CALL, SL_KIND_none, OF_FAMILY(SL_FAMILY_), false},
#define FRAMEWORK(verb, ret, name, ...)	 {#name, SL_VERB_##verb, SL_KIND_block, OF_FAMILY(SL_FAMILY_), true},
#define SLOT(verb, number, name, ...)	 {#name, SL_VERB_##verb, SL_KIND_block, OF_FAMILY(SL_FAMILY_), true},
#define HAND(verb, kind, id, name)	 {name, SL_VERB_##verb, SL_KIND_##kind, OF_FAMILY(SL_FAMILY_), true},
#include "agent/hooks/all.def"
};
const unsigned sl_hook_count = SL_API_COUNT;
