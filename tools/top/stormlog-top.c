/* SPDX-License-Identifier: MIT */
/*
 * stormlog-top [DIR...] [-p PID]: shows on a terminal what running programs hold.  It reads files only; the programs do not
 * notice.
 */
#include <curses.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arguments.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/sandbox.h"
#include "common/now.h"
#include "common/standard.h"
#include "tools/top/terminal.h"
#include "tools/top/top.h"

/*
 * Writes report.html for this moment: stormlog-analyze makes it, in the current folder, while the screen goes on.  Once this
 * program reads traces it may start no other program, so a child that was forked before does.
 */

#define NAMES_MAX (64 << 10) /* bytes for the names of all traces */

/* The analyzer beside this program, installed or built; else the one in PATH. */
static void analyzer(char *path, size_t size)
{
	static const char *const places[] = {"stormlog-analyze", "../../analyzer/stormlog-analyze"};
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[length > 0 ? length : 0] = 0;
	if (strrchr(own, '/'))
		*strrchr(own, '/') = 0;
	for (size_t i = 0; i < SL_COUNT(places); i++) {
		snprintf(path, size, "%s/%s", own, places[i]);
		if (!access(path, X_OK))
			return;
	}
	snprintf(path, size, "stormlog-analyze");
}

/* The child, which reads no trace.  It receives the names of traces; it knows the folder already. */
_Noreturn static void write_pages(int line)
{
	static char names[NAMES_MAX + 1], program[PATH_MAX + 40], folder[64], message[160], *argv[NAMES_MAX / 2 + 6];
	ssize_t got;

	analyzer(program, sizeof(program));
	while ((got = read(line, names, NAMES_MAX)) > 0) {
		unsigned at = 0;
		time_t now = time(NULL);
		struct tm local;
		int status = 1;
		pid_t child;

		names[got] = 0;
		strftime(folder, sizeof(folder), "stormlog-page-%Y%m%d-%H%M%S", localtime_r(&now, &local));
		argv[at++] = program;
		argv[at++] = (char *)"report";
		argv[at++] = (char *)"--quiet";
		argv[at++] = (char *)"-o";
		argv[at++] = folder;
		argv[at++] = (char *)"--";
		for (char *name = names; name < names + got; name += strlen(name) + 1)
			argv[at++] = name;
		argv[at] = NULL;
		child = fork();
		if (!child) {
			execvp(program, argv);
			_exit(127);
		}
		if (child > 0)
			waitpid(child, &status, 0);
		snprintf(message, sizeof(message), status ? "%s could not be written" : "%s/report.html is there", folder);
		if (write(line, message, strlen(message)) < 0)
			break;
	}
	_exit(0);
}

/* Asks stormlog-analyze for report.html of this moment.  start: call it before this program gives up its rights. */
static void start_page_maker(struct sl_top *top)
{
	int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	top->page_line = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	if (!fork()) {
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		close(ends[1]);
		write_pages(ends[0]);
	}
	close(ends[0]);
	close(null);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	top->page_line = ends[1];
}

static void ask_for_page(struct sl_top *top)
{
	static char names[NAMES_MAX];
	size_t used = 0;

	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		size_t length = strlen(sl_top_process(top, i)->process.trace->name) + 1;

		if (!sl_top_shown(top, i))
			continue;
		if (used + length > sizeof(names))
			break;
		memcpy(names + used, sl_top_process(top, i)->process.trace->name, length);
		used += length;
	}
	if (!used || top->page_line < 0 || write(top->page_line, names, used) != (ssize_t)used)
		snprintf(top->message, sizeof(top->message), "no page: it has no recording");
	else
		snprintf(top->message, sizeof(top->message), "the page of this moment is being written");
}

static void take_page(struct sl_top *top)
{
	char message[sizeof(top->message)];
	ssize_t got = top->page_line < 0 ? 0 : read(top->page_line, message, sizeof(message) - 1);

	if (got > 0)
		snprintf(top->message, sizeof(top->message), "%.*s", (int)got, message);
}

#define NODE_NS 5000000000ull /* between two searches of the node for recordings */

static const char about[] = "Shows what recorded programs hold while they run. With DIR: the newest run in each DIR, even a\n"
			    "finished one. Without: every running recording on this node that you may read.\n"
			    "\n"
			    "Keys: ? shows them. Exit status: 0 fine, 2 usage, a path that does not exist or no terminal, 4\n"
			    "the help could not be written.";

#define INTO struct sl_top
static const struct sl_option table[] = {
	{"--pid", 'p', "PID", "show this process alone", SL_TO_LONG(pid, 1, INT_MAX)},
	{"--delay", 'd', "SECONDS", "time between two updates, 0.1 to 60 (default: 1)", SL_TO_REAL(interval, 0.1, 60)},
	{"--ascii", 0, NULL, "no character beyond ASCII (so too where the locale is not UTF-8)", SL_TO_FLAG(ascii)},
	SL_OPTION_HELP,
	{0},
};

static struct sl_top_seen *seen_of(struct sl_top *top, unsigned index)
{
	const struct sl_followed *followed = sl_top_process(top, index);

	while (top->seen.count <= index)
		*SL_PUSH(&top->seen) = (struct sl_top_seen){0};
	if (top->seen.item[index].followed != followed) {
		free(top->seen.item[index].mark.sites.item);
		top->seen.item[index] = (struct sl_top_seen){.followed = followed, .marked_ns = top->now_ns};
		sl_live_mark(&top->seen.item[index].mark, followed);
	}
	return &top->seen.item[index];
}

static void mark(struct sl_top *top)
{
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		struct sl_top_seen *seen = seen_of(top, i);

		sl_live_mark(&seen->mark, sl_top_process(top, i));
		seen->marked_ns = top->now_ns;
	}
	snprintf(top->message, sizeof(top->message), "marked: places show what has changed since");
}

/* Reads what was added since the last look. */
static void look(struct sl_top *top, bool search)
{
	if (search && (!*top->paths || top->pid))
		sl_follow_node(top->follow, top->pid);
	sl_follow_poll(top->follow);
	top->now_ns = sl_now_ns(CLOCK_MONOTONIC);
	sl_top_alerts_look(top);
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		struct sl_top_seen *seen = seen_of(top, i);
		struct sl_figures f[TOP_DEVICES];
		unsigned count = sl_figures_of(&sl_top_process(top, i)->process, f, TOP_DEVICES);

		for (unsigned d = 0; d < count; d++) {
			const struct sl_outlook *outlook = sl_watch_outlook(top->watch, sl_top_process(top, i), f[d].device);

			seen->full_in[d] = outlook ? sl_figures_full_in(outlook, &sl_top_process(top, i)->process, &f[d]) : NAN;
		}
	}
	if (top->view == VIEW_FINDINGS)
		sl_top_findings_ask(top);
	sl_top_findings_take(top);
	take_page(top);
}

static void type(struct sl_top *top, int key)
{
	size_t length = strlen(top->filter);

	if (key == '\n' || key == KEY_ENTER) {
		top->filtering = false;
	} else if (key == 27) {
		top->filtering = false;
		top->filter[0] = 0;
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		top->filter[length ? length - 1 : 0] = 0;
	} else if (key >= ' ' && key < 127 && length + 1 < sizeof(top->filter)) {
		top->filter[length] = (char)key;
		top->filter[length + 1] = 0;
	}
}

static void show(struct sl_top *top, enum sl_top_view view)
{
	top->view = view;
	top->at = top->first = 0;
	top->helping = false;
	if (view == VIEW_FINDINGS)
		sl_top_findings_ask(top);
}

static void move_by(struct sl_top *top, int by)
{
	int at = (int)top->at + by;

	top->at = at > 0 ? (unsigned)at : 0; /* drawing the list corrects a number behind its end */
}

/* Switches to the places of the selected line's process. */
static void enter(struct sl_top *top, const struct sl_top_lines *lines)
{
	if (top->at < lines->line.count && lines->line.item[top->at].process != ALL) {
		int process = lines->line.item[top->at].process;

		show(top, VIEW_PLACES);
		top->process = process;
	}
}

static void click(struct sl_top *top, const struct sl_top_lines *lines)
{
	MEVENT event;
	unsigned line;

	if (getmouse(&event) != OK)
		return;
	line = top->first + (unsigned)(event.y > top->body_y ? event.y - top->body_y : 0);
	if (event.bstate & BUTTON4_PRESSED) {
		move_by(top, -3);
	} else if (event.bstate & BUTTON5_PRESSED) {
		move_by(top, 3);
	} else if (event.y == top->tabs_y) {
		if (sl_top_tab_at(event.x) >= 0)
			show(top, (enum sl_top_view)sl_top_tab_at(event.x));
	} else if (event.y >= top->body_y && line < lines->line.count && line == top->at) {
		enter(top, lines);
	} else if (event.y >= top->body_y && line < lines->line.count) {
		top->at = line;
	}
}

/* False: quit. */
static bool press(struct sl_top *top, int key, const struct sl_top_lines *lines)
{
	top->message[0] = 0;
	if (top->filtering) {
		type(top, key);
		return true;
	}
	if (key >= '1' && key < '1' + VIEW_COUNT)
		show(top, (enum sl_top_view)(key - '1'));
	switch (key) {
	case 'q':
	case KEY_F(10):
		return false;
	case '?':
	case 'h':
	case KEY_F(1):
		top->helping = !top->helping;
		break;
	case '\t':
		show(top, (top->view + 1) % VIEW_COUNT);
		break;
	case KEY_BTAB:
		show(top, (top->view + VIEW_COUNT - 1) % VIEW_COUNT);
		break;
	case KEY_DOWN:
	case 'j':
		move_by(top, 1);
		break;
	case KEY_UP:
	case 'k':
		move_by(top, -1);
		break;
	case KEY_NPAGE:
		move_by(top, LINES - 8);
		break;
	case KEY_PPAGE:
		move_by(top, 8 - LINES);
		break;
	case KEY_HOME:
		top->at = 0;
		break;
	case KEY_END:
		top->at = (unsigned)lines->line.count;
		break;
	case '\n':
	case KEY_ENTER:
		enter(top, lines);
		break;
	case 27:
		top->process = *top->filter ? top->process : ALL;
		top->filter[0] = 0;
		top->helping = false;
		break;
	case 'm':
		mark(top);
		break;
	case 'w':
		ask_for_page(top);
		break;
	case 's':
	case 'S':
		sl_top_choose(top, key == 's' ? 1 : -1);
		break;
	case '/':
		top->filter[0] = 0;
		top->filtering = true;
		break;
	case ' ':
		top->paused = !top->paused;
		break;
	case '+':
		top->interval = top->interval < 30 ? top->interval * 2 : 60;
		break;
	case '-':
		top->interval = top->interval > 0.2 ? top->interval / 2 : 0.1;
		break;
	case KEY_MOUSE:
		click(top, lines);
		break;
	}
	return true;
}

static void clear_lines(struct sl_top_lines *lines)
{
	for (size_t i = 0; i < lines->line.count; i++)
		free(lines->line.item[i].text);
	lines->line.count = 0;
	lines->header[0] = 0;
}

static void loop(struct sl_top *top)
{
	uint64_t look_ns = 0, search_ns = 0;
	struct sl_top_lines lines = {0};
	bool goes_on = true;

	while (goes_on) {
		uint64_t now = sl_now_ns(CLOCK_MONOTONIC), step = (uint64_t)(top->interval * 1e9);
		int key;

		if (!top->paused && now >= look_ns) {
			look(top, now >= search_ns);
			search_ns = now >= search_ns ? now + NODE_NS : search_ns;
			look_ns = now + step;
		}
		clear_lines(&lines);
		sl_top_draw(top, &lines);
		now = sl_now_ns(CLOCK_MONOTONIC);
		goes_on = sl_top_terminal_wait(top->paused || now >= look_ns ? 100 : (int)((look_ns - now) / 1000000) + 1);
		while (goes_on && (key = getch()) != ERR) /* handle all keys that were typed, then draw once */
			goes_on = press(top, key, &lines);
	}
	clear_lines(&lines);
	free(lines.line.item);
}

static int open_paths(struct sl_top *top)
{
	for (char **path = top->paths; *path; path++) {
		unsigned before = sl_follow_count(top->follow);

		if (!sl_follow_add(top->follow, *path))
			return sl_escape_fail("stormlog-top", 2, "%s: %m", *path);
		if (sl_follow_count(top->follow) == before)
			sl_top_sessions_open(top, *path); /* nothing may have been recorded there yet */
	}
	sl_top_sessions_finish(top);
	if (top->pid && !sl_follow_node(top->follow, top->pid))
		return sl_escape_fail("stormlog-top", 2, "process %ld does not record, or you may not read it", top->pid);
	return 0;
}

/* Landlock would hide other processes' /proc maps; where those are read, only the filter of system calls is used. */
static void confine(const struct sl_top *top)
{
	static const char *const writes[] = {NULL};

	sl_sandbox(NULL, writes, SL_SANDBOX_FORK | (!*top->paths || top->pid ? SL_SANDBOX_PROCESSES : 0));
}

int main(int argc, char **argv)
{
	struct sl_top top = {.process = ALL, .session = ALL, .interval = 1, .findings.fd = -1};
	struct sl_arguments parsed = {"stormlog-top", "[options] [DIR...]", about, table, SL_PATHS_OPTIONAL, argc,
				      argv,	      sl_escape_refuse};
	int status = sl_arguments_parse(&parsed, NULL, &top);

	top.paths = parsed.paths;
	if (status >= 0)
		return sl_standard_told("stormlog-top", status, 4);
	signal(SIGXFSZ, SIG_IGN); /* a pack that cannot be unpacked is then an error */
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	top.ascii = top.ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return sl_escape_fail("stormlog-top", 2, "needs a terminal; for scripts there is stormlog-analyze monitor");
	if (!sl_top_terminal_fits())
		return sl_escape_fail("stormlog-top", 2,
				      "this terminal cannot place text (TERM); for scripts there is stormlog-analyze monitor");
	start_page_maker(&top);
	confine(&top);
	top.follow = sl_follow_new();
	status = open_paths(&top);
	if (!status) {
		set_escdelay(25);
		if (!sl_top_terminal_begin())
			return 2;
		timeout(0);
		cbreak();
		noecho();
		keypad(stdscr, TRUE);
		curs_set(0);
		mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
		mouseinterval(0); /* report a press at once, without waiting for a click */
		loop(&top);
		endwin();
	}
	sl_top_findings_end(&top);
	for (size_t i = 0; i < top.seen.count; i++)
		free(top.seen.item[i].mark.sites.item);
	free(top.seen.item);
	free(top.findings.text);
	free(top.findings.output);
	sl_top_past_free(&top);
	sl_follow_free(top.follow);
	sl_arguments_free(&parsed);
	return status;
}
