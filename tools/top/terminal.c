/* SPDX-License-Identifier: MIT */
/* The terminal, its size and its signals.  A file of its own, because the header of terminfo defines words such as "lines". */
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "common/base.h"
#include "tools/top/terminal.h"

#define SIDE_MAX 1000 /* lines or columns: curses counts them in a short, and has every cell in memory several times */

static volatile sig_atomic_t ended, resized;
static int woken; /* an eventfd: a signal may come just before keys are waited for */

bool sl_top_terminal_fits(void)
{
	int unknown;

	return setupterm(NULL, STDOUT_FILENO, &unknown) == OK && tigetstr("cup");
}

static bool measure(struct winsize *size)
{
	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, size) && size->ws_row && size->ws_col;
}

static int within(int side)
{
	return side < SIDE_MAX ? side : SIDE_MAX;
}

static void fit(void)
{
	struct winsize size;

	if (measure(&size))
		resizeterm(within(size.ws_row), within(size.ws_col));
}

static void note(int number)
{
	*(number == SIGWINCH ? &resized : &ended) = true;
	eventfd_write(woken, 1);
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};

/* Curses takes those that nobody has taken: it would end with status 1, and follow any size. */
static void take_signals(const bool *ignored)
{
	struct sigaction action = {.sa_handler = note};

	for (size_t i = 0; i < SL_COUNT(numbers); i++) {
		action.sa_flags = SA_RESTART | (numbers[i] == SIGWINCH ? 0 : (int)SA_RESETHAND);
		if (!ignored[i])
			sigaction(numbers[i], &action, NULL);
	}
}

bool sl_top_terminal_begin(void)
{
	struct winsize size;
	struct sigaction before;
	bool too_large = measure(&size) && (size.ws_row > SIDE_MAX || size.ws_col > SIDE_MAX), ignored[SL_COUNT(numbers)];

	for (size_t i = 0; i < SL_COUNT(numbers); i++)
		ignored[i] = sigaction(numbers[i], NULL, &before) || before.sa_handler == SIG_IGN;
	woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (too_large)
		use_env(FALSE); /* the size that terminfo knows */
	if (!initscr())		/* in the background it is stopped here, and a signal ends it as it ends any program */
		return false;
	take_signals(ignored);
	if (too_large)
		fit();
	return true;
}

bool sl_top_terminal_wait(int milliseconds)
{
	struct pollfd from[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = woken, .events = POLLIN}};
	eventfd_t signals;
	bool gone = poll(from, SL_COUNT(from), milliseconds) > 0 && from[0].revents & (POLLHUP | POLLERR | POLLNVAL);

	eventfd_read(woken, &signals);
	if (resized) {
		resized = false;
		fit();
	}
	return !gone && !ended;
}
