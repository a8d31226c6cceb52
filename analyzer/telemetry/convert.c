/* SPDX-License-Identifier: MIT */
/* stormlog-analyze convert: any telemetry file to V3 JSON lines. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../commands.h"
#include "record.h"
#include "session_id.h"
#include "source.h"

struct conversion {
	struct sl_record_rules rules;
	struct sl_json *out;
	struct sl_arena arena;
	const char *file;
	bool all;
};

static void report(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	struct conversion *c = context;

	(void)loss;
	fprintf(stderr, "%s:%u: %s\n", file, line, reason);
	c->all = false;
}

static void convert_record(void *context, const struct sl_value *raw, uint32_t line)
{
	struct conversion *c = context;
	struct sl_record record;
	struct sl_record_error error;

	if (sl_record_normalize(&c->arena, raw, &c->rules, &record, &error)) {
		sl_record_write(c->out, NULL, &record);
		sl_json_newline(c->out);
	} else {
		report(c, SL_SOURCE_RECORD, c->file, line, error.reason);
	}
	sl_arena_reset(&c->arena);
}

static const char usage[] =
	"usage: stormlog-analyze convert [--session-id ID | --file-session] [--strict] FILE...\n"
	"\n"
	"Write every telemetry record of the files as a V3 JSON line to stdout.\n"
	"\n"
	"  --session-id ID  the session of records that name none\n"
	"  --file-session   one made-up session for the nameless records of each file, instead of one for each record\n"
	"  --strict         refuse records of the oldest formats, which have no schema_version\n";

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"session-id", required_argument, NULL, 's'},
		{"file-session", no_argument, NULL, 'f'}, {"strict", no_argument, NULL, 'x'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct conversion c = {.all = true};
	bool file_session = false;

	optind = 0;
	for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (o) {
		case 's':
			c.rules.session_id = optarg;
			break;
		case 'f':
			file_session = true;
			break;
		case 'x':
			c.rules.strict = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return SL_EXIT_FINE;
		default:
			fputs(usage, stderr);
			return SL_EXIT_USAGE;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return SL_EXIT_USAGE;
	}
	for (int i = optind; i < argc; i++) {
		if (access(argv[i], F_OK) != 0) {
			fprintf(stderr, "stormlog-analyze: no such file: %s\n", argv[i]);
			return SL_EXIT_USAGE;
		}
	}
	c.out = sl_json_new(stdout, SL_JSON_PYTHON);
	for (; optind < argc; optind++) {
		struct sl_source_reader reader = {convert_record, report, NULL, &c};
		struct sl_arena names = {0};

		c.file = argv[optind];
		c.rules.collector = sl_source_form(c.file) == SL_SOURCE_CSV ? "legacy.csv" : NULL;
		if (file_session)
			c.rules.session_id = sl_session_id_of_file(&names, c.file);
		sl_source_read(c.file, &reader);
		sl_arena_free(&names);
	}
	sl_arena_free(&c.arena);
	if (!sl_json_close(c.out)) {
		perror("stormlog-analyze: writing the records");
		return SL_EXIT_UNREADABLE;
	}
	return c.all ? SL_EXIT_FINE : SL_EXIT_UNREADABLE;
}

const struct sl_command sl_command_convert = {"convert", "telemetry of any version to V3 JSON lines", run};
