/* SPDX-License-Identifier: MIT */
/* stormlog-exporter: memory of all recordings of this node, for Prometheus.  Reads only. */
#include <arpa/inet.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/sandbox.h"
#include "analyzer/base/host_header.h"
#include "common/now.h"
#include "common/standard.h"
#include "tools/exporter/exporter.h"

#define EACH_NS	  1000000000ull	 /* between two looks, which happen even if nobody asks: trends need them */
#define SEARCH_NS 5000000000ull	 /* between two searches for new processes */
#define ENDED_NS  60000000000ull /* how long a process that has ended keeps its series, so that a scrape sees its last figures */
#define MOST	  256

static const char about[] =
	"Shows the memory of recordings while they run, as metrics at http://127.0.0.1:9836/metrics: of each DIR the newest run. "
	"Without DIR: of every living recording on this node that this user may read.";

struct settings {
	struct sl_exporter exporter;
	const char *listen;
	bool once;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--listen", 'l', "ADDR:PORT", "(default: 127.0.0.1:9836; port 0: any, which is printed)", SL_TO_TEXT(listen)},
	{"--root", 0, "DIR", "where the node's /proc and /var are seen, as /host in a container", SL_TO_TEXT(exporter.root)},
	{"--name", 0, "HOST",
	 "a name that it goes by, when Prometheus asks by name; may be repeated. The node's own, numbers and localhost always are",
	 SL_TO_TEXTS(exporter.names)},
	{"--most", 0, "PROCESSES", "the most processes with series (default: 256)",
	 SL_TO_COUNT(exporter.max_processes, 1, INT_MAX)},
	{"--once", 0, NULL, "print the metrics once and exit", SL_TO_FLAG(once)},
	SL_OPTION_HELP,
	{0},
};

static volatile sig_atomic_t asked_to_end;
static sigset_t while_waiting;

static void end(int number)
{
	asked_to_end = 1;
}

/* ---- looks */

static struct sl_exporter_seen *seen_of(struct sl_exporter *exporter, unsigned index)
{
	const struct sl_followed *followed = sl_follow_process(exporter->follow, index);

	for (size_t i = index; i < exporter->seen.count; i++)
		if (exporter->seen.item[i].followed == followed &&
		    exporter->seen.item[i].started_unix_ns == followed->process.started_unix_ns) {
			struct sl_exporter_seen found = exporter->seen.item[i];

			exporter->seen.item[i] = exporter->seen.item[index];
			exporter->seen.item[index] = found;
			return &exporter->seen.item[index];
		}
	*SL_PUSH(&exporter->seen) = (struct sl_exporter_seen){0};
	memmove(&exporter->seen.item[index + 1], &exporter->seen.item[index],
		(exporter->seen.count - 1 - index) * sizeof(*exporter->seen.item));
	exporter->seen.item[index] =
		(struct sl_exporter_seen){.followed = followed, .started_unix_ns = followed->process.started_unix_ns};
	sl_exporter_where(&exporter->seen.item[index].where, exporter->root, &followed->process);
	return &exporter->seen.item[index];
}

static void look_at(struct sl_exporter *exporter, unsigned index)
{
	const struct sl_followed *followed = sl_follow_process(exporter->follow, index);
	struct sl_exporter_seen *seen = seen_of(exporter, index);
	struct sl_figures f[EXPORTER_DEVICES];
	unsigned count = sl_figures_of(&followed->process, f, EXPORTER_DEVICES), at;

	if (followed->ended && !seen->ended_ns)
		seen->ended_ns = exporter->now_ns;
	for (unsigned d = 0; d < count && !followed->ended; d++)
		if ((at = sl_figures_met(&seen->met, f[d].device)) < EXPORTER_DEVICES)
			sl_figures_look(&seen->outlook[at], &followed->process, &f[d], exporter->now_ns);
}

static void look(struct sl_exporter *exporter, bool search)
{
	uint64_t begin = sl_now_ns(CLOCK_MONOTONIC);

	if (search)
		sl_follow_node(exporter->follow, 0);
	sl_follow_poll(exporter->follow);
	exporter->now_ns = sl_now_ns(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < sl_follow_count(exporter->follow); i++) {
		look_at(exporter, i);
		if (exporter->seen.item[i].ended_ns && exporter->now_ns - exporter->seen.item[i].ended_ns > ENDED_NS) {
			sl_follow_forget(exporter->follow, i);
			exporter->seen.item[i--] = exporter->seen.item[--exporter->seen.count];
		}
	}
	exporter->seen.count = sl_follow_count(exporter->follow);
	exporter->cost_ns = sl_now_ns(CLOCK_MONOTONIC) - begin;
}

/* ---- HTTP */

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *type, char *text, size_t size)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	MHD_add_response_header(response, "Content-Type", type);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *data, size_t *size, void **own)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	bool open_metrics = accept && strstr(accept, "application/openmetrics-text"), metrics = !strcmp(url, "/metrics");
	static const char stranger[] = "stormlog-exporter: it does not go by that name (--name HOST)\n";
	struct sl_exporter *exporter = context;
	char *text = NULL, host[SL_HOST_HEADER_MAX];
	size_t length = 0;
	FILE *out;

	sl_host_header_name(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"), host);
	if (!sl_host_header_is_ours(host, exporter->names.item, (unsigned)exporter->names.count))
		return say(connection, 421, "text/plain; charset=utf-8", strdup(stranger), strlen(stranger));
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return MHD_NO;
	out = open_memstream(&text, &length);
	if (!out)
		return MHD_NO;
	if (metrics)
		sl_exporter_write(exporter, out, open_metrics);
	else
		fputs("stormlog-exporter: /metrics\n", out);
	fclose(out);
	return say(connection, metrics || !strcmp(url, "/") ? 200 : 404,
		   !metrics	  ? "text/plain; charset=utf-8"
		   : open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				  : "text/plain; version=0.0.4; charset=utf-8",
		   text, length);
}

/* "127.0.0.1:9836", "[::1]:9836" */
static int listen_at(const char *where)
{
	struct sockaddr_storage bound = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&bound;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&bound;
	const char *colon = strrchr(where, ':');
	socklen_t size = sizeof(*v4);
	char host[64], *end = "x";
	int one = 1, fd;
	long port = colon ? strtol(colon + 1, &end, 10) : -1;

	if (!colon || *end || end == colon + 1 || port < 0 || port > 65535)
		return -1;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	if (*host == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = 0;
		*v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
		size = sizeof(*v6);
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) != 1)
			return -1;
	} else {
		*v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
		if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
			return -1;
	}
	fd = socket(bound.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&bound, size) || listen(fd, 64))
		return sl_escape_fail("stormlog-exporter", -2, "%s: %m", where);
	size = sizeof(bound);
	getsockname(fd, (struct sockaddr *)&bound, &size);
	sl_escape_print(stderr, "stormlog-exporter: http://%s%s:%d/metrics\n", host, *host == '[' ? "]" : "", ntohs(v4->sin_port));
	return fd;
}

static int serve(struct sl_exporter *exporter, int fd, bool node)
{
	struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, exporter, MHD_OPTION_LISTEN_SOCKET, fd,
						     MHD_OPTION_CONNECTION_LIMIT, 64u, MHD_OPTION_CONNECTION_TIMEOUT, 10u,
						     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10), MHD_OPTION_END);
	const union MHD_DaemonInfo *info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	uint64_t next = 0, search = 0;

	if (!info)
		return sl_escape_fail("stormlog-exporter", 1, "the web server does not start");
	while (!asked_to_end) {
		struct pollfd ready = {.fd = info->epoll_fd, .events = POLLIN};
		uint64_t now = sl_now_ns(CLOCK_MONOTONIC), left;

		if (now >= next) {
			look(exporter, node && now >= search);
			search = now >= search ? now + SEARCH_NS : search;
			next = now + EACH_NS;
		}
		now = sl_now_ns(CLOCK_MONOTONIC);
		left = next > now ? next - now : 0;
		ppoll(&ready, 1, &(struct timespec){(time_t)(left / SL_NS_PER_S), (long)(left % SL_NS_PER_S)}, &while_waiting);
		MHD_run(daemon);
	}
	MHD_stop_daemon(daemon);
	return 0;
}

/* An exit status, or -1: go on.  From here on this process reads other users' traces and does nothing else. */
static int open_paths(struct sl_exporter *exporter, char **paths)
{
	static const char *const writes[] = {NULL};

	sl_sandbox(NULL, writes, *paths ? 0 : SL_SANDBOX_PROCESSES);
	for (; *paths; paths++)
		if (!sl_follow_add(exporter->follow, *paths))
			return sl_escape_fail("stormlog-exporter", 2, "%s: %m", *paths);
	return -1;
}

/* Lets signals end the program only while it waits.  Called before it prints its address, whose reader may act at once. */
static void end_when_asked(void)
{
	struct sigaction action = {.sa_handler = end};
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, &while_waiting);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a pack that cannot be unpacked is then an error */
}

int main(int argc, char **argv)
{
	struct settings s = {{.follow = sl_follow_new(), .root = "", .max_processes = MOST}, .listen = "127.0.0.1:9836"};
	struct sl_arguments parsed = {"stormlog-exporter", "[options] [DIR...]", about, table, SL_PATHS_OPTIONAL, argc, argv,
				      sl_escape_refuse};
	char node[SL_HOST_HEADER_MAX] = "";
	int status, fd = 0;

	sl_standard_hold(0);
	status = sl_arguments_parse(&parsed, NULL, &s);
	if (!gethostname(node, sizeof(node) - 1))
		*SL_PUSH(&s.exporter.names) = node;
	if (status < 0 && !s.once)
		end_when_asked();
	if (status < 0 && !s.once && (fd = listen_at(s.listen)) < 0) {
		if (fd == -1)
			sl_escape_print(stderr, "stormlog-exporter: %s is no ADDRESS:PORT\n", s.listen);
		status = 2;
	}
	if (status < 0)
		status = open_paths(&s.exporter, parsed.paths);
	if (status < 0 && s.once) {
		look(&s.exporter, !parsed.path_count);
		sl_exporter_write(&s.exporter, stdout, true);
		status = 0;
	} else if (status < 0) {
		status = serve(&s.exporter, fd, !parsed.path_count);
	}
	free(s.exporter.names.item);
	free(s.exporter.seen.item);
	sl_follow_free(s.exporter.follow);
	sl_arguments_free(&parsed);
	return sl_standard_told("stormlog-exporter", status, 4);
}
