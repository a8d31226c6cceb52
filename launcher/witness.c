/* SPDX-License-Identifier: MIT */
/*
 * A signal does not say whether it was sent to one process or to a group.  The witness is one more process of the group, with
 * every signal blocked.  If it has received a signal too, that was sent to the group, and the command has it already.  While we
 * are stopped with the command, the witness wakes us when the command goes on or ends: whoever caused that may not know of us.
 * What we tell it goes through a socket: a signal's value needs room in the user's queue (ulimit -i), its number never does.
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/process/procfile.h"

#define CALL	    SIGRTMAX /* says that the socket holds words; Linux delivers it after whatever else is pending */
#define FRESH_S	    5	     /* seconds; an older sighting belongs to another signal */
#define ASKED	    5	     /* times the witness is asked: a sender that signals one process after the other may reach us first */
#define AGAIN_MS    20
#define STOPPED_MS  1000
#define STOPPED_MAX 5	      /* times it is sent SIGCONT; a debugger may hold it */
#define LOOK_NS	    100000000 /* between looks at a command that is stopped */

static pid_t witness = -1;
/* Between us and the witness: a signal's number asks for it, minus a process id names who is stopped, 0 ends that. */
static int line = -1;

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* What the witness knows. */
static struct {
	pid_t launcher, stopped;
	time_t seen[_NSIG];
	unsigned times[_NSIG];
} view;

static void count(int number, const siginfo_t *info)
{
	if (info->si_code <= 0 && info->si_pid == view.launcher)
		return; /* it calls us, or has us go on */
	if (number == CALL && !info->si_pid)
		return; /* the kernel had no room to say who calls */
	view.seen[number] = now_s();
	view.times[number]++;
}

static void answer(int asked)
{
	char saw = view.times[asked] && now_s() - view.seen[asked] < FRESH_S;

	view.times[asked] = saw && asked >= SIGRTMIN ? view.times[asked] - 1 : 0; /* of the others two that wait are one */
	if (send(line, &saw, 1, MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* A word is answered once all signals are counted that were sent before it. */
static void listen_to_words(const sigset_t *all)
{
	siginfo_t info;

	for (int word, number; recv(line, &word, sizeof(word), MSG_DONTWAIT) == sizeof(word);) {
		while ((number = sigtimedwait(all, &info, &(const struct timespec){0})) > 0)
			count(number, &info);
		if (word > 0)
			answer(word);
		else
			view.stopped = -word;
	}
}

_Noreturn static void watch(pid_t launcher)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	siginfo_t info;
	sigset_t all;

	view.launcher = launcher;
	sigfillset(&all);
	for (;;) {
		int number = sigtimedwait(&all, &info, view.stopped ? &look : NULL);

		if (view.stopped && sl_procfile_state((uint64_t)view.stopped) != 'T')
			kill(launcher, SIGCONT); /* again and again: it may not have stopped yet */
		if (number > 0)
			count(number, &info);
		if (number == CALL)
			listen_to_words(&all);
	}
}

void sl_witness_start(void)
{
	pid_t launcher = getpid();
	sigset_t all, before;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	witness = fork();
	line = ends[!witness];
	close(ends[!!witness]);
	if (!witness) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != launcher)
			_exit(0);
		sl_inherited_close();
		sl_title_cut(true);
		prctl(PR_SET_NAME, "signal-witness"); /* who kills the launcher by name is not to hit it too */
		watch(launcher);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool tell(int word)
{
	return send(line, &word, sizeof(word), MSG_NOSIGNAL) == sizeof(word) && !kill(witness, CALL);
}

static bool ask(int number)
{
	struct pollfd answered = {.fd = line, .events = POLLIN};
	char saw = 0;

	if (!tell(number))
		return false;
	/* A stop of the whole group has stopped the witness too. */
	for (unsigned told = 0; !poll(&answered, 1, STOPPED_MS); told++) {
		if (told == STOPPED_MAX) {
			kill(witness, SIGKILL);
			close(line);
			witness = -1;
			return false;
		}
		kill(witness, SIGCONT);
	}
	while (read(line, &saw, 1) < 0 && errno == EINTR)
		;
	return saw;
}

/* True: one more of the number waits for us, or comes within the time. */
static bool comes_again(int number, int wait_ms)
{
	struct pollfd more = {.events = POLLIN};
	sigset_t one;
	bool comes;

	sigemptyset(&one);
	sigaddset(&one, number);
	more.fd = signalfd(-1, &one, SFD_CLOEXEC);
	comes = poll(&more, 1, wait_ms) > 0;
	if (more.fd >= 0)
		close(more.fd);
	return comes;
}

/*
 * A signal to the group reaches its newest process first, so the witness before us: where one more waits and the witness has seen
 * none, neither was the group's.
 */
bool sl_witness_saw(int number, bool queued)
{
	bool saw = false, last = queued;

	for (unsigned i = 0; witness > 0 && !saw && i < ASKED; i++) {
		last = last || comes_again(number, i ? AGAIN_MS : 0);
		saw = ask(number);
		if (last)
			break;
	}
	return saw;
}

bool sl_witness_watches(void)
{
	return witness > 0;
}

void sl_witness_wake(pid_t child)
{
	if (witness > 0)
		tell(-child);
}

void sl_witness_ended(pid_t pid)
{
	if (pid != witness)
		return;
	witness = -1;
	close(line);
}

void sl_witness_end(void)
{
	if (witness <= 0)
		return;
	kill(witness, SIGKILL);
	waitpid(witness, NULL, 0);
	close(line);
}
