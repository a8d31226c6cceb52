/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/known.h"

#include "agent/hooks/verbs.h"
#include "analyzer/base/map.h"
#include "common/event.h"
#include "common/tracefile.h"

static const char *const calls[] = {
#define ROW(verb, kind, ret, name, ...)	 #name,
#define ONCE(verb, ret, name, ...)	 #name,
#define ALSO(verb, kind, ret, name, tag) #name,
#define LOOKUP(ret, name, ...)		 #name,
#define CHECKED(ret, name, ...)		 #name,
#define LAUNCHED			 CHECKED
#define QUERY(ret, name, ...)		 #name,
#define RANGE(verb, ret, name, ...)	 #name,
#define INJECTED(ret, name, ...)	 #name,
#define FRAMEWORK(verb, ret, name, ...)	 #name,
#define SLOT(verb, number, name, ...)	 #name,
#define HAND(verb, kind, id, name)	 name,
#include "agent/hooks/all.def"
};

static const char *const others[] = {"header", SL_TRACE_FORMAT, "i", "u", "before", "after", "host", "device", ""};

static void put(struct sl_map *names, const char *name)
{
	*sl_map_at(names, name) = SL_KNOWN_WORD;
}

static void fill(struct sl_map *names)
{
	for (size_t i = 0; i < SL_COUNT(others); i++)
		put(names, others[i]);
	for (size_t i = 0; i < SL_FIELD_COUNT; i++) {
		put(names, sl_event_fields[i].name);
		put(names, sl_event_fields[i].unit);
	}
	for (size_t i = 0; i < SL_VERB_COUNT; i++)
		put(names, sl_event_verbs[i].name);
	for (size_t i = 0; i < SL_KIND_COUNT; i++)
		put(names, sl_event_kinds[i].name);
	for (size_t i = 0; i < SL_FAMILY_COUNT; i++)
		put(names, sl_event_families[i].name);
	for (size_t i = 0; i < sl_event_flag_count; i++)
		put(names, sl_event_flags[i].name);
	for (size_t i = 0; i < SL_COUNT(calls); i++)
		*sl_map_at(names, calls[i]) = SL_KNOWN_CALL;
}

enum sl_known_kind sl_known_as(const char *text, size_t size)
{
	static struct sl_map names;
	char copy[128];

	if (!names.count)
		fill(&names);
	if (size >= sizeof(copy) || memchr(text, 0, size))
		return SL_KNOWN_NOT;
	memcpy(copy, text, size);
	copy[size] = 0;
	return (enum sl_known_kind)sl_map_find(&names, copy);
}
