/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"

enum { LISTED = 10 };

static const char *size_of(struct sl_arena *arena, int64_t bytes)
{
	char text[SL_FORMAT_BYTES];

	return sl_arena_strdup(arena, sl_format_size(text, bytes > 0 ? (uint64_t)bytes : 0));
}

static void put_session(FILE *out, const struct sl_session *session, bool selected)
{
	const struct sl_session_summary *s = &session->summary;
	struct sl_arena arena = {0};
	int64_t allocated = 0, reserved = 0, used = 0, total = 0;

	sl_escape_print(out, "%c %s  %s", selected ? '*' : ' ', s->session_id, sl_session_status_names[s->status]);
	if (s->world_size > 1)
		sl_escape_print(out, "  rank %lld of %lld", (long long)s->rank, (long long)s->world_size);
	sl_escape_print(out, "  %s", s->host);
	if (s->pid >= 0)
		sl_escape_print(out, "  pid %lld", (long long)s->pid);
	sl_escape_print(out, "  %zu events\n", session->count);
	for (size_t i = 0; i < session->count; i++) {
		const struct sl_v3_event *e = &session->events[i];

		allocated = e->allocated_bytes > allocated ? e->allocated_bytes : allocated;
		reserved = e->reserved_bytes > reserved ? e->reserved_bytes : reserved;
		used = e->used_bytes > used ? e->used_bytes : used;
		total = e->total_bytes > total ? e->total_bytes : total;
	}
	if (session->count)
		sl_escape_print(out, "    peak allocated %s, reserved %s, device %s", size_of(&arena, allocated),
				size_of(&arena, reserved), size_of(&arena, used));
	if (session->count)
		sl_escape_print(out, total > 0 ? " of %s\n" : "\n", size_of(&arena, total));
	sl_arena_free(&arena);
}

static void put_gaps(FILE *out, const struct sl_gap_result *gaps)
{
	for (size_t i = 0; i < gaps->count; i++)
		sl_escape_print(out, "  %-8s  %s\n", gaps->findings[i].critical ? "critical" : "warning",
				gaps->findings[i].description);
}

static void put_collectives(FILE *out, const struct sl_collective_result *result)
{
	struct sl_arena arena = {0};

	for (size_t i = 0; i < result->count && i < LISTED; i++)
		sl_escape_print(out, "  rank %d: a gap of %s during collectives (confidence %.2f)\n", result->intervals[i].rank,
				size_of(&arena, result->intervals[i].peak_gap_bytes), result->intervals[i].confidence);
	if (result->count > LISTED)
		sl_escape_print(out, "  and %zu more of these\n", result->count - LISTED);
	sl_arena_free(&arena);
}

static void put_causes(FILE *out, const struct sl_cross_rank *result)
{
	struct sl_arena arena = {0};

	for (size_t i = 0; i < result->suspect_count && i < LISTED; i++)
		sl_escape_print(out, "  rank %d rose first, by %s (confidence %s)\n", result->suspects[i].rank,
				size_of(&arena, result->suspects[i].delta_bytes), result->suspects[i].confidence);
	sl_arena_free(&arena);
}

static void put_findings(FILE *out, const struct sl_session *session)
{
	sl_escape_print(out, "\nfindings in %s\n", session->summary.session_id);
	put_gaps(out, &session->answers->gaps);
	put_collectives(out, &session->answers->collectives[SL_COLLECTIVE_MEDIUM]);
	put_causes(out, &session->answers->cross_rank);
	if (session->answers->gaps.count == 0)
		fputs("  no gap above 5 % of the device\n", out);
}

static void put_issues(FILE *out, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	struct sl_arena arena = {0};
	struct sl_value_error error;
	size_t length;

	sl_issues_write(j, NULL, t, options->issue_states);
	const char *text = sl_json_text(j, &length);
	const struct sl_value *issues = sl_value_parse(&arena, text, length, 1, &error);

	if (issues && issues->count)
		fputs("\nissues\n", out);
	for (uint32_t i = 0; issues && i < issues->count && i < LISTED; i++) {
		const struct sl_value *issue = &issues->items[i];
		int64_t hits = 0;

		sl_value_get_int64(issue, "hit_count", &hits);
		sl_escape_print(out, "  %-8s  %-9s  %lldx  %s\n", sl_value_get_text(issue, "severity"),
				sl_value_get_text(issue, "state"), (long long)hits, sl_value_get_text(issue, "title"));
	}
	if (issues && issues->count > LISTED)
		sl_escape_print(out, "  and %u more: --json has them\n", issues->count - LISTED);
	sl_json_close(j);
	sl_arena_free(&arena);
}

/* Our own bundles explain the error; otherwise Stormlog's words are used. */
static void put_bundle(FILE *out, const struct sl_oom_row *row)
{
	sl_escape_print(out, "\n%s\n", strcmp(row->path, ".") ? row->path : "");
	if (sl_value_is(row->account, SL_VALUE_ARRAY)) {
		for (uint32_t i = 0; i < row->account->count; i++)
			if (row->account->items[i].kind == SL_VALUE_STRING)
				sl_escape_print(out, "%s\n", row->account->items[i].text);
		return;
	}
	sl_escape_print(out, "OUT OF MEMORY   %s", row->exception_type ? row->exception_type : row->reason ? row->reason : "");
	if (row->context)
		sl_escape_print(out, ", in %s", row->context);
	fputs("\n", out);
	if (row->exception_message)
		sl_escape_print(out, "  %s\n", row->exception_message);
}

struct warnings {
	FILE *out;
	size_t count;
};

static void put_warning(void *context, const char *text)
{
	struct warnings *warnings = context;

	if (warnings->count == 0)
		fputs("\nwarnings\n", warnings->out);
	if (warnings->count++ < LISTED)
		sl_escape_print(warnings->out, "  %s\n", text);
}

static void put_all(FILE *out, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	struct warnings warnings = {out, 0};

	sl_escape_print(out, "%zu session%s", t->sessions.count, t->sessions.count == 1 ? "" : "s");
	if (t->bundles.count)
		sl_escape_print(out, ", %zu OOM bundle%s", t->bundles.count, t->bundles.count == 1 ? "" : "s");
	fputs("\n", out);
	for (size_t i = 0; i < t->sessions.count && i < LISTED; i++)
		put_session(out, &t->sessions.item[i], &t->sessions.item[i] == t->selected);
	if (t->sessions.count > LISTED)
		sl_escape_print(out, "  and %zu more: --json has them\n", t->sessions.count - LISTED);
	for (size_t i = 0; i < t->bundles.count && i < LISTED; i++)
		put_bundle(out, &t->bundles.item[i]);
	if (t->bundles.count > LISTED)
		sl_escape_print(out, "  and %zu more bundles\n", t->bundles.count - LISTED);
	if (t->selected && t->selected->count)
		put_findings(out, t->selected);
	put_issues(out, t, options);
	sl_emit_each_warning(t, put_warning, &warnings);
	if (warnings.count > LISTED)
		sl_escape_print(out, "  and %zu more: --json has them\n", warnings.count - LISTED);
}

/* Names in a file may hold escape sequences: they go to the terminal line by line, without control characters. */
void sl_telemetry_summary(FILE *out, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	char *text = NULL, *rest;
	size_t length;
	FILE *memory = open_memstream(&text, &length);

	if (!memory)
		return;
	put_all(memory, t, options);
	fclose(memory);
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) && rest;) {
		sl_utf8_printable(line);
		sl_escape_print(out, "%s\n", line);
	}
	free(text);
}
