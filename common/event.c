/* SPDX-License-Identifier: MIT */
#include "common/event.h"

#define SIGNED_u false
#define SIGNED_i true
const struct sl_field_info sl_event_fields[SL_FIELD_COUNT] = {
#define FIELD(name, sign, unit, help) {#name, unit, help, SIGNED_##sign},
#include "common/events.def"
#undef FIELD
};

#define STAMP_BEFORE true
#define STAMP_AFTER  false
const struct sl_verb_info sl_event_verbs[SL_VERB_COUNT] = {
#define VERB(name, stamp, help) {#name, STAMP_##stamp},
#include "common/events.def"
#undef VERB
};

#define SPACE_HOST   true
#define SPACE_DEVICE false
const struct sl_kind_info sl_event_kinds[SL_KIND_COUNT] = {
#define KIND(name, space, help) {#name, SPACE_##space},
#include "common/events.def"
#undef KIND
};

const struct sl_flag_info sl_event_flags[] = {
#define FLAG(name, bit, help) {#name, bit},
#include "common/events.def"
#undef FLAG
};
const unsigned sl_event_flag_count = SL_COUNT(sl_event_flags);

const struct sl_family_info sl_event_families[SL_FAMILY_COUNT] = {
#define FAMILY(name, oom, help) {#name, oom},
#include "common/events.def"
#undef FAMILY
};
