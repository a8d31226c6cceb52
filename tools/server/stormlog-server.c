/* SPDX-License-Identifier: MIT */
/* stormlog-server keeps, searches and compares the runs of a team (doc/server.md).  Reads options, then runs until a signal. */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/save.h"
#include "common/text.h"
#include "common/standard.h"
#include "tools/server/server.h"

struct settings {
	struct sl_server server;
	const char *store, *listen;
};

static const char usage[] = "--store DIR [options] [token add NAME --read|--write | token list | token remove NAME | backup FILE]";
static const char about[] =
	"Keeps runs that are sent as packs (stormlog-analyze push), and shows, searches and compares them.\n"
	"\n"
	"Exit status: 0 ended by a signal, 2 usage, 4 the store or the address cannot be used, or an answer could not be written.";

#define INTO struct settings
static const struct sl_option table[] = {
	{"--store", 0, "DIR", "where everything is kept; made where it is missing", SL_TO_TEXT(store)},
	{"--listen", 0, "ADDR:PORT", "of this machine (default: 127.0.0.1:7171); port 0 takes a free one and prints it",
	 SL_TO_TEXT(listen)},
	{"--open", 0, NULL, "reading needs no token, for all who reach the address; writing does all the same",
	 SL_TO_FLAG(server.open)},
	{"--name", 0, "HOST",
	 "a name that the server goes by, behind a proxy say; may be repeated. Numbers and localhost always are",
	 SL_TO_TEXTS(server.names)},
	{"--max-pack", 0, "SIZE", "a pack is at most so large (default: 4G)", SL_TO_SIZE(server.packs.pack_max), 1},
	{"--quota", 0, "SIZE", "all packs, uploads and pages together are (default: no limit)", SL_TO_SIZE(server.packs.quota)},
	{"--project-quota", 0, "SIZE", "limit for one project; a run beyond it is refused", SL_TO_SIZE(server.project_bytes)},
	{"--keep-age", 0, "DAYS", "of each project runs that came in so many days,", SL_TO_COUNT(server.keep_days, 1, UINT32_MAX)},
	{"--keep-count", 0, "N", "the N newest,", SL_TO_COUNT(server.keep_count, 1, UINT32_MAX)},
	{"--keep-size", 0, "SIZE", "as many as take so much with their pages; pinned ones and those beside a change always",
	 SL_TO_SIZE(server.keep_bytes)},
	SL_OPTION_HELP,
	{0},
};

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
	struct sl_arguments parsed = {"stormlog-server", usage, about, table, SL_PATHS_WORDS, argc, argv, sl_escape_refuse};
	struct addrinfo *address = NULL;
	struct sl_tokens_command token;
	char **words;
	int count;
	bool backs_up, is_token;
	int status;

	sl_standard_hold(0);
	status = sl_arguments_parse(&parsed, NULL, &s);
	if (status >= 0)
		return sl_standard_told("stormlog-server", status, 4);
	if (!s.store)
		return sl_escape_fail("stormlog-server", 2, "--store DIR says where runs are kept (--help)");
	words = parsed.paths;
	count = (int)parsed.path_count;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	umask(077);
	allow_many_files();
	backs_up = count == 2 && !strcmp(words[0], "backup");
	is_token = count && !strcmp(words[0], "token");
	if (!is_token && !backs_up && count)
		return sl_escape_fail("stormlog-server", 2, "%s: is not an option, token or backup", words[0]);
	if (!is_token && !backs_up && !(address = resolve(s.listen)))
		return sl_escape_fail("stormlog-server", 2, "%s: is no ADDRESS:PORT, in numbers", s.listen);
	if (is_token && !sl_tokens_parse(&token, count - 1, words + 1))
		return 2;
	if (!open_store(&s, !is_token || token.verb == SL_TOKENS_ADD, backs_up))
		return 4;
	if (is_token)
		return sl_standard_told("stormlog-server", sl_tokens_command(s.server.packs.folder, &token), 4);
	if (backs_up)
		return backup(&s.server, words[1]);
	if (!lock(s.server.packs.folder))
		return sl_escape_fail("stormlog-server", 4, "%s: another server uses this store", s.store);
	if (!sl_runs_examine(&s.server))
		return 4;
	status = serve(&s, address);
	freeaddrinfo(address);
	return status;
}
