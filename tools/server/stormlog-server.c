/* SPDX-License-Identifier: MIT */
/* stormlog-server keeps, searches and compares the runs of a team (doc/server.md).  Reads options, then runs until a signal. */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>

#include "analyzer/base/exact.h"
#include "analyzer/base/save.h"
#include "common/text.h"
#include "common/standard.h"
#include "tools/server/server.h"

#define NAMES_MAX 64
#define DAY_S	  (24 * 60 * 60)

static const char usage[] = "usage: stormlog-server --store DIR [options]\n"
			    "       stormlog-server --store DIR token add NAME --read|--write | token list |\n"
			    "           token remove NAME\n"
			    "       stormlog-server --store DIR backup FILE\n"
			    "\n"
			    "Keeps runs that are sent as packs (stormlog-analyze push), and shows, searches\n"
			    "and compares them.\n"
			    "\n"
			    "      --store DIR           where everything is kept; made where it is missing\n"
			    "      --listen ADDR:PORT    of this machine (default: 127.0.0.1:7171); port 0\n"
			    "                            takes a free one and prints it\n"
			    "      --open                who reaches the address may read without a token;\n"
			    "                            writing needs one all the same\n"
			    "      --name HOST           a name that the server goes by, behind a proxy say;\n"
			    "                            may be repeated.  Numbers and localhost always are\n"
			    "      --max-pack SIZE       a pack is at most so large (default: 4G)\n"
			    "      --quota SIZE          all packs, uploads and pages together are (default:\n"
			    "                            no limit)\n"
			    "      --project-quota SIZE  limit for one project; a run beyond it is refused\n"
			    "      --keep-age DAYS       of each project runs that came in so many days,\n"
			    "      --keep-count N        the N newest,\n"
			    "      --keep-size SIZE      as many as take so much with their pages; pinned\n"
			    "                            ones and those beside a change always\n"
			    "      --help, --version\n"
			    "\n"
			    "Exit status: 0 ended by a signal, 2 usage, 4 the store or the address cannot be\n"
			    "used, or an answer could not be written.\n";

struct settings {
	struct sl_server server;
	const char *store, *listen;
	const char *names[NAMES_MAX];
};

enum { STORE = 256, LISTEN, OPEN, NAME, MAX_PACK, QUOTA, PROJECT_QUOTA, KEEP_AGE, KEEP_COUNT, KEEP_SIZE, HELP, VERSION };

static bool read_count(const char *text, uint64_t *count)
{
	char *end;

	*count = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *count && *count <= UINT32_MAX;
}

/* An exit status, or -1: go on. */
static int parse(struct settings *s, int argc, char **argv)
{
	static const struct option table[] = {{"store", 1, NULL, STORE},
					      {"listen", 1, NULL, LISTEN},
					      {"open", 0, NULL, OPEN},
					      {"name", 1, NULL, NAME},
					      {"max-pack", 1, NULL, MAX_PACK},
					      {"quota", 1, NULL, QUOTA},
					      {"keep-age", 1, NULL, KEEP_AGE},
					      {"keep-count", 1, NULL, KEEP_COUNT},
					      {"keep-size", 1, NULL, KEEP_SIZE},
					      {"project-quota", 1, NULL, PROJECT_QUOTA},
					      {"help", 0, NULL, HELP},
					      {"version", 0, NULL, VERSION},
					      {0}};
	bool fine = true;
	int option;

	while (fine && (option = sl_exact_getopt(argc, argv, "+", table)) != -1) {
		switch (option) {
		case STORE:
			s->store = optarg;
			break;
		case LISTEN:
			s->listen = optarg;
			break;
		case OPEN:
			s->server.open = true;
			break;
		case NAME:
			fine = s->server.name_count < NAMES_MAX;
			if (fine)
				s->names[s->server.name_count++] = optarg;
			break;
		case MAX_PACK:
			fine = sl_size_parse(optarg, &s->server.packs.pack_max) && s->server.packs.pack_max;
			break;
		case QUOTA:
			fine = sl_size_parse(optarg, &s->server.packs.quota);
			break;
		case PROJECT_QUOTA:
			fine = sl_size_parse(optarg, &s->server.project_bytes);
			break;
		case KEEP_AGE:
			fine = read_count(optarg, &s->server.keep_age_s);
			s->server.keep_age_s *= DAY_S;
			break;
		case KEEP_COUNT:
			fine = read_count(optarg, &s->server.keep_count);
			break;
		case KEEP_SIZE:
			fine = sl_size_parse(optarg, &s->server.keep_bytes);
			break;
		case HELP:
			fputs(usage, stdout);
			return 0;
		case VERSION:
			puts("stormlog-server " SL_VERSION);
			return 0;
		default:
			return 2;
		}
	}
	if (!fine)
		return sl_escape_fail("stormlog-server", 2, "%s is not what this option takes", optarg);
	return s->store ? -1 : sl_escape_fail("stormlog-server", 2, "--store DIR says where runs are kept (--help)");
}

/* makes: a store, where none is.  A backup needs the catalogue alone. */
static bool open_store(struct settings *s, bool makes, bool backs_up)
{
	char path[4200];
	bool fine;

	snprintf(path, sizeof(path), "%s%s", s->store, backs_up ? "/" SL_STORE_NAME : "");
	fine = backs_up ? !access(path, F_OK)
			: (makes || sl_packs_are_there(s->store)) && sl_packs_open(&s->server.packs, s->store);
	if (!fine || !realpath(s->store, s->server.path))
		return sl_escape_fail("stormlog-server", false, "%s: %s", path,
				      errno == ENOTEMPTY ? "not empty and not a store: name a folder of its own"
				      : errno == ENOENT && !makes && !backs_up ? "no store is there"
									       : strerror(errno));
	s->server.tokens.folder = s->server.packs.folder;
	pthread_mutex_init(&s->server.tokens.mutex, NULL);
	return true;
}

/* "127.0.0.1:7171", "[::1]:0" */
static struct addrinfo *resolve(const char *text)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM},
			*found = NULL;
	char host[64];
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;
	bool brackets = size > 2 && text[0] == '[' && text[size - 1] == ']';

	if (!size || size >= sizeof(host))
		return NULL;
	snprintf(host, sizeof(host), "%.*s", (int)(size - 2 * brackets), text + brackets);
	return getaddrinfo(host, colon + 1, &hints, &found) ? NULL : found;
}

static void allow_many_files(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* The signals that end the server are blocked in every thread and waited for here. */
static int serve(struct settings *s, const struct addrinfo *address)
{
	struct sl_http *http;
	sigset_t ends;
	int port, got;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	s->server.work = sl_work_new(&s->server);
	if (!s->server.work)
		return sl_escape_fail("stormlog-server", 4, "stormlog-index cannot be started: %m");
	http = sl_http_start(&s->server, address->ai_addr, address->ai_addrlen, &port);
	if (!http)
		return sl_escape_fail("stormlog-server", 4, "%s: %m", s->listen);
	sl_escape_print(stderr, "stormlog-server: http://%.*s:%d/\n", (int)(strrchr(s->listen, ':') - s->listen), s->listen, port);
	sigwait(&ends, &got);
	sl_http_stop(http);
	sl_work_free(s->server.work);
	SL_DROP(&s->server.tokens.token);
	return 0;
}

/* A server that was killed while starting a child leaves the lock held until that child has started. */
static bool lock(int folder)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	unsigned tries = 40;

	while (flock(folder, LOCK_EX | LOCK_NB))
		if (!--tries || nanosleep(&pause, NULL))
			return false;
	return true;
}

/* Copies the catalogue; a server may be running meanwhile. */
static int backup(struct sl_server *server, const char *path)
{
	struct sl_store *store = sl_runs_store(server);

	sl_save_watch_signals();

	if (store && sl_store_backup(store, path))
		return 0;
	return sl_escape_fail("stormlog-server", 4, "%s: %s", path, store ? sl_store_why(store) : "it has no catalogue to copy");
}

int main(int argc, char **argv)
{
	struct settings s = {.listen = "127.0.0.1:7171", .server.packs = {.pack_max = 4ull << 30, .spare = 16 << 20}};
	struct addrinfo *address = NULL;
	struct sl_tokens_command token;
	bool backs_up, is_token;
	int status;

	sl_standard_hold(0);
	status = parse(&s, argc, argv);
	if (status >= 0)
		return sl_standard_told("stormlog-server", status, 4);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	umask(077);
	allow_many_files();
	backs_up = optind + 2 == argc && !strcmp(argv[optind], "backup");
	is_token = optind < argc && !strcmp(argv[optind], "token");
	if (!is_token && !backs_up && optind < argc)
		return sl_escape_fail("stormlog-server", 2, "%s: is not an option, token or backup", argv[optind]);
	if (!is_token && !backs_up && !(address = resolve(s.listen)))
		return sl_escape_fail("stormlog-server", 2, "%s: is no ADDRESS:PORT, in numbers", s.listen);
	if (is_token && !sl_tokens_parse(&token, argc - optind - 1, argv + optind + 1))
		return 2;
	if (!open_store(&s, !is_token || token.verb == SL_TOKENS_ADD, backs_up))
		return 4;
	if (is_token)
		return sl_standard_told("stormlog-server", sl_tokens_command(s.server.packs.folder, &token), 4);
	if (backs_up)
		return backup(&s.server, argv[optind + 1]);
	if (!lock(s.server.packs.folder))
		return sl_escape_fail("stormlog-server", 4, "%s: another server uses this store", s.store);
	if (!sl_runs_examine(&s.server))
		return 4;
	s.server.names = s.names;
	status = serve(&s, address);
	freeaddrinfo(address);
	return status;
}
