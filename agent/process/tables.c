/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"
#include "agent/process/hook_rows.h"

static void begin_list(struct sl_definition *map, const char *key, size_t count)
{
	sl_definition_key(map, key);
	sl_pack_array(&map->pack, count);
}

/* Packs the meanings of an event's numbers, so that an analyzer of another version can read by name. */
static void pack_tables(struct sl_definition *map)
{
	struct sl_pack *out = &map->pack;

	begin_list(map, "fields", SL_FIELD_COUNT);
	for (unsigned i = 0; i < SL_FIELD_COUNT; i++) {
		sl_pack_array(out, 3);
		sl_pack_text(out, sl_event_fields[i].name);
		sl_pack_text(out, sl_event_fields[i].is_signed ? "i" : "u");
		sl_pack_text(out, sl_event_fields[i].unit);
	}
	begin_list(map, "verbs", SL_VERB_COUNT);
	for (unsigned i = 0; i < SL_VERB_COUNT; i++) {
		sl_pack_array(out, 2);
		sl_pack_text(out, sl_event_verbs[i].name);
		sl_pack_text(out, sl_event_verbs[i].stamped_before ? "before" : "after");
	}
	begin_list(map, "kinds", SL_KIND_COUNT);
	for (unsigned i = 0; i < SL_KIND_COUNT; i++) {
		sl_pack_array(out, 2);
		sl_pack_text(out, sl_event_kinds[i].name);
		sl_pack_text(out, sl_event_kinds[i].on_host ? "host" : "device");
	}
	begin_list(map, "families", SL_FAMILY_COUNT);
	for (unsigned i = 0; i < SL_FAMILY_COUNT; i++) {
		sl_pack_array(out, 2);
		sl_pack_text(out, sl_event_families[i].name);
		sl_pack_int(out, sl_event_families[i].oom);
	}
}

/* Packs the names of flags, in the order of their bits. */
static void pack_flags(struct sl_definition *map)
{
	struct sl_pack *out = &map->pack;
	unsigned bits = 0;

	for (unsigned i = 0; i < sl_event_flag_count; i++)
		if (sl_event_flags[i].bit >= bits)
			bits = sl_event_flags[i].bit + 1;
	begin_list(map, "flags", bits);
	for (unsigned bit = 0; bit < bits; bit++) {
		const char *name = "";

		for (unsigned i = 0; i < sl_event_flag_count; i++)
			if (sl_event_flags[i].bit == bit)
				name = sl_event_flags[i].name;
		sl_pack_text(out, name);
	}
}

static void pack_hooks(struct sl_definition *map)
{
	struct sl_pack *out = &map->pack;

	begin_list(map, "hooks", sl_hook_count ? sl_hook_count - 1 : 0);
	for (unsigned i = 1; i < sl_hook_count; i++) {
		const struct sl_hooks_row *hook = &sl_hooks[i];

		sl_pack_array(out, 4);
		sl_pack_text(out, hook->name);
		sl_pack_uint(out, hook->verb);
		sl_pack_uint(out, hook->kind);
		sl_pack_uint(out, hook->family);
	}
}

void sl_tables_pack(struct sl_definition *map)
{
	pack_tables(map);
	pack_flags(map);
	pack_hooks(map);
}
