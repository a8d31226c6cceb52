/* SPDX-License-Identifier: MIT */
/*
 * The command runs in our process group, so that it sees the terminal and its signals as it would without us.
 * A signal sent to the group reaches both, and only the command acts on it; a signal that others send to us alone is passed on
 * to the command; whoever kills us kills it.
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/process/procfile.h"

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
	execvp(run->command[0], run->command);
	why = errno;
	sl_launcher_say("%s: %s", run->command[0], why == ENOENT ? "not found" : strerror(why));
	return why == ENOENT ? SL_LAUNCH_NOT_FOUND : SL_LAUNCH_NO_EXECUTE;
}

/* True: the process is `ancestor` or descends from it. */
static bool is_below(pid_t pid, pid_t ancestor)
{
	for (unsigned levels = 0; pid > 1 && levels < 64; levels++) {
		if (pid == ancestor)
			return true;
		pid = (pid_t)sl_procfile_parent((uint64_t)pid);
	}
	return false;
}

/* Takes a signal that waits already.  False: none of this number does. */
static bool take_waiting(int number, siginfo_t *info)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	return sigtimedwait(&one, info, &(const struct timespec){0}) > 0;
}

/* True: a process has sent it, and si_pid is that process. */
static bool is_sent(const siginfo_t *info)
{
	return info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE;
}

/* True: a write of ours has raised it, such as to a pipe that nobody reads. */
static bool is_of_our_write(const siginfo_t *info)
{
	sigset_t set;

	take_unprinted(&set);
	return is_sent(info) && info->si_pid == getpid() && sigismember(&set, info->si_signo) == 1;
}

/* True: the kernel tells the owner of a descriptor (F_SETOWN) by a signal that was chosen for that (F_SETSIG). */
static bool is_of_descriptor(const siginfo_t *info)
{
	return info->si_code == SI_SIGIO || (info->si_code >= POLL_IN && info->si_code <= POLL_HUP);
}

/*
 * True: what the command or a descendant has sent to the command's parent is for who has started us.  Not where that one is gone,
 * or nobody knows whether the whole group has got it; nor what ends processes and comes from a descendant: it may have taken us for
 * the command, by our name or group.
 */
static bool is_for_starter(const siginfo_t *info, pid_t child, pid_t starter)
{
	static const char ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

	return getppid() == starter && sl_witness_watches() &&
	       (info->si_pid == child || !memchr(ending, info->si_signo, sizeof(ending)));
}

/* True: timeout(1) has started us.  It leads our group, and signals us and then the group; the kernel may make one of the two. */
static bool is_timeout(pid_t starter)
{
	char path[40], name[16];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)starter);
	return starter == getpgrp() && sl_procfile_find(path, "Name:", name, sizeof(name)) && !strcmp(name, "timeout");
}

/*
 * Whose a signal is that came to us, where it has not had it already; 0: nobody's.  The kernel tells one process that its terminal
 * is gone, the leader of its session, or that a descriptor is ready, its owner.  A command that has left the group does without the
 * group's signals, but as a leader, which we are in its place, it could not have left.  Who the sender is, is looked up first: it
 * may end at any time.
 */
static pid_t is_for(const siginfo_t *info, pid_t child, pid_t starter)
{
	static const char of_kernel[] = {SIGHUP, SIGCONT, SIGIO, SIGURG};
	/* to the leader alone, and in haste: a command that reads its terminal is told of the end there */
	bool of_terminal = info->si_code == SI_KERNEL && info->si_signo == SIGHUP && getsid(0) == getpid();
	bool below = is_sent(info) && is_below(info->si_pid, child);
	bool to_all = !of_terminal && sl_witness_saw(info->si_signo, info->si_code == SI_QUEUE);
	/* one to us and then one to the group: the second came while we asked, and is the one that the witness saw */
	bool to_us_too = to_all && info->si_signo < SIGRTMIN && take_waiting(info->si_signo, NULL);
	bool leads = getpgrp() == getpid();

	to_us_too |= is_sent(info) && info->si_pid == starter && is_timeout(starter);
	if (to_all && (below || getpgid(child) == getpgrp() || (!leads && !to_us_too)))
		return 0;
	if (info->si_code == SI_KERNEL)
		return memchr(of_kernel, info->si_signo, sizeof(of_kernel)) ? child : 0;
	if (!is_sent(info))
		return is_of_descriptor(info) ? child : 0;
	if (below)
		return is_for_starter(info, child, starter) ? starter : 0;
	return info->si_signo == SIGCONT && is_below(info->si_pid, getpid()) ? 0 : child; /* the witness has woken us */
}

/* The kernel takes the word of a process for who has sent a signal, and its value, where it is one of sigqueue(). */
static void pass_on(siginfo_t *info, pid_t to)
{
	if (info->si_code != SI_QUEUE || syscall(SYS_rt_sigqueueinfo, to, info->si_signo, info))
		kill(to, info->si_signo);
}

/*
 * A shell that controls jobs watches us: we stop as the command has.  The SIGCONT that wakes us is passed on.  Where the command
 * has left our group, which may be one without a shell, SIGSTOP alone is sure to stop us.
 */
static void stop_as(int number, pid_t child)
{
	sigset_t one;

	if (getpgid(child) != getpgrp())
		number = SIGSTOP;
	sigemptyset(&one);
	sigaddset(&one, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
}

/* Buries what an earlier program of this process has started, and whom we inherit as the first process of a pid namespace. */
static void bury_others(pid_t child)
{
	siginfo_t ended;

	for (;;) {
		ended.si_pid = 0;
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid || ended.si_pid == child)
			return;
		sl_witness_ended(ended.si_pid);
		sl_watcher_ended(ended.si_pid);
		waitpid(ended.si_pid, NULL, 0);
	}
}

/*
 * True: somebody has continued us, who have stopped with the whole group, and means the command.  SIGCONT waits behind the SIGCHLD
 * that tells of the command's stop, and to stop now would discard it.
 */
static bool is_continued(pid_t child, pid_t starter)
{
	siginfo_t info;
	pid_t to = take_waiting(SIGCONT, &info) ? is_for(&info, child, starter) : 0;

	if (to > 0)
		pass_on(&info, to);
	return to == child;
}

/* False: the child has ended, and *status says how. */
static bool child_goes_on(pid_t child, pid_t starter, int *status)
{
	pid_t got;

	bury_others(child);
	while ((got = waitpid(child, status, WNOHANG | WUNTRACED)) > 0) {
		if (!WIFSTOPPED(*status))
			return false;
		if (is_continued(child, starter))
			continue;
		sl_witness_wake(child);
		stop_as(WSTOPSIG(*status), child);
		sl_witness_wake(0);
	}
	return got == 0 || errno == EINTR;
}

/* The command's wait status; -1: somebody else has waited for it. */
static int wait_for(const struct sl_launch *run, pid_t child, pid_t starter, const sigset_t *set)
{
	int status = -1;
	siginfo_t info;

	while (child_goes_on(child, starter, &status)) {
		int number = sl_outside_wait(run, set, &info);
		bool of_children = number == SIGCHLD && info.si_code > 0;
		pid_t to = number > 0 && !of_children && !is_of_our_write(&info) ? is_for(&info, child, starter) : 0;

		if (to > 0)
			pass_on(&info, to);
	}
	return WIFEXITED(status) || WIFSIGNALED(status) ? status : -1;
}

/*
 * True: after unshare -p the next process is the first of a pid namespace, which ends with it.  That is to be the command's child.
 * Until there is one the link cannot be read.
 */
static bool has_new_namespace(void)
{
	static const char children[] = "/proc/self/ns/pid_for_children";
	char ours[64], theirs[64];
	ssize_t length = readlink("/proc/self/ns/pid", ours, sizeof(ours));
	struct stat unused;

	return length > 0 && !lstat(children, &unused) &&
	       (readlink(children, theirs, sizeof(theirs)) != length || memcmp(ours, theirs, (size_t)length));
}

#define TIMERS	      3 /* ITIMER_REAL, ITIMER_VIRTUAL and ITIMER_PROF are 0 to 2 */
#define RESET_ON_FORK 1 /* linux/sched.h, SCHED_FLAG_RESET_ON_FORK */

/* What survives exec but not fork. */
struct outlives {
	struct itimerval timers[TIMERS]; /* alarm() and others */
	pid_t launcher;			 /* the process that sd_listen_fds() means */
	int adopts;			 /* orphans come to it */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		uint64_t rest[12];
	} scheduling; /* sched_getattr(2) */
};

static void take(struct outlives *all)
{
	all->launcher = getpid();
	for (int i = 0; i < TIMERS; i++)
		setitimer(i, &(struct itimerval){0}, &all->timers[i]);
	prctl(PR_GET_CHILD_SUBREAPER, &all->adopts);
	if (syscall(SYS_sched_getattr, 0, &all->scheduling, sizeof(all->scheduling), 0))
		all->scheduling.flags = 0;
}

static void hand_over(const struct outlives *all)
{
	static const char *const whose[] = {"LISTEN_PID", "WATCHDOG_PID"};
	char pid[16];

	for (int i = 0; i < TIMERS; i++)
		setitimer(i, &all->timers[i], NULL);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (unsigned i = 0; i < sizeof(whose) / sizeof(*whose); i++)
		if (getenv(whose[i]) && atoi(getenv(whose[i])) == all->launcher)
			setenv(whose[i], pid, 1);
	prctl(PR_SET_CHILD_SUBREAPER, all->adopts || all->launcher == 1);
	if (all->scheduling.flags & RESET_ON_FORK)
		syscall(SYS_sched_setattr, 0, &all->scheduling, 0);
}

/* SIGKILL is the one signal that we cannot pass on. */
static void die_with(pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		raise(SIGKILL);
}

int sl_child_run(const struct sl_launch *run)
{
	struct sigaction chld, plain = {.sa_handler = SIG_DFL};
	struct outlives all = {0};
	pid_t child = -1, starter = getppid();
	bool alone = has_new_namespace();
	sigset_t set;
	int status;

	sigaction(SIGCHLD, &plain, &chld);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL); /* so they reach us even where nohup or a shell's & made us ignore them */
	take(&all);
	sl_title_cut(false);
	if (!alone) {
		sl_outside_begin(run);
		child = fork();
	}
	if (child > 0)
		sl_witness_start(); /* until then a signal to the group comes twice; were it the first, one could be lost */
	if (!child) {
		die_with(all.launcher);
	} else if (child < 0) {
		if (!run->options.quiet)
			sl_launcher_say("no process can be started beside the command, which runs alone: %s",
					alone ? "its pid namespace is new" : strerror(errno));
	}
	if (child <= 0) {
		hand_over(&all);
		sigaction(SIGCHLD, &chld, NULL);
		_exit(sl_child_exec(run));
	}
	sl_inherited_close();
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	status = wait_for(run, child, starter, &set);
	if (status >= 0)
		sl_ended_tell(run, child, status);
	else
		status = SL_LAUNCH_FAILED << 8;
	sl_witness_end();
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
