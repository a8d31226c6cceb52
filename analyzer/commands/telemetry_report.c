/* SPDX-License-Identifier: MIT */
/* stormlog-analyze report over Stormlog's own files. */
#include <errno.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"
#include "analyzer/base/paths.h"

static void put_warning(void *context, const char *text)
{
	sl_json_string(context, NULL, text);
}

static void write_run(struct sl_json *j, const struct sl_telemetry *t)
{
	const struct sl_session_summary *s = t->selected ? &t->selected->summary : NULL;

	sl_json_object(j, "run");
	sl_json_string(j, "id", s ? s->session_id : NULL);
	sl_json_string(j, "job_id", s ? s->job_id : NULL);
	sl_json_known(j, "world_size", s ? s->world_size : SL_EVENT_UNKNOWN);
	sl_json_null(j, "tag");
	sl_json_object(j, "metadata");
	sl_json_end(j);
	sl_json_known(j, "started_at_ns", s ? s->started_at_ns : SL_EVENT_UNKNOWN);
	sl_json_known(j, "ended_at_ns", s && s->has_end ? s->ended_at_ns : SL_EVENT_UNKNOWN);
	sl_json_null(j, "clock_skew");
	sl_json_array(j, "devices");
	sl_json_end(j);
	sl_json_end(j);
}

static void write_report(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	char lost[256];

	sl_json_document(j, "stormlog.report", 1);
	write_run(j, t);
	sl_json_array(j, "processes");
	sl_json_end(j);
	sl_json_array(j, "ooms");
	sl_json_end(j);
	sl_json_array(j, "leaks");
	sl_json_end(j);
	sl_json_array(j, "findings");
	sl_json_end(j);
	sl_json_limit(sl_budget_written(t->disk_bytes));
	sl_json_thin(j, 1, sl_json_limited() / 16);
	sl_emit_selected(j, t, options);
	sl_emit_telemetry(j, t, options);
	sl_json_thin(j, 1, 0);
	sl_json_array(j, "warnings");
	sl_emit_each_warning(t, put_warning, j);
	sl_json_thin(j, 0, 0);
	if (sl_outputs_lost(lost, sizeof(lost)))
		sl_json_string(j, NULL, lost);
	sl_json_end(j);
}

struct page {
	const struct sl_telemetry *telemetry;
	const struct sl_report_options *options;
	const char *path; /* the path as the user typed it */
};

static bool put_json(const struct page *page, FILE *out)
{
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);

	write_report(j, page->telemetry, &page->options->emit);
	return sl_json_finish(j);
}

static bool put_html(const struct page *page, FILE *out)
{
	return sl_html_telemetry(page->telemetry, page->path, &page->options->emit, page->options->html_max_bytes, out);
}

static bool save_one(struct sl_destination *place, const char *name, bool (*put)(const struct page *, FILE *),
		     const struct page *page)
{
	char path[PATH_MAX + 64];
	FILE *out;
	bool fine;

	snprintf(path, sizeof(path), "%s/%s", place->made, name);
	out = sl_save_private(path);
	if (!out)
		return false;
	fine = put(page, out);
	return !fclose(out) && fine;
}

static bool save(struct sl_destination *place, const struct page *page)
{
	if (!sl_destination_begin(place))
		return false;
	if (save_one(place, "report.json", put_json, page) && save_one(place, "report.html", put_html, page))
		return sl_destination_end(place);
	snprintf(place->why, sizeof(place->why), "%s: %s", place->folder, strerror(errno));
	sl_destination_drop(place);
	return false;
}

static int print_summary(const struct page *page, struct sl_destination *place)
{
	const struct sl_report_options *options = page->options;

	if (!options->quiet)
		sl_telemetry_summary(stdout, page->telemetry, &options->emit);
	if (!*place->folder)
		return SL_EXIT_FINE;
	if (!save(place, page)) {
		sl_escape_print(stderr, "stormlog-analyze: %s; the analysis is not saved (-o DIR names another place)\n",
				place->why);
		return SL_EXIT_UNSAVED;
	}
	if (*place->why)
		sl_escape_print(stderr, "stormlog-analyze: %s\n", place->why);
	if (!options->quiet)
		sl_escape_print(stdout, "\nreport: %s/report.html\n", place->folder);
	fflush(stdout);
	if (options->open)
		sl_browser_open();
	return SL_EXIT_FINE;
}

static void say_unreadable(const struct sl_telemetry *t, char *const *paths, unsigned count)
{
	size_t said = 0;

	if (sl_foreign_tell(paths, count))
		return;
	for (size_t i = 0; i < t->problems.count && said < 5; i++) {
		const char *file = t->problems.item[i].file, *reason = t->problems.item[i].reason;

		/* a foreign file has a problem on every line: print the first */
		if (i && !strcmp(file, t->problems.item[i - 1].file) && t->problems.item[i].loss != SL_SOURCE_FILE)
			continue;
		sl_paths_problem(file, t->problems.item[i].line, reason);
		said++;
	}
	if (t->problems.count > said)
		sl_escape_print(stderr, "... and %zu more\n", t->problems.count - said);
	sl_paths_empty(paths, count, "trace, telemetry file or bundle");
}

int sl_telemetry_report(struct sl_report_options *options, char **paths, unsigned count, struct sl_destination *place)
{
	struct sl_telemetry *t = sl_telemetry_new();
	const struct page page = {t, options, paths[0]};
	size_t found = 0;
	int status = SL_EXIT_FINE;

	for (char **path = paths; !status && *path; path++) {
		if (access(*path, R_OK) == 0) {
			found += sl_telemetry_add_path(t, *path, count > 1);
			continue;
		}
		sl_paths_failed(*path);
		status = SL_EXIT_USAGE;
	}
	if (!status && !sl_telemetry_finish(t, options->session_id))
		status = sl_command_fail(SL_EXIT_USAGE, "no such session: %s", options->session_id);
	if (!status && (found == 0 || (t->sessions.count == 0 && t->bundles.count == 0))) {
		say_unreadable(t, paths, count);
		status = SL_EXIT_UNREADABLE;
	}
	if (!status && options->json)
		status = put_json(&page, stdout) ? SL_EXIT_FINE : sl_command_fail(SL_EXIT_UNSAVED, "writing the report: %m");
	else if (!status)
		status = print_summary(&page, place);
	sl_telemetry_free(t);
	return status;
}
