/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include <limits.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/terminal.h"
#include "analyzer/faces/faces.h"
#include "analyzer/report/dry.h"

#define SUMMARY_MAX_BYTES (1000 << 10)
#define SARIF_MAX_RESULTS 5000
#define ANNOTATIONS_MAX	  10 /* GitHub shows ten of a kind per step */

/* Path of an outcome's file from the repository's root, in a buffer of PATH_MAX; NULL: it lies outside. */
static const char *path_inside(const struct sl_ci_reports *forms, const struct sl_outcome *outcome, char *path, size_t size)
{
	char joined[2 * PATH_MAX], real[PATH_MAX];
	size_t root = forms->repository ? strlen(forms->repository) : 0;

	if (!root || !outcome->file || !outcome->line)
		return NULL;
	if (outcome->file[0] == '/')
		snprintf(joined, sizeof(joined), "%s", outcome->file);
	else
		snprintf(joined, sizeof(joined), "%s/%s", forms->cwd ? forms->cwd : forms->repository, outcome->file);
	if (!realpath(joined, real) || strncmp(real, forms->repository, root) || real[root] != '/')
		return NULL;
	snprintf(path, size, "%s", real + root + 1);
	return path;
}

static bool is_same(const struct sl_outcome *a, const struct sl_outcome *b)
{
	return !strcmp(a->rule, b->rule) && !strcmp(a->message, b->message) && a->fails == b->fails;
}

/* How often the outcome is there; 0: it was there before. */
static unsigned times_of(const struct sl_outcomes *outcomes, size_t at)
{
	unsigned times = 0;

	for (size_t i = 0; i < outcomes->list.count; i++) {
		bool same = is_same(&outcomes->list.item[i], &outcomes->list.item[at]);

		if (same && i < at)
			return 0;
		times += same;
	}
	return times;
}

static void put_outcome(struct sl_cells *table, const struct sl_outcome *o, unsigned times)
{
	char many[32] = "";
	const char *word = o->fails ? "FAIL" : o->level == SL_LEVEL_PASS ? "ok" : o->level == SL_LEVEL_UNKNOWN ? "unknown" : "also";

	sl_cells_put(table,
		     o->fails			    ? SL_COLOUR_RED
		     : o->level == SL_LEVEL_UNKNOWN ? SL_COLOUR_YELLOW
		     : o->level == SL_LEVEL_PASS    ? SL_COLOUR_GREEN
						    : SL_COLOUR_NONE,
		     "%-7s", word);
	sl_cells_put(table, SL_COLOUR_NONE, "%-15s", o->rule);
	if (times > 1)
		snprintf(many, sizeof(many), " (%u times)", times);
	sl_cells_put(table, SL_COLOUR_NONE, "%s%s", o->message, many);
}

bool sl_ci_reports_text(const struct sl_ci_reports *forms, const struct sl_terminal *to)
{
	const struct sl_outcomes *outcomes = forms->outcomes;
	struct sl_cells table = {.columns = "llw"};
	unsigned counts[3] = {0};
	char names[256], unknown[40] = "", more[100] = "";

	for (unsigned pass = 0; pass < 3; pass++) /* what fails, what was asked for, what was not */
		for (size_t i = 0; i < outcomes->list.count; i++) {
			const struct sl_outcome *o = &outcomes->list.item[i];

			unsigned times = pass == (o->fails ? 0 : o->level <= SL_LEVEL_UNKNOWN ? 1 : 2) ? times_of(outcomes, i) : 0;

			counts[pass] += times != 0;
			if (times)
				put_outcome(&table, o, times);
		}
	if (outcomes->unknown)
		snprintf(unknown, sizeof(unknown), ", %u unknown", outcomes->unknown);
	if (counts[2])
		snprintf(more, sizeof(more), ", %u finding%s beyond your limits (--fail-on shows and fails on them)", counts[2],
			 counts[2] == 1 ? "" : "s");
	sl_dry_head(to->out, forms->measures->dry_card);
	sl_terminal_head(to,
			 outcomes->failures  ? SL_COLOUR_RED
			 : outcomes->unknown ? SL_COLOUR_YELLOW
					     : SL_COLOUR_GREEN,
			 outcomes->failures ? "FAILED" : "OK", "%u of %u failed%s%s", counts[0], counts[0] + counts[1], unknown,
			 more);
	sl_cells_print(&table, to, 0);
	sl_limits_describe(forms->limits, names, sizeof(names));
	sl_terminal_line(to, 0, 4, "asked: %s%s%s", names, forms->config ? "; limits: " : "", forms->config ?: "");
	if (forms->other_runs)
		sl_terminal_line(to, 0, 4, "%u other run%s here: --run", forms->other_runs, forms->other_runs == 1 ? "" : "s");
	return !ferror(to->out);
}

bool sl_ci_reports_json(const struct sl_ci_reports *forms, FILE *out)
{
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.check", 1);
	sl_json_string(j, "dry", forms->measures->dry_card);
	sl_json_uint(j, "failures", forms->outcomes->failures);
	sl_json_uint(j, "unknown", forms->outcomes->unknown);
	sl_json_array(j, "outcomes");
	for (size_t i = 0; i < forms->outcomes->list.count; i++) {
		const struct sl_outcome *o = &forms->outcomes->list.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "rule", o->rule);
		sl_json_string(j, "level", sl_level_names[o->level]);
		sl_json_bool(j, "fails", o->fails);
		sl_json_string(j, "subject", o->subject);
		sl_json_string(j, "message", o->message);
		sl_json_string(j, "file", o->file);
		sl_json_known(j, "line", o->file && o->line ? (int64_t)o->line : -1);
		sl_json_string(j, "fingerprint", o->fingerprint);
		sl_json_end(j);
	}
	sl_json_end(j);
	return sl_json_finish(j);
}

/* ---- JUnit */

static void put_attribute(FILE *out, const char *name, const char *text)
{
	sl_escape_print(out, " %s=\"", name);
	sl_escape_put(out, SL_ESCAPE_XML, text);
	fputc('"', out);
}

/* CI systems merge test cases of the same name, so a repeated name gets a number. */
static void put_case(FILE *out, const struct sl_outcome *o, struct sl_map *names)
{
	char *key = sl_memory_print("%s\n%s", o->rule, o->subject), *name;
	uintptr_t *count = sl_map_at(names, key);

	name = ++*count > 1 ? sl_memory_print("%s (%zu)", o->subject, (size_t)*count) : sl_memory_copy(o->subject);
	fputs("    <testcase classname=\"stormlog.", out);
	sl_escape_put(out, SL_ESCAPE_XML, o->rule);
	fputc('"', out);
	put_attribute(out, "name", name);
	free(name);
	free(key);
	fputs(" time=\"0\"", out);
	if (o->fails) {
		fputs(">\n      <failure", out);
		put_attribute(out, "message", o->message);
		put_attribute(out, "type", sl_level_names[o->level]);
		fputc('>', out);
		sl_escape_put(out, SL_ESCAPE_XML, o->message);
		if (o->file && o->line) {
			fputs(" (", out);
			sl_escape_put(out, SL_ESCAPE_XML, o->file);
			sl_escape_print(out, ":%u)", o->line);
		}
		fputs("</failure>\n    </testcase>\n", out);
	} else if (o->level != SL_LEVEL_PASS) {
		fputs(">\n      <skipped", out);
		put_attribute(out, "message", o->message);
		fputs("/>\n    </testcase>\n", out);
	} else {
		fputs("/>\n", out);
	}
}

bool sl_ci_reports_junit(const struct sl_ci_reports *forms, FILE *out)
{
	const struct sl_outcomes *outcomes = forms->outcomes;
	struct sl_map names = {0};
	size_t skipped = 0;

	for (size_t i = 0; i < outcomes->list.count; i++)
		skipped += !outcomes->list.item[i].fails && outcomes->list.item[i].level != SL_LEVEL_PASS;
	sl_escape_print(out,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"stormlog check\" "
			"tests=\"%zu\" failures=\"%u\" errors=\"0\" time=\"0\">\n  <testsuite name=\"stormlog check\"",
			outcomes->list.count, outcomes->failures);
	sl_escape_print(out, " tests=\"%zu\" failures=\"%u\" errors=\"0\" skipped=\"%zu\" time=\"0\">\n", outcomes->list.count,
			outcomes->failures, skipped);
	for (size_t i = 0; i < outcomes->list.count; i++)
		put_case(out, &outcomes->list.item[i], &names);
	sl_map_free(&names);
	fputs("  </testsuite>\n</testsuites>\n", out);
	return !ferror(out);
}

/* ---- SARIF */

static void put_text(struct sl_json *j, const char *key, const char *text)
{
	sl_json_object(j, key);
	sl_json_string(j, "text", text);
	sl_json_end(j);
}

static void put_rules(struct sl_json *j)
{
	sl_json_array(j, "rules");
	for (const struct sl_gate_rule *rule = sl_rules; rule->name; rule++) {
		sl_json_object(j, NULL);
		sl_json_string(j, "id", rule->name);
		put_text(j, "shortDescription", rule->summary);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Escapes a path, relative to the repository's root, for a URI. */
static char *uri_of(const char *path)
{
	static const char hex[] = "0123456789ABCDEF";
	char *uri = sl_memory_must(malloc(strlen(path) * 3 + 1)), *to = uri;

	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if (c > 0x20 && c < 0x7f && !strchr("%#?[]\"<>\\^`{|}:", c)) {
			*to++ = *path;
		} else {
			*to++ = '%';
			*to++ = hex[c >> 4];
			*to++ = hex[c & 15];
		}
	}
	*to = 0;
	return uri;
}

static void put_result(struct sl_json *j, const struct sl_outcome *o, const char *path)
{
	char *uri = uri_of(path);
	unsigned index = 0;

	while (strcmp(sl_rules[index].name, o->rule))
		index++;
	sl_json_object(j, NULL);
	sl_json_string(j, "ruleId", o->rule);
	sl_json_uint(j, "ruleIndex", index);
	sl_json_string(j, "level", o->level == SL_LEVEL_CRITICAL ? "error" : o->level == SL_LEVEL_NOTE ? "note" : "warning");
	put_text(j, "message", o->message);
	sl_json_array(j, "locations");
	sl_json_object(j, NULL);
	sl_json_object(j, "physicalLocation");
	sl_json_object(j, "artifactLocation");
	sl_json_string(j, "uri", uri);
	sl_json_string(j, "uriBaseId", "%SRCROOT%");
	sl_json_end(j);
	sl_json_object(j, "region");
	sl_json_uint(j, "startLine", o->line);
	sl_json_end(j);
	sl_json_end(j);
	sl_json_end(j);
	sl_json_end(j);
	if (o->fingerprint) {
		sl_json_object(j, "partialFingerprints");
		sl_json_string(j, "stormlogStack/v1", o->fingerprint);
		sl_json_end(j);
	}
	sl_json_end(j);
	free(uri);
}

bool sl_ci_reports_sarif(const struct sl_ci_reports *forms, FILE *out)
{
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);
	char path[PATH_MAX];
	unsigned results = 0, outside = 0;

	sl_json_object(j, NULL);
	sl_json_string(j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	sl_json_string(j, "version", "2.1.0");
	sl_json_array(j, "runs");
	sl_json_object(j, NULL);
	sl_json_object(j, "tool");
	sl_json_object(j, "driver");
	sl_json_string(j, "name", "stormlog");
	sl_json_string(j, "semanticVersion", SL_VERSION);
	put_rules(j);
	sl_json_end(j);
	sl_json_end(j);
	sl_json_string(j, "columnKind", "utf16CodeUnits");
	sl_json_array(j, "results");
	for (size_t i = 0; i < forms->outcomes->list.count && results < SARIF_MAX_RESULTS; i++) {
		const struct sl_outcome *o = &forms->outcomes->list.item[i];

		if (o->level < SL_LEVEL_NOTE)
			continue;
		if (!path_inside(forms, o, path, sizeof(path))) {
			outside++;
			continue;
		}
		put_result(j, o, path);
		results++;
	}
	if (outside)
		fprintf(stderr, "note: --sarif: %u results have no line in a file of %s, so SARIF cannot show them\n", outside,
			forms->repository ? "this repository" : "a git repository: check ran outside one");
	sl_json_end(j);
	sl_json_end(j);
	sl_json_end(j);
	return sl_json_finish(j);
}

/* ---- OpenMetrics */

bool sl_ci_reports_metrics(const struct sl_ci_reports *forms, FILE *out)
{
	static const struct {
		enum sl_measure_of of;
		const char *name, *label, *help;
	} families[] = {
		{SL_MEASURE_TOTAL, "stormlog_memory_bytes", "what", "Totals of the worst process or device."},
		{SL_MEASURE_LIBRARY, "stormlog_library_peak_bytes", "library", "Most a library held at once on one device."},
		{SL_MEASURE_LABEL, "stormlog_label_peak_bytes", "label", "Most in use inside a label."},
		{SL_MEASURE_GROWTH, "stormlog_label_growth_bytes", "label", "Growth an entry of a label."},
	};

	for (size_t f = 0; f < SL_COUNT(families); f++) {
		bool head_printed = false;

		for (size_t i = 0; i < forms->measures->list.count; i++) {
			const struct sl_measure *m = &forms->measures->list.item[i];

			if (m->of != families[f].of || m->bytes == SL_UNKNOWN || sl_measure_is_count(m->of, m->key))
				continue;
			if (!head_printed)
				sl_escape_print(out, "# TYPE %s gauge\n# UNIT %s bytes\n# HELP %s %s\n", families[f].name,
						families[f].name, families[f].name, families[f].help);
			head_printed = true;
			sl_escape_print(out, "%s{%s=\"", families[f].name, families[f].label);
			sl_escape_put(out, SL_ESCAPE_METRIC, m->key);
			sl_escape_print(out, "\"} %llu\n", (unsigned long long)m->bytes);
		}
	}
	fputs("# EOF\n", out);
	return !ferror(out);
}

/* ---- GitHub */

static void put_row(FILE *out, const struct sl_outcome *o)
{
	static const char *const marks[] = {":white_check_mark:", ":grey_question:", ":information_source:", ":warning:", ":x:"};

	sl_escape_print(out, "| %s | %s | ", o->fails ? ":x:" : marks[o->level], o->rule);
	sl_escape_put(out, SL_ESCAPE_MARKDOWN, o->message);
	fputs(" |\n", out);
}

bool sl_ci_reports_summary(const struct sl_ci_reports *forms, FILE *out)
{
	static const struct sl_face_style style = {.columns = SL_FACE_COLUMNS, .fenced = true};
	const struct sl_outcomes *outcomes = forms->outcomes;
	size_t left = outcomes->list.count;
	char *text;
	size_t size, used = 0;
	FILE *row;

	sl_dry_head(out, forms->measures->dry_card);
	sl_escape_print(out, "### GPU memory: %s", outcomes->failures ? "failed" : "fine");
	if (outcomes->unknown)
		sl_escape_print(out, ", %u unknown", outcomes->unknown);
	fputs("\n\n|  | rule | what was found |\n|---|---|---|\n", out);
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < outcomes->list.count; i++) {
			if (outcomes->list.item[i].fails == (pass == 1))
				continue;
			row = open_memstream(&text, &size);
			if (!row)
				return false;
			put_row(row, &outcomes->list.item[i]);
			fclose(row);
			used += size;
			if (used < SUMMARY_MAX_BYTES) {
				fwrite(text, 1, size, out);
				left--;
			}
			free(text);
		}
	if (left)
		sl_escape_print(out, "\n%zu more\n", left);
	fputs("\n```\n", out);
	sl_face_terminal(forms->answers, out, &style);
	fputs("```\n\n", out);
	return !ferror(out);
}

void sl_ci_reports_annotations(const struct sl_ci_reports *forms, FILE *out)
{
	char path[PATH_MAX];
	unsigned done[2] = {0, 0};

	for (size_t i = 0; i < forms->outcomes->list.count; i++) {
		const struct sl_outcome *o = &forms->outcomes->list.item[i];
		bool inside = path_inside(forms, o, path, sizeof(path));

		if (o->level < SL_LEVEL_WARNING || done[o->fails]++ >= ANNOTATIONS_MAX)
			continue;
		fputs(o->fails ? "::error " : "::warning ", out);
		if (inside) {
			fputs("file=", out);
			sl_escape_put(out, SL_ESCAPE_PROPERTY, path);
			sl_escape_print(out, ",line=%u,", o->line);
		}
		fputs("title=", out);
		sl_escape_put(out, SL_ESCAPE_PROPERTY, o->rule);
		fputs("::", out);
		sl_escape_put(out, SL_ESCAPE_COMMAND, o->message);
		fputc('\n', out);
	}
}
