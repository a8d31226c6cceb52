/* SPDX-License-Identifier: MIT */
/* stormlog-analyze report --json over Stormlog's own files. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../commands.h"
#include "emit.h"

static const char usage[] =
	"usage: stormlog-analyze report --json [options] PATH...\n"
	"\n"
	"Read telemetry and print report.json to stdout.\n"
	"\n"
	"  --session-id ID       the session of the top-level findings\n"
	"  --gap-ratio R         gaps below this share of the device are not looked at (0.05)\n"
	"  --gap-zscore Z        how far out a transient spike is (2.0)\n"
	"  --gap-r2 R            how straight a persistent drift is (0.6)\n"
	"  --gap-fragmentation R what share of reserved memory is unused (0.3)\n"
	"  --issue-states FILE   JSON object: fingerprint id to open, resolved, ignored or regressed\n";

struct settings {
	struct sl_emit_options emit;
	const char *session_id, *states_file;
	bool json;
};

static bool to_ratio(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && *end == 0 && *out >= 0;
}

/* Returns an exit status, or -1 to go on. */
static int parse(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {"session-id", required_argument, NULL, 's'},
		{"gap-ratio", required_argument, NULL, 'r'}, {"gap-zscore", required_argument, NULL, 'z'},
		{"gap-r2", required_argument, NULL, 'd'}, {"gap-fragmentation", required_argument, NULL, 'f'},
		{"issue-states", required_argument, NULL, 'i'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct sl_gap_thresholds *t = &s->emit.thresholds;
	bool ok = true;

	optind = 0;
	for (int o; ok && (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (o) {
		case 'j':
			s->json = true;
			break;
		case 's':
			s->session_id = optarg;
			break;
		case 'r':
			ok = to_ratio(optarg, &t->gap_ratio);
			break;
		case 'z':
			ok = to_ratio(optarg, &t->spike_zscore) && t->spike_zscore > 0;
			break;
		case 'd':
			ok = to_ratio(optarg, &t->drift_r2);
			break;
		case 'f':
			ok = to_ratio(optarg, &t->fragmentation);
			break;
		case 'i':
			s->states_file = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return SL_EXIT_FINE;
		default:
			ok = false;
		}
	}
	if (ok && s->json && optind < argc)
		return -1;
	fputs(usage, stderr);
	return SL_EXIT_USAGE;
}

static void put_warning(void *context, const char *text)
{
	sl_json_string(context, NULL, text);
}

static int print(const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_object(j, NULL);
	sl_json_string(j, "schema", "stormlog.report");
	sl_json_int(j, "schema_version", 1);
	sl_json_array(j, "processes");
	sl_json_end(j);
	sl_json_array(j, "ooms");
	sl_json_end(j);
	sl_json_array(j, "leaks");
	sl_json_end(j);
	sl_telemetry_emit_selected(j, t, options);
	sl_json_array(j, "findings");
	sl_json_end(j);
	sl_json_array(j, "warnings");
	sl_telemetry_each_warning(t, put_warning, j);
	sl_json_end(j);
	sl_telemetry_emit(j, t, options);
	sl_json_end(j);
	sl_json_newline(j);
	if (sl_json_close(j))
		return SL_EXIT_FINE;
	perror("stormlog-analyze: writing the report");
	return SL_EXIT_UNREADABLE;
}

static int read_states(struct sl_arena *arena, struct settings *s)
{
	struct sl_value_error error = {0};

	if (!s->states_file)
		return SL_EXIT_FINE;
	s->emit.issue_states = sl_source_document(arena, s->states_file, &error);
	if (s->emit.issue_states)
		return SL_EXIT_FINE;
	fprintf(stderr, "%s:%u: %s\n", s->states_file, error.line, error.reason);
	return SL_EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	struct settings s = {.emit = sl_emit_defaults};
	struct sl_arena arena = {0};
	size_t found = 0;
	int status = parse(argc, argv, &s);

	if (status < 0)
		status = read_states(&arena, &s);
	else
		return status;
	for (int i = optind; !status && i < argc; i++) {
		if (access(argv[i], F_OK) == 0)
			continue;
		fprintf(stderr, "stormlog-analyze: no such file: %s\n", argv[i]);
		status = SL_EXIT_USAGE;
	}
	struct sl_telemetry *t = sl_telemetry_new();

	for (int i = optind; !status && i < argc; i++)
		found += sl_telemetry_add_path(t, argv[i], argc - optind > 1);
	if (!status && !sl_telemetry_finish(t, s.session_id)) {
		fprintf(stderr, "stormlog-analyze: no such session: %s\n", s.session_id);
		status = SL_EXIT_USAGE;
	}
	if (!status && (found == 0 || (t->session_count == 0 && t->bundle_count == 0))) {
		for (size_t i = 0; i < t->problem_count; i++)
			fprintf(stderr, "%s:%u: %s\n", t->problems[i].file, t->problems[i].line, t->problems[i].reason);
		fputs("stormlog-analyze: nothing readable here\n", stderr);
		status = SL_EXIT_UNREADABLE;
	}
	if (!status)
		status = print(t, &s.emit);
	sl_telemetry_free(t);
	sl_arena_free(&arena);
	return status;
}

int sl_telemetry_report(int argc, char **argv)
{
	return run(argc, argv);
}
