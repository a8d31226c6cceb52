/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/now.h"

/* ---- the query */

static int say_wrong(const char *text, const struct sl_query_error *error)
{
	sl_escape_print(stderr, "stormlog-analyze: query, column %u: %s\n  %s\n  %*s^\n", error->column, error->reason, text,
			(int)(error->column < 200 ? error->column - 1 : 0), "");
	return SL_EXIT_USAGE;
}

int sl_catalogued_query(struct sl_catalogued *c, const char *text)
{
	struct sl_query_error error;
	bool fine;

	sl_query_free(&c->query);
	/* parsed without the filters first, so that the column of an error refers to what the user typed */
	fine = sl_query_parse(&c->query, text, sl_now_ns(CLOCK_REALTIME), &error);
	if (fine && c->filters) {
		const char *both = c->query.count ? sl_arena_printf(&c->arena, "(%s) %s", text, c->filters) : c->filters;

		sl_query_free(&c->query);
		fine = sl_query_parse(&c->query, both, sl_now_ns(CLOCK_REALTIME), &error);
		text = both;
	}
	return fine ? -1 : say_wrong(text, &error);
}

/* What is written like a path is no query: the user meant a path, which is missing. */
bool sl_catalogued_is_query(const char *text)
{
	return access(text, F_OK) && (!strchr(text, '/') || strpbrk(text, " :=<>\"*()"));
}

/* ---- the catalogue */

static const char *default_catalogue(struct sl_arena *arena)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && *state == '/')
		return sl_arena_printf(arena, "%s/stormlog/" SL_STORE_NAME, state);
	return home && *home ? sl_arena_printf(arena, "%s/.local/state/stormlog/" SL_STORE_NAME, home) : NULL;
}

int sl_catalogued_store(struct sl_catalogued *c, bool write, char *const *inputs)
{
	const char *path = c->catalogue ? c->catalogue : default_catalogue(&c->arena);
	char why[PATH_MAX + 100];
	struct stat st;

	_Static_assert(sizeof(why) >= SL_STORE_WHY, "");
	if (!path)
		return sl_command_fail(SL_EXIT_USAGE, "XDG_STATE_HOME and HOME are not set: name a --catalogue");
	c->catalogue = path;
	/* asked before SQLite makes files */
	if (!sl_sandbox_may_write(&(struct sl_verb_files){.inputs = inputs, .writes = {path}, .through = path}, why, sizeof(why)))
		return sl_command_fail(SL_EXIT_USAGE, "%s", why);
	if (sl_sandbox_is_read(path, inputs))
		return sl_command_fail(SL_EXIT_USAGE, "%s is among the traces to read; give --catalogue another path", path);
	if (!stat(path, &st) && st.st_size == 1) /* to SQLite an empty database */
		return sl_command_fail(SL_EXIT_USAGE, "%s: no catalogue of stormlog", path);
	c->store = sl_store_open(path, write, why);
	if (c->store)
		return -1;
	return sl_command_fail(errno == EIO ? SL_EXIT_UNSAVED : SL_EXIT_USAGE, "%s: %s", path, why);
}

int sl_catalogued_fail(struct sl_catalogued *c)
{
	return sl_command_fail(SL_EXIT_UNSAVED, "%s: %s", c->catalogue, sl_store_why(c->store));
}

int sl_catalogued_close(struct sl_catalogued *c, int status)
{
	sl_scan_free(&c->scan);
	sl_query_free(&c->query);
	if (c->store)
		sl_store_close(c->store);
	sl_arena_free(&c->arena);
	return status == SL_EXIT_FINE && c->scan.unsaved ? SL_EXIT_UNSAVED : status;
}
