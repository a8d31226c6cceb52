/* SPDX-License-Identifier: MIT */
/*
 * The command runs in our process group, so that it sees the terminal and its signals as it would without us.  Signals are
 * forwarded as `timeout --foreground` does: a signal from a process goes to the command too, so that it gets one sent to the
 * whole group twice.  A key of the terminal reaches the whole group, and the command once.  Whoever kills us kills the command.
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static sigset_t started_with; /* our signal mask, which is the command's too */

/* Our library goes before those already in LD_PRELOAD, which keep their order. */
static void preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *joined;

	if (before && strstr(before, library))
		return;
	if (asprintf(&joined, "%s%s%s", library, before && *before ? ":" : "", before ? before : "") < 0)
		return;
	setenv("LD_PRELOAD", joined, 1);
	free(joined);
}

/* The agent sets the same option for AddressSanitizer's shared runtime, unless the program sets options itself. */
static void need_not_be_first(void)
{
	static const char option[] = "verify_asan_link_order=0";
	const char *before = getenv("ASAN_OPTIONS");
	char *joined;

	if (asprintf(&joined, "%s%s%s", before ? before : "", before && *before ? ":" : "", option) < 0)
		return;
	setenv("ASAN_OPTIONS", joined, 1);
	free(joined);
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
	need_not_be_first();
	sl_git_tell();
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
	sl_inherited_close();
	status = wait_for(child, &set);
	if (status < 0)
		return SL_LAUNCH_FAILED << 8;
	if (sl_until_wait(run))
		status = 0;
	sl_ended_tell(run, child, status);
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
