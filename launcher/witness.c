/* SPDX-License-Identifier: MIT */
/*
 * A signal does not say whether it was sent to one process or to a group.  The witness is one more process of the group, with
 * every signal blocked.  If it has received a signal too, that was sent to the group, and the command has it already.  While we
 * are stopped with the command, the witness wakes us when the command goes on or ends: whoever caused that may not know of us.
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/process/procfile.h"

#define QUESTION    SIGRTMAX	   /* Linux delivers it after whatever else is pending */
#define STOPPED	    (SIGRTMAX - 1) /* its value is the command's process id, then 0 */
#define FRESH_S	    5		   /* seconds; an older sighting belongs to another signal */
#define ASKED	    5 /* times the witness is asked: a sender that signals one process after the other may reach us first */
#define AGAIN_NS    20000000
#define STOPPED_MS  1000
#define STOPPED_MAX 5	      /* times it is sent SIGCONT; a debugger may hold it */
#define LOOK_NS	    100000000 /* between looks at a command that is stopped */

static pid_t witness = -1;
static int answers = -1;

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Gives the witness another name, so that somebody who kills the launcher by name does not hit it too. */
static void hide(const struct sl_launch *run)
{
	char *begin = program_invocation_name, *last = begin;

	for (char **word = run->command; *word; word++)
		last = *word;
	if (last > begin)
		memset(begin, 0, (size_t)(last - begin) + strlen(last));
	prctl(PR_SET_NAME, "signal-witness");
}

_Noreturn static void watch(pid_t launcher, int out)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	time_t seen[_NSIG] = {0};
	unsigned times[_NSIG] = {0};
	siginfo_t info;
	sigset_t all;
	pid_t stopped = 0;

	sigfillset(&all);
	for (;;) {
		int number = sigtimedwait(&all, &info, stopped ? &look : NULL);

		if (stopped && sl_procfile_state((uint64_t)stopped) != 'T')
			kill(launcher, SIGCONT); /* again and again: it may not have stopped yet */
		if (number < 0)
			continue;
		if (info.si_pid != launcher) {
			seen[number] = now_s();
			times[number]++;
		} else if (number == STOPPED) {
			stopped = info.si_value.sival_int;
		} else if (number == QUESTION) {
			int asked = info.si_value.sival_int;
			char saw = times[asked] && now_s() - seen[asked] < FRESH_S;

			times[asked] = saw && asked >= SIGRTMIN ? times[asked] - 1 : 0; /* of the others two that wait are one */
			if (write(out, &saw, 1) < 0)
				_exit(1);
		}
	}
}

void sl_witness_start(const struct sl_launch *run)
{
	pid_t launcher = getpid();
	sigset_t all, before;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	witness = fork();
	if (!witness) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != launcher)
			_exit(0);
		close(ends[0]);
		sl_inherited_close();
		hide(run);
		watch(launcher, ends[1]);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	answers = ends[0];
}

static bool ask(int number)
{
	struct pollfd answer = {.fd = answers, .events = POLLIN};
	char saw = 0;

	if (sigqueue(witness, QUESTION, (union sigval){.sival_int = number}))
		return false;
	for (unsigned told = 0; !poll(&answer, 1, STOPPED_MS); told++) { /* a stop of the whole group has stopped the witness too */
		if (told == STOPPED_MAX) {
			kill(witness, SIGKILL);
			close(answers);
			witness = -1;
			return false;
		}
		kill(witness, SIGCONT);
	}
	while (read(answers, &saw, 1) < 0 && errno == EINTR)
		;
	return saw;
}

bool sl_witness_saw(int number, bool queued)
{
	const struct timespec again = {.tv_nsec = AGAIN_NS};
	bool saw = false;

	for (unsigned i = 0; witness > 0 && !saw && i < (queued ? 1 : ASKED); i++) {
		if (i)
			nanosleep(&again, NULL);
		saw = ask(number);
	}
	return saw;
}

void sl_witness_wake(pid_t child)
{
	if (witness > 0)
		sigqueue(witness, STOPPED, (union sigval){.sival_int = child});
}

void sl_witness_ended(pid_t pid)
{
	if (pid != witness)
		return;
	witness = -1;
	close(answers);
}

void sl_witness_end(void)
{
	if (witness <= 0)
		return;
	kill(witness, SIGKILL);
	waitpid(witness, NULL, 0);
	close(answers);
}
