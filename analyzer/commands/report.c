/* SPDX-License-Identifier: MIT */
/* stormlog-analyze [report] PATH...: the summary on the terminal and analysis/ beside the traces. */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/analyses/alerts.h"
#include "analyzer/analyses/suppress.h"
#include "analyzer/commands/native.h"
#include "analyzer/outputs/output.h"
#include "common/size.h"

static const char usage[] =
	"usage: stormlog-analyze [report] [options] PATH...\n"
	"\n"
	"  -o, --output DIR   where the analysis goes (default: PATH/analysis)\n"
	"      --json         print report.json and write nothing\n"
	"      --run ID|all   of a folder with several runs (default: the newest)\n"
	"  -j, --threads N    processes replayed at once (default: one per core)\n"
	"  -q, --quiet        write the analysis, print nothing\n"
	"      --open         open report.html in a browser\n"
	"      --html-max-bytes SIZE  at most so large (default: 8M)\n"
	"      --telemetry-samples N  in each telemetry sink (default: 2000)\n"
	"      --oom-max-dumps N      newest bundles that are kept (default: 64)\n"
	"      --oom-max-total-mb N   and at most so large together\n"
	"      --oom-buffer-size N    events before an error in its bundle (default: 200)\n"
	"      --suppressions FILE    leaks that are meant, in the syntax of LeakSanitizer (leak:PATTERN)\n"
	"      --clock-skew MS        by how much clocks of hosts may differ (default: 1000)\n"
	"      --alert-warning PERCENT, --alert-critical PERCENT  of the device in use (80, 95)\n"
	"      --alert-jump SIZE      between two samples (100M)\n"
	"      --alert-fragmentation RATIO  of reserved memory, unused (0.3)\n";

struct options {
	struct sl_drive_options drive;
	const char *output;
	char **paths;
	unsigned count;
	uint64_t html_max_bytes;
	struct sl_alert_thresholds alerts;
	struct sl_suppressions suppressions;
	bool json, quiet, open;
};

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

/* Where the analysis goes: -o, or beside the traces. */
static void place(char *folder, size_t size, const struct options *options, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (options->output)
		snprintf(folder, size, "%s", options->output);
	else if (!stat(path, &st) && S_ISDIR(st.st_mode))
		snprintf(folder, size, "%s%sanalysis", path, path[strlen(path) - 1] == '/' ? "" : "/");
	else
		snprintf(folder, size, "%.*sanalysis", slash ? (int)(slash + 1 - path) : 0, path);
}

static int print_json(struct sl_report *report)
{
	bool fine = sl_json_report(report, stdout);

	return fflush(stdout) || !fine ? SL_EXIT_UNREADABLE : SL_EXIT_FINE;
}

/* In the reader's browser; where there is none the path is said. */
static void open_page(const char *folder)
{
	char path[PATH_MAX + 16], real[PATH_MAX];
	const char *browser = getenv("BROWSER");
	char *const argv[] = {(char *)(browser && *browser ? browser : "xdg-open"), real, NULL};
	pid_t child;

	snprintf(path, sizeof(path), "%s/report.html", folder);
	if (!realpath(path, real) || posix_spawnp(&child, argv[0], NULL, NULL, argv, environ))
		fprintf(stderr, "stormlog-analyze: no %s here: open %s in a browser\n", argv[0], path);
}

static int print_summary(struct sl_report *report, const struct options *options, const char *path)
{
	struct sl_text_style style = style_of_terminal();
	char folder[PATH_MAX], why[PATH_MAX + 128];

	place(folder, sizeof(folder), options, path);
	if (sl_outputs_write(report, folder, why, sizeof(why)))
		style.saved = folder;
	else
		fprintf(stderr, "stormlog-analyze: %s; the analysis is not saved (-o DIR names another place)\n", why);
	if (!options->quiet)
		sl_text_report(report, stdout, &style);
	fflush(stdout);
	if (options->open && style.saved)
		open_page(folder);
	return SL_EXIT_FINE;
}

int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_drive_options *options)
{
	switch (sl_drive(report, paths, count, options)) {
	case SL_DRIVE_FINE:
		for (unsigned i = 0; i < report->damage_lines; i++)
			fprintf(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
		return SL_EXIT_FINE;
	case SL_DRIVE_NO_PATH:
		fprintf(stderr, "stormlog-analyze: %s: %s\n", report->path, strerror(errno));
		return SL_EXIT_USAGE;
	case SL_DRIVE_NO_RUN:
		fprintf(stderr, "stormlog-analyze: %s has no run %s; it has:\n", report->path, options->run);
		for (unsigned i = 0; i < report->images.run_count; i++)
			fprintf(stderr, "  %s\n", report->images.runs[i].id);
		return SL_EXIT_USAGE;
	default:
		for (size_t i = 0; i < report->warnings.count; i++)
			fprintf(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
		if (!report->images.image_count)
			fprintf(stderr, "stormlog-analyze: %s is not a trace, a telemetry file or a bundle\n", report->path);
		return SL_EXIT_UNREADABLE;
	}
}

/* The argument of an option: --name=VALUE, --name VALUE, or -nVALUE. */
const char *sl_native_argument(int argc, char **argv, int *at, const char *name, char letter)
{
	size_t size = strlen(name);
	const char *text = argv[*at];

	if (!strncmp(text, name, size) && text[size] == '=')
		return text + size + 1;
	if (letter && text[0] == '-' && text[1] == letter && text[2])
		return text + 2;
	if ((!strcmp(text, name) || (letter && text[0] == '-' && text[1] == letter && !text[2])) && *at + 1 < argc)
		return argv[++*at];
	return NULL;
}

static bool wrong(const char *name, const char *value, const char *like)
{
	fprintf(stderr, "stormlog-analyze: %s %s is not understood; %s is\n", name, value, like);
	return false;
}

static bool read_count(const char *name, const char *value, uint64_t most, uint64_t *count)
{
	char *end;

	errno = 0;
	*count = strtoull(value, &end, 10);
	return (*value >= '0' && *value <= '9' && !*end && !errno && *count && *count <= most) || wrong(name, value, "a number from 1 on");
}

static bool read_number(const char *name, const char *value, double most, double *number)
{
	char *end;

	*number = strtod(value, &end);
	return (*value && !*end && *number >= 0 && *number <= most) || wrong(name, value, most > 1 ? "80" : "0.3");
}

static bool read_suppressions(struct options *options, const char *path)
{
	unsigned line = 0;

	if (sl_suppressions_read(&options->suppressions, path, &line))
		return true;
	if (errno)
		fprintf(stderr, "stormlog-analyze: %s: %s\n", path, strerror(errno));
	else
		fprintf(stderr, "stormlog-analyze: %s:%u: a line is leak:PATTERN\n", path, line);
	return false;
}

/* Options with a value beyond those of the first screen: 1 taken, 0 another one, -1 wrong. */
static int parse_setting(int argc, char **argv, int *at, struct options *options)
{
	struct sl_drive_options *drive = &options->drive;
	struct sl_alert_thresholds *alerts = &options->alerts;
	const char *value;
	uint64_t count = 0;
	bool fine;

	if ((value = sl_native_argument(argc, argv, at, "--telemetry-samples", 0))) {
		fine = read_count("--telemetry-samples", value, 1000000, &count);
		drive->samples = (unsigned)count;
	} else if ((value = sl_native_argument(argc, argv, at, "--oom-max-dumps", 0))) {
		fine = read_count("--oom-max-dumps", value, 1000000, &count);
		drive->oom_max_dumps = (unsigned)count;
	} else if ((value = sl_native_argument(argc, argv, at, "--oom-max-total-mb", 0))) {
		fine = read_count("--oom-max-total-mb", value, 1 << 30, &count);
		drive->oom_max_bytes = count << 20;
	} else if ((value = sl_native_argument(argc, argv, at, "--oom-buffer-size", 0))) {
		fine = read_count("--oom-buffer-size", value, 1000000, &count);
		drive->oom_events = (unsigned)count;
	} else if ((value = sl_native_argument(argc, argv, at, "--clock-skew", 0))) {
		fine = read_count("--clock-skew", value, 1000000000, &count);
		drive->skew_ns = count * 1000000;
	} else if ((value = sl_native_argument(argc, argv, at, "--suppressions", 0))) {
		fine = read_suppressions(options, value);
	} else if ((value = sl_native_argument(argc, argv, at, "--alert-warning", 0))) {
		fine = read_number("--alert-warning", value, 100, &alerts->warning_percent);
	} else if ((value = sl_native_argument(argc, argv, at, "--alert-critical", 0))) {
		fine = read_number("--alert-critical", value, 100, &alerts->critical_percent);
	} else if ((value = sl_native_argument(argc, argv, at, "--alert-fragmentation", 0))) {
		fine = read_number("--alert-fragmentation", value, 1, &alerts->fragmentation);
	} else if ((value = sl_native_argument(argc, argv, at, "--alert-jump", 0))) {
		fine = sl_size_parse(value, &count) || wrong("--alert-jump", value, "100M");
		alerts->jump_bytes = (int64_t)count;
	} else {
		return 0;
	}
	return fine ? 1 : -1;
}

static bool any_native(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-' && sl_drive_is_native(&argv[i], 1))
			return true;
	return false;
}

/* The exit status, or -1: go on with what was filled. */
static int parse(int argc, char **argv, struct options *options)
{
	const char *value;
	int taken;

	for (int i = 1; i < argc; i++) {
		taken = argv[i][0] == '-' ? parse_setting(argc, argv, &i, options) : 0;
		if (taken < 0)
			return SL_EXIT_USAGE;
		if (taken)
			continue;
		if (argv[i][0] != '-' || !argv[i][1])
			options->paths[options->count++] = argv[i];
		else if (!strcmp(argv[i], "--json"))
			options->json = true;
		else if (!strcmp(argv[i], "--open"))
			options->open = true;
		else if ((value = sl_native_argument(argc, argv, &i, "--html-max-bytes", 0))) {
			if (!sl_size_parse(value, &options->html_max_bytes)) {
				fprintf(stderr, "stormlog-analyze: --html-max-bytes %s is not a size; 8M is one\n", value);
				return SL_EXIT_USAGE;
			}
		} else if (!strcmp(argv[i], "-q") || !strcmp(argv[i], "--quiet"))
			options->quiet = true;
		else if ((value = sl_native_argument(argc, argv, &i, "--output", 'o')))
			options->output = value;
		else if ((value = sl_native_argument(argc, argv, &i, "--run", 0)))
			options->drive.run = value;
		else if ((value = sl_native_argument(argc, argv, &i, "--threads", 'j')))
			options->drive.threads = (unsigned)atoi(value);
		else {
			bool help = !strcmp(argv[i], "--help");

			if (!help)
				fprintf(stderr, "stormlog-analyze: unknown option %s\n", argv[i]);
			fputs(usage, help ? stdout : stderr);
			return help ? SL_EXIT_FINE : SL_EXIT_USAGE;
		}
	}
	if (options->count && (options->count == 1 || options->output || options->json))
		return -1;
	fputs(options->count ? "stormlog-analyze: several paths need -o DIR\n" : usage, stderr);
	return SL_EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	struct options options = {.alerts = sl_alert_defaults};
	struct sl_report report = {0};
	int status;

	if (argc > 1 && strcmp(argv[1], "--help") && !any_native(argc, argv))
		return sl_telemetry_report(argc, argv);
	options.paths = calloc((size_t)argc + 1, sizeof(*options.paths));
	if (!options.paths)
		abort();
	options.drive.alerts = &options.alerts;
	options.drive.suppressions = &options.suppressions;
	status = parse(argc, argv, &options);
	if (status < 0) {
		status = sl_native_open(&report, options.paths, options.count, &options.drive);
		report.html_max_bytes = options.html_max_bytes;
		if (status == SL_EXIT_FINE)
			status = options.json ? print_json(&report) : print_summary(&report, &options, options.paths[0]);
		sl_report_free(&report);
	}
	sl_suppressions_free(&options.suppressions);
	free(options.paths);
	return status;
}

const struct sl_command sl_command_report = {"report", "who held the memory (default)", run};
