/* SPDX-License-Identifier: MIT */
/* stormlog-analyze validate: say what in telemetry files is not as it should be, write nothing. */
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "../commands.h"
#include "record.h"
#include "source.h"

struct validation {
	struct sl_record_rules rules;
	struct sl_arena arena;
	const char *file;
	bool valid;
};

static void report(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	struct validation *v = context;

	(void)loss;
	fprintf(stderr, "%s:%u: %s\n", file, line, reason);
	v->valid = false;
}

/* A record with a version must be complete as it stands; an older one must convert. */
static void check_record(void *context, const struct sl_value *raw, uint32_t line)
{
	struct validation *v = context;
	struct sl_record record;
	struct sl_record_error error;
	bool ok = sl_value_get(raw, "schema_version") ? sl_record_validate(raw, &error)
						       : sl_record_normalize(&v->arena, raw, &v->rules, &record, &error);

	if (!ok)
		report(v, SL_SOURCE_RECORD, v->file, line, error.reason);
	sl_arena_reset(&v->arena);
}

static const char usage[] =
	"usage: stormlog-analyze validate [--strict] PATH...\n"
	"\n"
	"Check telemetry files, one line for each thing that is wrong.\n"
	"\n"
	"  --strict  records of the oldest formats, which have no schema_version, are wrong too\n";

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"strict", no_argument, NULL, 'x'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct validation v = {.valid = true};

	optind = 0;
	for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (o == 'x') {
			v.rules.strict = true;
			continue;
		}
		fputs(usage, o == 'h' ? stdout : stderr);
		return o == 'h' ? SL_EXIT_FINE : SL_EXIT_USAGE;
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return SL_EXIT_USAGE;
	}
	for (; optind < argc; optind++) {
		struct sl_source_reader reader = {check_record, report, NULL, &v};

		v.file = argv[optind];
		if (access(v.file, F_OK) != 0) {
			fprintf(stderr, "stormlog-analyze: no such file: %s\n", v.file);
			return SL_EXIT_USAGE;
		}
		sl_source_read(v.file, &reader);
	}
	sl_arena_free(&v.arena);
	return v.valid ? SL_EXIT_FINE : SL_EXIT_UNREADABLE;
}

const struct sl_command sl_command_validate = {"validate", "check telemetry files, sinks and bundles", run};
