/* SPDX-License-Identifier: MIT */
/*
 * The command runs in our process group, so that it sees the terminal and its signals as it would without us.  Signals are
 * forwarded as `timeout --foreground` does: a signal from a process goes to the command too, so that it gets one sent to the
 * whole group twice.  A key of the terminal reaches the whole group, and the command once.  Whoever kills us kills the command.
 */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Finds the commit that is run: from git's files in the working folder, and where these do not say (a checkout without a
 * branch, or no checkout) from the CI system's variables.  It only reads files; it starts no program.
 */

#define TEXT_MAX 512

struct git {
	char commit[72], branch[TEXT_MAX], repository[TEXT_MAX];
};

static FILE *open_file(const char *folder, const char *name)
{
	char path[PATH_MAX + TEXT_MAX];
	struct stat st;
	int file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (file >= 0 && !fstat(file, &st) && S_ISREG(st.st_mode))
		return fdopen(file, "r");
	if (file >= 0)
		close(file);
	return NULL;
}

/* The first line of a file; "": there is none. */
static bool read_line(const char *folder, const char *name, char *line, size_t size)
{
	FILE *file = open_file(folder, name);
	bool got = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (!got)
		*line = 0;
	line[strcspn(line, "\r\n")] = 0;
	return *line;
}

static bool is_commit(const char *text)
{
	size_t size = strspn(text, "0123456789abcdef");

	return (size == 40 || size == 64) && (!text[size] || text[size] == ' ');
}

/* Looks up a reference in packed-refs, where git keeps many in one file. */
static bool find_packed(const char *common, const char *reference, char *line, size_t size)
{
	FILE *file = open_file(common, "packed-refs");
	bool found = false;

	while (file && !found && fgets(line, (int)size, file)) {
		line[strcspn(line, "\r\n")] = 0;
		found = is_commit(line) && strchr(line, ' ') && !strcmp(strchr(line, ' ') + 1, reference);
	}
	if (file)
		fclose(file);
	return found;
}

/* Reads the path that stands after `prefix` in the file `name`; a relative one counts from the folder. */
static bool follow(const char *folder, const char *name, const char *prefix, char *to, size_t size)
{
	char line[PATH_MAX];
	size_t skip = strlen(prefix);
	int length;

	if (!read_line(folder, name, line, sizeof(line)) || strncmp(line, prefix, skip) != 0)
		return false;
	length = line[skip] == '/' ? snprintf(to, size, "%s", line + skip) : snprintf(to, size, "%s/%s", folder, line + skip);
	return length > 0 && (size_t)length < size;
}

/* The folder of git's files.  `common` is the main repository's where this is a linked worktree, else the same. */
static bool find_folder(char *folder, char *common)
{
	char at[PATH_MAX], inside[PATH_MAX + 8];
	struct stat st;

	if (!getcwd(at, sizeof(at) - 8))
		return false;
	for (;; *strrchr(at, '/') = 0) {
		snprintf(inside, sizeof(inside), "%s/.git", at);
		if (!stat(inside, &st))
			break;
		if (!strrchr(at, '/'))
			return false;
	}
	if (S_ISDIR(st.st_mode))
		snprintf(folder, PATH_MAX, "%.*s", PATH_MAX - 1, inside);
	else if (!follow(at, ".git", "gitdir: ", folder, PATH_MAX))
		return false;
	if (!follow(folder, "commondir", "", common, PATH_MAX))
		strcpy(common, folder);
	return true;
}

/* The repository is named after its folder. */
static void name_repository(struct git *git, const char *common)
{
	char whole[PATH_MAX], *slash;

	if (!realpath(common, whole))
		return;
	slash = strrchr(whole, '/');
	if (slash && !strcmp(slash, "/.git"))
		*slash = 0;
	slash = strrchr(whole, '/');
	if (slash)
		snprintf(git->repository, sizeof(git->repository), "%.500s", slash + 1);
}

static void ask_folder(struct git *git)
{
	char folder[PATH_MAX], common[PATH_MAX], line[PATH_MAX], reference[TEXT_MAX];

	if (!find_folder(folder, common) || !read_line(folder, "HEAD", line, sizeof(line)))
		return;
	name_repository(git, common);
	if (strncmp(line, "ref: ", 5) == 0) {
		snprintf(reference, sizeof(reference), "%.500s", line + 5);
		if (!strncmp(reference, "refs/heads/", 11))
			snprintf(git->branch, sizeof(git->branch), "%s", reference + 11);
		if (!strncmp(reference, "refs/", 5) && !strstr(reference, "..") &&
		    !read_line(folder, reference, line, sizeof(line)) && !read_line(common, reference, line, sizeof(line)) &&
		    !find_packed(common, reference, line, sizeof(line)))
			return;
	}
	if (is_commit(line))
		snprintf(git->commit, sizeof(git->commit), "%.*s", (int)strspn(line, "0123456789abcdef"), line);
}

/* GitHub, GitLab, Jenkins, Buildkite, CircleCI */
static void ask_environment(char *value, size_t size, const char *const *names)
{
	for (; !*value && *names; names++) {
		const char *text = getenv(*names);

		if (text && strlen(text) < size && !strpbrk(text, "\r\n"))
			strcpy(value, text);
	}
}

/* Adds one line of metadata, unless the user or an outer launcher has set that key. */
static void add(const char *key, const char *value)
{
	const char *before = getenv("STORMLOG_META");
	char *assignment, *joined;
	bool is_set;

	if (!*value || asprintf(&assignment, "\n%s=", key) < 0)
		return;
	if (asprintf(&joined, "\n%s\n%s=%s", before ? before : "", key, value) >= 0) {
		is_set = strstr(joined, assignment) != joined + strlen(joined) - strlen(value) - strlen(assignment);
		if (!is_set)
			setenv("STORMLOG_META", joined + (before && *before ? 1 : 2), 1);
		free(joined);
	}
	free(assignment);
}

/* Adds git.commit, git.branch and git.repository to STORMLOG_META where they are known and not set yet. */
static void tell_git(void)
{
	static const char *const commits[] = {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1", NULL};
	static const char *const branches[] = {"GITHUB_HEAD_REF",
					       "GITHUB_REF_NAME",
					       "CI_COMMIT_REF_NAME",
					       "GIT_BRANCH",
					       "BUILDKITE_BRANCH",
					       "CIRCLE_BRANCH",
					       NULL};
	static const char *const repositories[] = {"GITHUB_REPOSITORY", "CI_PROJECT_PATH", NULL};
	struct git git = {"", "", ""};

	ask_folder(&git);
	ask_environment(git.commit, sizeof(git.commit), commits);
	ask_environment(git.branch, sizeof(git.branch), branches);
	ask_environment(git.repository, sizeof(git.repository), repositories);
	add("git.commit", git.commit);
	add("git.branch", git.branch);
	add("git.repository", git.repository);
}

static sigset_t started_with; /* our signal mask, which is the command's too */

void sl_child_join(const char *name, const char *part, bool first)
{
	const char *rest = getenv(name) ?: "", *before = first ? part : rest, *behind = first ? rest : part;
	char *joined;

	if (asprintf(&joined, "%s%s%s", before, *rest ? ":" : "", behind) < 0)
		return;
	setenv(name, joined, 1);
	free(joined);
}

/* Our library goes before those already in LD_PRELOAD, which keep their order. */
static void preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");

	if (!before || !strstr(before, library))
		sl_child_join("LD_PRELOAD", library, true);
}

/* What the kernel sends to a process for its own writes. */
static void take_unprinted(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

void sl_child_signals_block(void)
{
	sigset_t set;

	take_unprinted(&set);
	sigprocmask(SIG_BLOCK, &set, &started_with);
}

void sl_child_signals_restore(void)
{
	sigset_t set;

	take_unprinted(&set);
	while (sigtimedwait(&set, NULL, &(const struct timespec){0}) > 0)
		;
	sigprocmask(SIG_SETMASK, &started_with, NULL);
}

int sl_child_exec(const struct sl_launch *run)
{
	int why;

	sl_child_signals_restore();
	preload(run->library);
	/* The agent sets it for AddressSanitizer's shared runtime too, unless the program sets options itself. */
	sl_child_join("ASAN_OPTIONS", "verify_asan_link_order=0", false);
	tell_git();
	setenv("STORMLOG_DIR", run->directory, 1);
	setenv("STORMLOG_LAUNCHER", SL_VERSION, 1);
	if (*run->run_id)
		setenv("STORMLOG_RUN_ID", run->run_id, 1);
	/* NVTX reads the variable once, at the first range; the agent could only set it later. */
	if (run->options.labels != SL_LABELS_OFF)
		setenv("NVTX_INJECTION64_PATH", run->library, 0);
	if (run->dry)
		sl_dry_enter(run);
	else if (run->options.holders)
		sl_dry_hold();
	execvp(run->command[0], run->command);
	why = errno;
	sl_launcher_say("%s: %s", run->command[0], why == ENOENT ? "not found" : strerror(why));
	if (run->dry && sl_dry_is_card(run->command[0]))
		sl_launcher_say("a card follows an equals sign: --dry=%s", run->command[0]);
	return why == ENOENT ? SL_LAUNCH_NOT_FOUND : SL_LAUNCH_NO_EXECUTE;
}

/*
 * True: the signal came to us and not to the command.  The terminal's keys and its new size go to the whole group, a hangup to the
 * leader of the session (ssh -t HOST stormlog-run).  Timers and descriptors that were set up before our exec tell us by signals
 * of the kernel.  A failed write of ours sends us a signal in our own name.
 */
static bool is_for_command(const siginfo_t *info, pid_t child)
{
	static const char to_group[] = {SIGINT, SIGQUIT, SIGWINCH, SIGHUP};
	bool by_kernel = info->si_code == SI_KERNEL;

	if (info->si_signo == SIGCHLD)
		return false;
	if (info->si_code <= 0 && (info->si_pid == getpid() || info->si_pid == child))
		return false;
	if (info->si_signo == SIGHUP && by_kernel && getsid(0) == getpid())
		return true;
	return !by_kernel || !memchr(to_group, info->si_signo, sizeof(to_group)) || getpgid(child) != getpgrp();
}

/* Buries what an earlier program of this process has started, and orphans that come to us as the first process of a container. */
static void bury_others(pid_t child)
{
	siginfo_t ended;
	int status;

	for (;;) {
		ended.si_pid = 0;
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid || ended.si_pid == child)
			return;
		sl_watcher_ended(ended.si_pid);
		if (waitpid(ended.si_pid, &status, 0) == ended.si_pid)
			sl_until_ended(ended.si_pid, status);
	}
}

/* The command's wait status; -1: another part of the process has waited for it. */
static int wait_for(pid_t child, const sigset_t *set)
{
	int status = -1;
	siginfo_t info;
	pid_t got;

	for (;;) {
		bury_others(child);
		got = waitpid(child, &status, WNOHANG);
		if (got == child)
			return status;
		if (got < 0 && errno != EINTR)
			return -1;
		if (sigwaitinfo(set, &info) > 0 && is_for_command(&info, child))
			kill(child, info.si_signo);
	}
}

/* The descriptors and the watchdog of a service are for the process that LISTEN_PID and WATCHDOG_PID name (systemd). */
static void hand_over(pid_t launcher)
{
	static const char *const whose[] = {"LISTEN_PID", "WATCHDOG_PID"};
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (size_t i = 0; i < SL_COUNT(whose); i++)
		if (getenv(whose[i]) && atoi(getenv(whose[i])) == launcher)
			setenv(whose[i], pid, 1);
}

/* SIGKILL is the one signal that we cannot forward. */
static void die_with(pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		raise(SIGKILL);
}

/* Blocked signals reach us even where nohup, or a shell's &, has us ignore them.  Those that stop a job stop us with the group. */
static void block_all(sigset_t *set)
{
	static const int of_jobs[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};

	sigfillset(set);
	for (size_t i = 0; i < SL_COUNT(of_jobs); i++)
		sigdelset(set, of_jobs[i]);
	sigprocmask(SIG_BLOCK, set, NULL);
}

int sl_child_run(const struct sl_launch *run)
{
	struct sigaction chld, plain = {.sa_handler = SIG_DFL};
	pid_t child, launcher = getpid();
	sigset_t set;
	int status;

	if (!sl_until_begin(run))
		return SL_LAUNCH_FAILED << 8;
	sigaction(SIGCHLD, &plain, &chld);
	block_all(&set);
	sl_title_cut(false);
	child = fork();
	if (!child)
		die_with(launcher);
	else if (child < 0 && !run->options.quiet)
		sl_launcher_say("no process can be started beside the command, which runs alone: %s", strerror(errno));
	if (child <= 0) {
		hand_over(launcher);
		sigaction(SIGCHLD, &chld, NULL);
		if (!child)
			sl_until_enter(run);
		_exit(sl_child_exec(run));
	}
	sl_until_watch(run, child);
	sl_close_inherited();
	status = wait_for(child, &set);
	if (status < 0)
		return SL_LAUNCH_FAILED << 8;
	if (sl_until_wait(run))
		status = 0;
	sl_recorded_end(run, child, status);
	return status;
}

void sl_child_end(int status)
{
	struct rlimit none = {0, 0};
	sigset_t set;
	int number;

	if (!WIFSIGNALED(status))
		exit(WEXITSTATUS(status));
	number = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &none); /* only the command's core dump is of interest */
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	fflush(NULL);
	kill(getpid(), number); /* raise() refuses those of the C library's own */
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	exit(128 + number); /* reached only where the signal does not kill */
}
