/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <errno.h>
#include <sys/stat.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "common/now.h"

enum { CATALOGUE, FIRST_FILTER, STATUS = 6, QUIET = 11, UTC };

/* Turns the options from FIRST_FILTER on into terms of a query. */
static const char *const terms[] = {"run=\"%s\"",    "session=\"%s\"", "job=\"%s\"",   "rank=\"%s\"", "ranks=\"%s\"",
				    "status=\"%s\"", "bundle=1",       "not bundle=1", "when>\"%s\"", "when<\"%s\""};

static bool is_status(const char *word)
{
	static const char *const words[] = {"completed", "failed", "killed", "running", "unknown", "damaged"};
	size_t i = 0;

	while (i < SL_COUNT(words) && strcmp(word, words[i]))
		i++;
	return i < SL_COUNT(words);
}

bool sl_catalogued_take(struct sl_catalogued *c, int option, const char *value)
{
	struct sl_query query;
	struct sl_query_error error;
	const char *term;
	bool fine;

	if (option == CATALOGUE)
		c->catalogue = value;
	else if (option == QUIET)
		c->quiet = true;
	else if (option == UTC)
		c->utc = true;
	if (option < FIRST_FILTER || option >= QUIET)
		return true;
	if (value && (strchr(value, '"') || (option == STATUS && !is_status(value))))
		return false;
	term = terms[option - FIRST_FILTER];
	if (value) {
		const char *at = strstr(term, "%s");

		term = sl_arena_printf(&c->arena, "%.*s%s%s", (int)(at - term), term, value, at + 2);
	}
	fine = sl_query_parse(&query, term, sl_now_ns(CLOCK_REALTIME), &error);
	sl_query_free(&query);
	c->filters = c->filters ? sl_arena_printf(&c->arena, "%s %s", c->filters, term) : term;
	return fine;
}

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

static int learn(struct sl_catalogued *c, char *const *paths, unsigned count)
{
	sl_sandbox_setup(
		&(struct sl_verb_files){.inputs = paths, .writes = {c->catalogue}, .open = c->catalogue, .symbols = c->symbols});
	c->scan = (struct sl_scan){.store = c->store, .quiet = c->quiet};
	c->narrowed = count > 0;
	if (!count || sl_scan_paths(&c->scan, paths, count))
		return -1;
	if (!c->scan.missing)
		return sl_catalogued_fail(c);
	sl_paths_failed(c->scan.missing);
	return SL_EXIT_USAGE;
}

int sl_catalogued_open(struct sl_catalogued *c, const struct sl_arguments *parsed, unsigned skip)
{
	char *const *paths = parsed->paths + skip;
	unsigned count = parsed->path_count - skip;
	const char *query = NULL;
	char **existing = sl_memory_must(calloc(count + 1, sizeof(*existing)));
	unsigned found = 0;
	int status = -1;

	c->symbols = parsed->symbols;
	for (unsigned i = 0; i < count && status < 0; i++) {
		if (!access(paths[i], F_OK)) {
			existing[found++] = paths[i];
		} else if (query || !sl_catalogued_is_query(paths[i])) {
			sl_paths_failed(paths[i]);
			status = SL_EXIT_USAGE;
		} else {
			query = paths[i];
		}
	}
	if (status < 0)
		status = sl_catalogued_query(c, query ? query : "");
	if (status < 0)
		status = sl_catalogued_store(c, true, existing);
	if (status < 0)
		status = learn(c, existing, found);
	free(existing);
	return status;
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
