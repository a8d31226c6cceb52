/* SPDX-License-Identifier: MIT */
/* stormlog-analyze [report] PATH...: the summary on the terminal and analysis/ beside the traces. */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/confine.h"
#include "analyzer/base/door.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/report_options.h"
#include "analyzer/outputs/output.h"

static struct sl_text_style style_of_terminal(void)
{
	const char *no_colour = getenv("NO_COLOR"), *columns = getenv("COLUMNS"), *term = getenv("TERM");
	struct sl_text_style style = {.columns = 80};
	struct winsize size;
	bool tty = isatty(STDOUT_FILENO);

	setlocale(LC_CTYPE, "");
	style.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	style.colour = tty && !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
	if (columns && atoi(columns) >= 40)
		style.columns = (unsigned)atoi(columns);
	else if (tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 40)
		style.columns = size.ws_col;
	if (style.columns > 120)
		style.columns = 120;
	return style;
}

/* Where the analysis goes: -o, or beside what is read (but not beside a single one of Stormlog's own files). */
static bool choose_place(struct sl_destination *place, const struct sl_report_options *options, char **paths, bool native)
{
	const char *path = paths[0], *slash = strrchr(path, '/');
	char folder[PATH_MAX + 16];
	struct stat st;

	if (stat(path, &st)) /* the reader says so */
		return true;
	if (options->output)
		snprintf(folder, sizeof(folder), "%s", options->output);
	else if (S_ISDIR(st.st_mode))
		snprintf(folder, sizeof(folder), "%s%sanalysis", path, path[strlen(path) - 1] == '/' ? "" : "/");
	else if (!native)
		return true;
	else
		snprintf(folder, sizeof(folder), "%.*sanalysis", slash ? (int)(slash + 1 - path) : 0, path);
	if (sl_destination_choose(place, folder, paths))
		return true;
	sl_door_print(stderr, "stormlog-analyze: %s\n", place->why);
	return false;
}

static int print_json(struct sl_report *report)
{
	bool fine = sl_json_report(report, stdout);

	return fflush(stdout) || !fine ? SL_EXIT_UNSAVED : SL_EXIT_FINE;
}

void sl_open_page(const char *folder)
{
	char path[PATH_MAX + 16], real[PATH_MAX];
	const char *browser = getenv("BROWSER");
	char *const argv[] = {(char *)(browser && *browser ? browser : "xdg-open"), real, NULL};
	pid_t child;
	posix_spawnattr_t attributes;
	sigset_t none, pipe;

	snprintf(path, sizeof(path), "%s/report.html", folder);
	posix_spawnattr_init(&attributes); /* signals as anybody has them */
	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &pipe);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!realpath(path, real) || posix_spawnp(&child, argv[0], NULL, &attributes, argv, environ))
		sl_door_print(stderr, "stormlog-analyze: no %s here: open %s in a browser\n", argv[0], path);
	posix_spawnattr_destroy(&attributes);
}

static int print_summary(struct sl_report *report, const struct sl_report_options *options, struct sl_destination *place)
{
	struct sl_text_style style = style_of_terminal();

	if (sl_outputs_write(report, place))
		style.saved = place->folder;
	if (*place->why)
		sl_door_print(stderr, "stormlog-analyze: %s%s\n", place->why,
			      style.saved ? "" : "; the analysis is not saved (-o DIR names another place)");
	if (!options->quiet)
		sl_text_report(report, stdout, &style);
	fflush(stdout);
	if (options->open && style.saved)
		sl_open_page(style.saved);
	return style.saved ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
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
	int status = sl_native_open(&report, paths, count, &options->pipeline);

	report.html_max_bytes = options->html_max_bytes;
	if (status == SL_EXIT_FINE)
		status = options->json ? print_json(&report) : print_summary(&report, options, place);
	sl_report_free(&report);
	return status;
}

static int run(int argc, char **argv)
{
	struct sl_report_options options;
	struct sl_arguments parsed;
	struct sl_destination place = {0};
	int status = sl_report_options_parse(&options, &parsed, argc, argv);
	bool native = status < 0 && any_native(parsed.paths);
	const char *foreign = native ? options.only_telemetry : options.only_native;

	if (status < 0 && foreign) {
		sl_door_print(stderr, "stormlog-analyze: %s is of %s, and %s is not\n", foreign,
			      native ? "Stormlog's own files" : "traces", parsed.paths[0]);
		status = SL_EXIT_USAGE;
	}
	if (status < 0 && !options.json && !choose_place(&place, &options, parsed.paths, native))
		status = SL_EXIT_USAGE;
	if (status < 0 && !options.open) { /* a browser is another program */
		const char *const writes[] = {place.folder[0] ? place.folder : NULL, NULL};

		sl_confine(writes);
	}
	if (status < 0)
		status = (native ? native_report : sl_telemetry_report)(&options, parsed.paths, parsed.path_count, &place);
	sl_report_options_free(&options);
	sl_arguments_free(&parsed);
	return status;
}

const struct sl_command sl_command_report = {"report", "who held the memory (default)", run};
