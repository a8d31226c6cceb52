/* SPDX-License-Identifier: MIT */
/* stormlog-analyze [report] PATH...: the summary on the terminal and analysis/ beside the traces. */
#include <sys/stat.h>

#include "analyzer/base/escape.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/missing.h"

#define FOLDER (PATH_MAX + 16)

/* Names the folder of the analysis: -o, or beside the input; "": none. */
static void name_place(char *folder, const struct sl_report_options *options, char **paths)
{
	const char *path = paths[0], *slash = strrchr(path, '/');
	struct stat st;

	*folder = 0;
	if (options->json || options->oom || stat(path, &st)) /* reading the path will print the error */
		return;
	if (options->output)
		snprintf(folder, FOLDER, "%s", options->output);
	else if (S_ISDIR(st.st_mode))
		snprintf(folder, FOLDER, "%s%sanalysis", path, path[strlen(path) - 1] == '/' ? "" : "/");
	else
		snprintf(folder, FOLDER, "%.*sanalysis", slash ? (int)(slash + 1 - path) : 0, path);
}

static void confine(const struct sl_report_options *options, const struct sl_arguments *parsed, const char *folder)
{
	if (options->open && *folder)
		sl_browser_start(folder);
	if (*folder)
		sl_outputs_prepare();
	sl_begin(&(struct sl_verb_files){.inputs = parsed->paths,
					 .reads = {options->suppressions_file, options->states_file, *folder ? folder : NULL},
					 .writes = {*folder ? folder : NULL},
					 .through = folder,
					 .symbols = parsed->symbols});
}

/* A single file of Python Stormlog has no output folder. */
static bool choose_place(struct sl_destination *place, const char *folder, const struct sl_report_options *options, char **paths,
			 bool native)
{
	struct stat st;

	if (!*folder || (!native && !options->output && !stat(paths[0], &st) && !S_ISDIR(st.st_mode)))
		return true;
	if (sl_destination_choose(place, folder, paths))
		return true;
	sl_escape_print(stderr, "stormlog-analyze: %s\n", place->why);
	return false;
}

static int print_json(struct sl_report *report)
{
	bool fine = sl_json_report(report, stdout);

	return fflush(stdout) || !fine ? SL_EXIT_UNSAVED : SL_EXIT_FINE;
}

static int print_summary(struct sl_report *report, const struct sl_report_options *options, struct sl_destination *place)
{
	struct sl_face_style style = sl_terminal_style();

	style.all = options->all;
	if (sl_outputs_write(report, place))
		style.saved = place->folder;
	if (*place->why)
		sl_escape_print(stderr, "stormlog-analyze: %s%s\n", place->why,
				style.saved ? "" : "; the analysis is not saved (-o DIR names another place)");
	if (!options->quiet)
		sl_screen_report(report, stdout, &style);
	fflush(stdout);
	if (options->open && style.saved)
		sl_browser_open();
	return style.saved ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
}

static void say_missing(void *context, bool damaged, const char *subject, const char *message)
{
	(void)context;
	(void)damaged;
	if (strcmp(message, SL_ABSENT_NEWER) != 0) /* each verb tells it */
		sl_escape_print(stderr, "stormlog-analyze: no allocation failed, but the run is incomplete: %s: %s\n", subject,
				message);
}

static int print_oom(struct sl_report *report)
{
	struct sl_face_style style = sl_terminal_style();
	const struct sl_process *process;

	style.brief = true;
	sl_screen_report(report, stdout, &style);
	if (!sl_report_first_oom(report, &process))
		sl_missing_tell(report, say_missing, NULL);
	return SL_EXIT_FINE;
}

static bool any_native(char **paths)
{
	for (; *paths; paths++)
		if (sl_pipeline_is_native(paths, 1))
			return true;
	return false;
}

static int native_report(struct sl_report_options *options, char **paths, unsigned count, struct sl_destination *place)
{
	struct sl_report report = {0};
	int status;

	options->pipeline.reads_source = !options->no_source;
	status = sl_native_open(&report, paths, count, &options->pipeline);

	report.html_max_bytes = options->html_max_bytes;
	if (status == SL_EXIT_FINE)
		status = options->json	? print_json(&report)
			 : options->oom ? print_oom(&report)
					: print_summary(&report, options, place);
	sl_report_free(&report);
	return status;
}

static int run(struct sl_arguments *parsed)
{
	struct sl_report_options options;
	struct sl_destination place = {0};
	int status = sl_report_options_parse(&options, parsed);
	const char *foreign;
	char folder[FOLDER], lost[256];
	bool native = false;

	if (status < 0) {
		name_place(folder, &options, parsed->paths);
		confine(&options, parsed, folder);
		status = sl_report_options_read(&options);
	}
	if (status < 0)
		native = any_native(parsed->paths);
	if (status < 0 && !native && sl_logs_are(parsed->paths))
		status = sl_logs_report(parsed->paths, &options);
	if (status < 0 && !native && sl_logs_refuse(parsed->paths))
		status = SL_EXIT_UNREADABLE;
	if (status < 0 && parsed->path_count > 1 && !options.output && !options.json)
		status = sl_command_fail(SL_EXIT_USAGE, "several paths need -o DIR");
	foreign = native ? options.only_telemetry : options.only_native;
	if (status < 0 && foreign)
		status = sl_command_fail(SL_EXIT_USAGE, "%s is of %s, and %s is not", foreign,
					 native ? "Stormlog's own files" : "traces", parsed->paths[0]);
	if (status < 0 && !choose_place(&place, folder, &options, parsed->paths, native))
		status = SL_EXIT_USAGE;
	if (status < 0)
		status = (native ? native_report : sl_telemetry_report)(&options, parsed->paths, parsed->path_count, &place);
	if (sl_outputs_lost(lost, sizeof(lost)))
		sl_escape_print(stderr, "stormlog-analyze: %s\n", lost);
	sl_report_options_free(&options);
	return status;
}

const struct sl_command sl_command_report = {"report",
					     "print the summary and write the report (default)",
					     "[report] [options] PATH...",
					     sl_report_about,
					     sl_report_options_table,
					     run};
