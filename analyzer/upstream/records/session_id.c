/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

#include <stdlib.h>

static const char *make(struct sl_arena *arena, const char *path, const char *kind)
{
	char *real = realpath(path, NULL);
	const char *parts[] = {sl_arena_strdup(arena, real ? real : path), kind};

	free(real);
	return sl_record_session_id(arena, parts, 2);
}

const char *sl_session_id_of_sink(struct sl_arena *arena, const char *path)
{
	return make(arena, path, "sink");
}

const char *sl_session_id_of_file(struct sl_arena *arena, const char *path)
{
	static const char *const kinds[] = {[SL_SOURCE_LINES] = "sink", [SL_SOURCE_JSON] = "json", [SL_SOURCE_CSV] = "csv"};

	return make(arena, path, kinds[sl_source_form(path)]);
}
