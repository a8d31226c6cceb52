/* SPDX-License-Identifier: MIT */
#include "agent/launcher/launcher.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/process/process.h"
#include "common/standard.h"
#include "common/text.h"

/* --largest, --against: stormlog-analyze starts this launcher once for each value or environment (analyzer/commands/). */

/* True: each card of the list, which it cuts, can be tried here. */
static bool can_all(const struct sl_launch *run)
{
	struct sl_launch one = *run;
	char *cards = strdup(run->dry), *rest = cards;
	bool can = true;

	one.options.quiet = true;
	while (can && (one.dry = strsep(&rest, ",")))
		can = sl_dry_can(&one);
	free(cards);
	return can;
}

/* What is wrong with the other options, with the name before it; NULL: nothing. */
static const char *why_not(const struct sl_launch *run)
{
	return !run->dry				    ? "goes with --dry=CARD"
	       : run->report || run->gate		    ? "goes without --report and --gate"
	       : run->push || run->watch.count		    ? "goes without --push and --watch"
	       : strchr(run->options.output, '%')	    ? "wants an --output without %"
	       : strchr(run->dry, '%')			    ? "wants a --dry=CARD without %"
	       : run->against && run->largest.count	    ? "goes without --largest"
	       : run->against && strchr(run->dry, ',')	    ? "goes with one card"
	       : run->against && access(run->against, X_OK) ? "wants the bin/python of another environment"
							    : NULL;
}

/* Becomes --largest or --against. Returns the exit status where that failed, and said why. */
static int start_tries(const struct sl_launch *run, char **argv)
{
	const char *name = run->against ? "--against" : "--largest", *why = why_not(run);
	size_t words = (size_t)(run->command - argv), count = 0, left;
	char self[4096], analyzer[4096], other[8192] = "", **to;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (why)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "%s %s", name, why);
	if (length < 0 || !sl_paths_analyzer(analyzer, sizeof(analyzer)))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "stormlog-analyze is not beside stormlog-run, and not in PATH: no %s",
					name);
	self[length] = 0;
	if (!can_all(run))
		return SL_LAUNCH_FAILED;
	for (left = 0; run->command[left];)
		left++;
	to = calloc(words + left + 2 * SL_LARGEST_NAMES + 16, sizeof(*to));
	if (!to)
		return SL_LAUNCH_FAILED;
	to[count++] = analyzer;
	to[count++] = "try";
	to[count++] = "--";
	to[count++] = (char *)run->dry;
	to[count++] = (char *)run->options.output;
	to[count++] = run->options.quiet ? "quiet" : "";
	if (run->against) { /* in the job's PATH, whatever folder it changes to */
		if (*run->against != '/' && getcwd(other, sizeof(other) / 2))
			strcat(other, "/");
		strncat(other, run->against, sizeof(other) / 2 - 1);
	}
	to[count++] = other;
	for (size_t i = 0; i < run->largest.count; i++)
		to[count++] = (char *)run->largest.item[i];
	to[count++] = "--";
	to[count++] = self;
	for (size_t i = 1; i < words; i++)
		if (i + 1 < words || strcmp(argv[i], "--") != 0)
			to[count++] = argv[i];
	for (const char *const *word = (const char *const[]){"--largest=", "--against=", "--quiet", "--", NULL}; *word; word++)
		to[count++] = (char *)*word;
	memcpy(to + count, run->command, left * sizeof(*to));
	sl_child_signals_restore();
	execv(analyzer, to);
	return sl_launcher_fail(SL_LAUNCH_FAILED, "%s: %m", analyzer);
}

int sl_launcher_fail(int status, const char *format, ...)
{
	char line[8192];
	va_list args;
	int length = snprintf(line, sizeof(line), "stormlog-run: ");

	va_start(args, format);
	vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, args);
	va_end(args);
	fprintf(stderr, "%s\n", line);
	return status;
}

/* The folder as the user wrote it, with a slash at its end. */
static const char *shown_folder(const struct sl_launch *run)
{
	static char shown[4096];
	const char *folder = run->options.output;

	snprintf(shown, sizeof(shown), "%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/");
	return shown;
}

/* Makes it absolute, since the command's processes may run in other folders. */
static bool make_absolute(struct sl_launch *run)
{
	const char *folder = run->options.output;
	char cwd[2048] = "";

	if (*folder != '/' && !getcwd(cwd, sizeof(cwd)))
		return sl_launcher_fail(false, "the current directory has no name: %s; give an absolute --output", strerror(errno));
	snprintf(run->directory, sizeof(run->directory), "%s%s%s", cwd, *cwd ? "/" : "", folder);
	return true;
}

/* Makes and tries the run's folder.  Returns NULL, or why nothing can be recorded in it. */
static const char *prepare_folder(const struct sl_launch *run, char *folder, size_t size)
{
	int err = sl_folder_prepare(run, folder, size);

	return !err	      ? NULL
	       : err == EFBIG ? "the limit on file sizes (ulimit -f) is below the 4 MiB of a trace's first files"
			      : strerror(err);
}

static void say_why_nothing(const struct sl_launch *run)
{
	char folder[sizeof(run->directory)], word[4096];
	const char *why = prepare_folder(run, folder, sizeof(folder)); /* the disk may be full by now */

	if (why)
		fprintf(stderr, "stormlog: nothing recorded: %s: %s\n", folder, why);
	else if (run->dry && *sl_dry_missing())
		fprintf(stderr,
			"stormlog: nothing recorded: DRY RUN without an answer: this job asked for %s, and a dry run has CUDA 12 "
			"and 13.  Use a build of the program for one of them.\n",
			sl_dry_missing());
	else if (run->dry)
		fprintf(stderr,
			"stormlog: nothing recorded: DRY RUN without an answer: this job used no GPU.  Did it choose the CPU?\n");
	else
		fprintf(stderr, "stormlog: nothing recorded: no GPU call was seen.  If there was one: stormlog-run --check -- %s\n",
			sl_shell_word(word, sizeof(word), run->command[0]));
}

static bool find_agent(struct sl_launch *run)
{
	const char *why;

	if (!sl_paths_library(run->library, sizeof(run->library)))
		return sl_launcher_fail(false, "libstormlog_preload.so is not beside stormlog-run, and not in ../lib");
	why = sl_link_library(run->library, sizeof(run->library));
	if (why)
		sl_launcher_say("%s: %s", run->library, why);
	return !why;
}

/*
 * Makes a name that a person can read; processes of the run inherit it.  Containers of one host may all have our pid, and one that
 * ended leaves its namespace's number to the next: the milliseconds tell them apart.
 */
static void name_run(struct sl_launch *run)
{
	uint64_t container = sl_procfile_namespace(0);
	struct utsname system;
	char stamp[32];
	struct timespec now;
	struct tm utc;

	if (sl_identity_run_shared())
		return;
	uname(&system);
	clock_gettime(CLOCK_REALTIME, &now);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now.tv_sec, &utc));
	snprintf(run->run_id, sizeof(run->run_id), "%s-%.100s-%d", stamp, system.nodename, (int)getpid());
	if (container && container != SL_PROCFILE_HOST)
		snprintf(run->run_id + strlen(run->run_id), sizeof(run->run_id) - strlen(run->run_id), "-%llu.%03ld",
			 (unsigned long long)container, now.tv_nsec / 1000000);
}

/* False: there is no such command. */
static bool warn_target(const struct sl_launch *run)
{
	char path[4096];
	const char *why;

	if (sl_paths_command(run->command[0], path, sizeof(path)))
		return false; /* exec says why */
	why = sl_target_hinders(path, NULL, 0);
	if (why)
		sl_launcher_say("%s", why);
	return true;
}

/* The run's id as its processes had it, to find their traces. */
static void learn_run(struct sl_launch *run)
{
	if (!*run->run_id)
		sl_identity_run_named(run->run_id, sizeof(run->run_id));
}

#define OOM_SECONDS 5 /* how long the user waits for these lines; after that the command to type is printed instead */

/* Runs stormlog-analyze over this run, with its text on stderr because stdout is the command's.  Returns the worst exit status. */
static int analyze(const struct sl_launch *run, char *verb, char **folders)
{
	int worst = 0, status = 0;
	char analyzer[4096];
	pid_t child;

	if (!sl_paths_analyzer(analyzer, sizeof(analyzer)))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "stormlog-analyze is not beside stormlog-run, and not in PATH: no %s",
					verb);
	for (; *folders; folders++) {
		char *dry = run->dry && !strcmp(verb, "check") ? "--dry" : NULL;
		char *argv[] = {analyzer, verb, "--run", (char *)run->run_id, *folders, dry, NULL};

		child = fork();
		if (!child) {
			if (!strcmp(verb, "oom"))
				alarm(OOM_SECONDS);
			dup2(STDERR_FILENO, STDOUT_FILENO);
			sl_child_signals_restore();
			execv(analyzer, argv);
			_exit(SL_LAUNCH_FAILED);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
			worst = SL_LAUNCH_FAILED;
		else if (WEXITSTATUS(status) > worst)
			worst = WEXITSTATUS(status);
	}
	return worst;
}

#define NOTHING_READABLE 3   /* stormlog-analyze's own status */
#define REFUSED		 124 /* a process that cannot be dry, which said why (dry/refuse.c) */

/* True: the command may never have started.  Its own status may be the same. */
static bool is_maybe_ours(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) >= SL_LAUNCH_FAILED && WEXITSTATUS(status) <= SL_LAUNCH_NOT_FOUND;
}

/*
 * After the command: says what was recorded and, if it failed, why it ran out of memory; makes the report and runs the gate if
 * asked.  Returns the gate's status, 0 where there is no gate.
 */
static int say_recorded(struct sl_launch *run, int status)
{
	int verdict = 0;
	char **folders, path[4096];
	unsigned count;
	uint64_t lost;

	learn_run(run);
	count = sl_recorded_count(run, &folders);
	if (run->dry)
		sl_dry_answered(run, count && !status && !sl_until_missed(run));
	if (!count && is_maybe_ours(status))
		return 0;
	if (!run->options.quiet && !count && !run->warned && !(run->dry && WIFEXITED(status) && WEXITSTATUS(status) == REFUSED))
		say_why_nothing(run);
	else if (!run->options.quiet && count && run->report)
		fprintf(stderr, "stormlog: %u process%s recorded.\n", count, count == 1 ? "" : "es");
	else if (!run->options.quiet && count)
		fprintf(stderr, "stormlog: %u process%s recorded.  stormlog-analyze %s\n", count, count == 1 ? "" : "es",
			sl_shell_word(path, sizeof(path), strchr(run->options.output, '%') ? folders[0] : shown_folder(run)));
	lost = count ? sl_recorded_lost(run) : 0;
	if (lost && !run->options.quiet)
		fprintf(stderr, "stormlog: %" PRIu64 " events were lost, as on a full disk: figures are at least.\n", lost);
	if (count && run->report)
		analyze(run, "report", folders);
	else if (count && status && !run->options.quiet && sl_paths_analyzer(path, sizeof(path)))
		analyze(run, "oom", folders);
	if (count && run->push)
		analyze(run, "push", folders);
	if (run->gate)
		verdict = count ? analyze(run, "check", folders) : NOTHING_READABLE;
	for (char **at = folders; at && *at; at++)
		free(*at);
	free(folders);
	return verdict;
}

int main(int argc, char **argv)
{
	struct sl_launch run = {0};
	/* Only the first rank's launcher prints; one started by another launcher prints nothing. */
	bool first = sl_identity_rank().rank <= 0, found = false;
	char folder[sizeof(run.directory)];
	const char *why;
	int verdict, status;

	sl_standard_hold(O_CLOEXEC); /* the command finds them closed */
	sl_child_signals_block();
	argv = sl_title_take(argc, argv);
	if (!argv)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "%s", strerror(ENOMEM));
	status = sl_flags_parse(&run, argc, argv, first && !getenv("STORMLOG_LAUNCHER"));
	if (status >= 0)
		return sl_standard_told("stormlog-run", status, SL_LAUNCH_FAILED);
	first = first || run.dry; /* the other ranks are absent */
	if (run.check)
		return sl_standard_told("stormlog-run", make_absolute(&run) ? sl_check_run(&run) : SL_LAUNCH_FAILED,
					SL_LAUNCH_FAILED);
	if (!run.command[0])
		return sl_launcher_fail(SL_LAUNCH_FAILED, "no command given; as in: stormlog-run -- python train.py");
	if (!make_absolute(&run) || !find_agent(&run))
		return SL_LAUNCH_FAILED;
	if (run.largest.count || run.against)
		return prepare_folder(&run, folder, sizeof(folder)) ? SL_LAUNCH_FAILED : start_tries(&run, argv);
	if (run.dry && !sl_dry_begin(&run))
		return SL_LAUNCH_FAILED;
	name_run(&run);
	if (first && !run.options.quiet)
		found = warn_target(&run);
	/* Nothing to do meanwhile or afterwards: exec the command, so that it has its starter's signals without us. */
	if (!run.dry && (!first || (run.options.quiet && !run.report && !run.gate && !run.push && !run.watch.count)))
		return sl_child_exec(&run);
	why = prepare_folder(&run, folder, sizeof(folder));
	run.warned = why && first && !run.options.quiet;
	if (run.warned)
		sl_launcher_say("%s: %s: there will be no recording; choose another folder with --output", folder, why);
	if (run.push && !(getenv("STORMLOG_SERVER") && *getenv("STORMLOG_SERVER")))
		sl_launcher_say("--push needs STORMLOG_SERVER: the run will stay here");
	if (found && !why)
		fprintf(stderr, "stormlog: recording to %s\n", shown_folder(&run));
	if (run.watch.count && !sl_watcher_start(&run))
		return SL_LAUNCH_FAILED;
	status = sl_child_run(&run);
	sl_dry_end(&run);
	sl_watcher_end();
	verdict = say_recorded(&run, status);
	sl_folder_leave(folder);
	if (verdict && WIFEXITED(status) && !WEXITSTATUS(status))
		return verdict;
	sl_child_end(status);
}
