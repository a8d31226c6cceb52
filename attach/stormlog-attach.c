/* SPDX-License-Identifier: MIT */
/* stormlog-attach TARGET...: wakes the recordings that sleep in running processes, and puts them back to rest. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "attach/sleeper.h"
#include "common/ringfile.h"

enum { FINE, USAGE = 2, NOTHING = 3, SILENT = 4 };
enum { REST = 256, DURATION, HELP, VERSION };

static const char usage[] =
	"usage: stormlog-attach [options] PID|DIR...\n\n"
	"Wake the recordings of running processes that were started with stormlog-run --asleep: of each PID, or of all that\n"
	"record into DIR.  Returns once they have answered; they then record until they end or are put to rest.\n\n"
	"  -p, --pid PID           as PID\n"
	"      --rest              put them back to rest: their calls are counted, and nothing else is written\n"
	"      --duration SECONDS  stay so long, or until an interrupt, and put them to rest then\n"
	"      --help, --version\n\n"
	"Says `ready` on stderr when all have answered.  Exit status: 0 fine, 2 usage or a target that does not exist,\n"
	"3 no recording there can be woken, 4 one did not answer within 10 s.\n";

struct request {
	bool rest;
	double duration; /* seconds; 0: none */
	struct sl_sleepers sleepers;
	int status;
};

static void say(const char *target, const char *why)
{
	fprintf(stderr, "stormlog-attach: %s: %s\n", target, why);
}

static void fail(struct request *request, int status)
{
	if (request->status == FINE || status < request->status)
		request->status = status;
}

static void add_process(struct request *request, const char *target)
{
	char *end;
	long pid = strtol(target, &end, 10);
	const char *why;

	if (*end || pid <= 0) {
		say(target, "is no process and no folder");
		fail(request, USAGE);
	} else if (!sl_sleepers_add_process(&request->sleepers, pid, &why)) {
		say(target, why);
		fail(request, kill((pid_t)pid, 0) && errno == ESRCH ? USAGE : NOTHING);
	}
}

static void add_target(struct request *request, const char *target)
{
	int found;

	if (strspn(target, "0123456789") == strlen(target)) {
		add_process(request, target);
		return;
	}
	found = sl_sleepers_add_folder(&request->sleepers, target);
	if (found > 0)
		return;
	say(target, found < 0 ? strerror(errno) : "nothing that runs records into it");
	fail(request, found < 0 ? USAGE : NOTHING);
}

static void told(const struct sl_sleepers *list, bool wake)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct sl_sleeper *sleeper = &list->item[i];
		bool ended = atomic_load(&sleeper->head->state) == SL_PROCESS_COMPLETED;

		fprintf(stderr, "stormlog-attach: %ld %s (%s)\n", sleeper->pid,
			ended					       ? "has ended"
			: !atomic_load(&sleeper->head->asleep) == wake ? wake ? "is awake" : "is at rest"
								       : "is silent",
			sleeper->path);
	}
}

static void turn(struct request *request, bool wake)
{
	unsigned silent = sl_sleepers_turn(&request->sleepers, wake);

	told(&request->sleepers, wake);
	if (silent) {
		fprintf(stderr, "stormlog-attach: %u did not answer within 10 s: stopped, or its disk hangs\n", silent);
		fail(request, SILENT);
	}
}

static void stay(double seconds)
{
	struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	while (sigtimedwait(&ends, NULL, &left) < 0 && errno == EINTR)
		;
}

/* False: the program ends with request->status. */
static bool parse(struct request *request, int argc, char **argv)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},		 {"rest", no_argument, NULL, REST},
		{"duration", required_argument, NULL, DURATION}, {"help", no_argument, NULL, HELP},
		{"version", no_argument, NULL, VERSION},	 {NULL, 0, NULL, 0},
	};
	char *end;
	int option;

	while ((option = getopt_long(argc, argv, "p:", options, NULL)) != -1)
		switch (option) {
		case 'p':
			add_process(request, optarg);
			break;
		case REST:
			request->rest = true;
			break;
		case DURATION:
			request->duration = strtod(optarg, &end);
			if (!*end && end != optarg && request->duration > 0 && request->duration < 1e9)
				break;
			say(optarg, "is no number of seconds");
			request->status = USAGE;
			return false;
		case HELP:
			fputs(usage, stdout);
			return false;
		case VERSION:
			puts("stormlog-attach " SL_VERSION);
			return false;
		default:
			request->status = USAGE;
			return false;
		}
	if (optind == argc && !request->sleepers.count && request->status == FINE)
		request->status = USAGE, fputs(usage, stderr);
	if (request->rest && request->duration > 0)
		request->status = USAGE, fputs("stormlog-attach: --rest and --duration exclude each other\n", stderr);
	for (; optind < argc; optind++)
		add_target(request, argv[optind]);
	return request->sleepers.count && request->status != USAGE;
}

int main(int argc, char **argv)
{
	struct request request = {0};
	sigset_t ends;

	if (!parse(&request, argc, argv))
		return request.status;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	if (request.duration > 0) /* from here on an interrupt is the end of the stay, not of this program */
		sigprocmask(SIG_BLOCK, &ends, NULL);
	turn(&request, !request.rest);
	fputs("ready\n", stderr);
	if (request.duration > 0) {
		stay(request.duration);
		turn(&request, false);
	}
	sl_sleepers_free(&request.sleepers);
	return request.status;
}
