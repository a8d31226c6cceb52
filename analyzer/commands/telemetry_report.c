/* SPDX-License-Identifier: MIT */
/* stormlog-analyze report over Stormlog's own files. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../commands.h"
#include "../outputs/telemetry_emit.h"
#include "../telemetry/folder.h"
#include "../outputs/telemetry_summary.h"

static const char usage[] =
	"usage: stormlog-analyze report [options] PATH...\n"
	"\n"
	"Read Stormlog's own telemetry, print a summary and write report.json.\n"
	"\n"
	"  --json                print report.json to stdout and write nothing\n"
	"  -o, --output DIR      the folder to write, replaced as a whole (PATH/analysis where PATH is a folder)\n"
	"  --session-id ID       the session of the top-level findings\n"
	"  --gap-ratio R         gaps below this share of the device are not looked at (0.05)\n"
	"  --gap-zscore Z        how far out a transient spike is (2.0)\n"
	"  --gap-r2 R            how straight a persistent drift is (0.6)\n"
	"  --gap-fragmentation R what share of reserved memory is unused (0.3)\n"
	"  --issue-states FILE   JSON object: fingerprint id to open, resolved, ignored or regressed\n";

struct settings {
	struct sl_emit_options emit;
	const char *session_id, *states_file, *output;
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
		{"issue-states", required_argument, NULL, 'i'}, {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct sl_gap_thresholds *t = &s->emit.thresholds;
	bool ok = true;

	optind = 0;
	for (int o; ok && (o = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
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
		case 'o':
			s->output = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return SL_EXIT_FINE;
		default:
			ok = false;
		}
	}
	if (ok && (optind + 1 == argc || (optind < argc && (s->json || s->output))))
		return -1;
	fputs(ok && optind < argc ? "stormlog-analyze: several paths need -o DIR\n" : usage, stderr);
	return SL_EXIT_USAGE;
}

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
	sl_json_array(j, "devices");
	sl_json_end(j);
	sl_json_end(j);
}

static void write_report(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "schema", "stormlog.report");
	sl_json_int(j, "schema_version", 1);
	write_run(j, t);
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
}

static int print_json(const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	write_report(j, t, options);
	sl_json_newline(j);
	if (sl_json_close(j))
		return SL_EXIT_FINE;
	perror("stormlog-analyze: writing the report");
	return SL_EXIT_UNREADABLE;
}

/* What cannot be written does not change the exit status: the summary was printed. */
static int print_summary(const struct sl_telemetry *t, const struct settings *s, const char *path)
{
	struct sl_arena arena = {0};
	struct sl_folder folder;
	struct stat status;
	const char *output = s->output;
	FILE *file;

	sl_telemetry_summary(stdout, t, &s->emit);
	if (!output && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		output = sl_arena_printf(&arena, "%s/analysis", path);
	if (output && sl_folder_begin(&folder, output)) {
		struct sl_json *j = sl_folder_json(&folder, "report.json", &file);

		write_report(j, t, &s->emit);
		sl_folder_json_close(&folder, j, file, "report.json");
	}
	if (output && sl_folder_end_replacing(&folder))
		printf("\nreport: %s/report.json\n", output);
	else if (output)
		fprintf(stderr, "stormlog-analyze: %s: %s\n", output, strerror(errno));
	sl_arena_free(&arena);
	return SL_EXIT_FINE;
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
		status = s.json ? print_json(t, &s.emit) : print_summary(t, &s, argv[optind]);
	sl_telemetry_free(t);
	sl_arena_free(&arena);
	return status;
}

int sl_telemetry_report(int argc, char **argv)
{
	return run(argc, argv);
}
