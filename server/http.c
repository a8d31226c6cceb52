/* SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <netinet/in.h>
#include <unistd.h>

#include "analyzer/base/memory.h"

enum {
	THREADS = 8,
	CONNECTIONS = 1000,
	OF_ONE_ADDRESS = CONNECTIONS / 4, /* so that one client, or one proxy, leaves room for others */
	HEADERS_MAX = 32 << 10,		  /* most bytes of memory for a connection */
	SMALL_MAX = 64 << 10,
	DRAIN_MAX = 16 << 20, /* bytes of a refused body that are read: a client may send all of it before it reads the answer */
	IDLE_S = 60,
};

struct sl_http {
	struct MHD_Daemon *daemon;
};

static const struct sl_route routes[] = {
	{"PUT", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_PACK, NULL},
	{"HEAD", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_NONE, sl_upload_head},
	{"GET", "/api/v1/packs/", SL_RIGHT_READ, SL_BODY_NONE, sl_upload_download},
	{"GET", "/api/v1/runs", SL_RIGHT_READ, SL_BODY_NONE, sl_api_runs},
	{"GET", "/api/v1/runs/", SL_RIGHT_READ, SL_BODY_NONE, sl_api_run},
	{"GET", "/api/v1/names", SL_RIGHT_READ, SL_BODY_NONE, sl_api_names},
	{"GET", "/api/v1/metrics", SL_RIGHT_READ, SL_BODY_NONE, sl_api_metrics},
	{"GET", "/api/v1/history", SL_RIGHT_READ, SL_BODY_NONE, sl_api_history},
	{"GET", "/api/v1/worse", SL_RIGHT_READ, SL_BODY_NONE, sl_api_worse},
	{"GET", "/api/v1/compare", SL_RIGHT_READ, SL_BODY_NONE, sl_view_changes},
	{"GET", "/", SL_RIGHT_READ, SL_BODY_NONE, sl_site_landing},
	{"GET", "/search", SL_RIGHT_READ, SL_BODY_NONE, sl_site_search},
	{"GET", "/trends", SL_RIGHT_READ, SL_BODY_NONE, sl_trends_page},
	{"GET", "/compare", SL_RIGHT_READ, SL_BODY_NONE, sl_view_compare},
	{"GET", "/packs/", SL_RIGHT_READ, SL_BODY_NONE, sl_run_of_pack},
	{"GET", "/runs/", SL_RIGHT_READ, SL_BODY_NONE, sl_run_page},
	{"POST", "/runs/", SL_RIGHT_WRITE, SL_BODY_SMALL, sl_run_change},
	{"GET", "/static/", SL_RIGHT_READ, SL_BODY_NONE, sl_site_static},
	{0},
};

static bool is_at(const struct sl_route *route, const char *path)
{
	size_t size = strlen(route->path);

	return size > 1 && route->path[size - 1] == '/' ? !strncmp(path, route->path, size) : !strcmp(path, route->path);
}

static bool is_method(const struct sl_route *route, const char *method)
{
	return !strcmp(route->method, method) || (!strcmp(route->method, "GET") && !strcmp(method, "HEAD"));
}

/* Sets the route; otherwise returns the outcome that says why there is none. */
static struct sl_http_outcome find_route(struct sl_request *request)
{
	struct sl_http_outcome outcome = {404, "there is no such page"};

	for (const struct sl_route *route = routes; route->path; route++) {
		if (!is_at(route, request->path))
			continue;
		if (is_method(route, request->method)) {
			request->route = route;
			request->rest = request->path + strlen(route->path);
			return (struct sl_http_outcome){0};
		}
		outcome = (struct sl_http_outcome){405, "this place does not take that method"};
	}
	return outcome;
}

/* The announced length of the body; 0: not announced, perhaps no body. */
static uint64_t body_length(const struct sl_request *request)
{
	const char *length = sl_request_header(request, "Content-Length");

	return length ? strtoull(length, NULL, 10) : 0;
}

static struct sl_request *new_request(struct sl_server *server, struct MHD_Connection *connection, const char *url,
				      const char *method)
{
	struct sl_request *request = sl_memory_must(calloc(1, sizeof(*request)));

	request->path = sl_memory_copy(url);
	request->server = server;
	request->connection = connection;
	request->method = method;
	request->incoming.fd = -1;
	return request;
}

/* Checks the request before any of its body is read. */
static struct sl_http_outcome admit(struct sl_request *request)
{
	struct sl_http_outcome outcome = {0};

	if (sl_request_is_of_two_lengths(request)) /* a proxy before us may have taken the other one */
		outcome = (struct sl_http_outcome){400, "says twice how long it is"};
	if (!outcome.status)
		outcome = sl_access_site(request);
	if (!outcome.status)
		outcome = find_route(request);
	if (!outcome.status)
		outcome = sl_access_right(request, request->route->right);
	if (!outcome.status && request->route->body == SL_BODY_PACK)
		outcome = sl_upload_begin(request);
	else if (!outcome.status && request->route->body == SL_BODY_SMALL && body_length(request) > SMALL_MAX)
		outcome = (struct sl_http_outcome){413, "too much for this place"};
	return outcome;
}

static void take(struct sl_request *request, const char *bytes, size_t size)
{
	if (request->outcome.status)
		return;
	if (request->route->body == SL_BODY_PACK) {
		request->outcome = sl_packs_add(&request->server->packs, &request->incoming, bytes, size);
	} else if (request->route->body == SL_BODY_SMALL && request->body_size + size <= SMALL_MAX) {
		request->body = sl_memory_must(realloc(request->body, request->body_size + size + 1));
		memcpy(request->body + request->body_size, bytes, size);
		request->body_size += size;
		request->body[request->body_size] = 0;
	} else {
		request->outcome = (struct sl_http_outcome){413, "too much for this place"};
	}
}

static void refuse(struct sl_request *request)
{
	static const char *const who[][2] = {{"WWW-Authenticate", "Basic realm=\"stormlog\", charset=\"UTF-8\""}, {0}};
	static const char *const later[][2] = {{"Retry-After", "60"}, {0}};
	static const char *const last[][2] = {{"Connection", "close"}, {0}};
	unsigned status = request->outcome.status;

	sl_request_say(request, status, request->outcome.why,
		       status == 400			? last
		       : status == 401			? who
		       : status == 429 || status == 423 ? later
							: NULL);
}

static void answer(struct sl_request *request)
{
	if (request->route && request->route->body == SL_BODY_PACK && *request->incoming.name)
		sl_upload_answer(request); /* the request had reached the upload */
	else if (request->outcome.status)
		refuse(request);
	else
		request->route->answer(request);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *data, size_t *size, void **own)
{
	struct sl_request *request = *own;

	if (!request) {
		const char *expects;

		*own = request = new_request(context, connection, url, method);
		request->outcome = admit(request);
		expects = sl_request_header(request, "Expect");
		/*
		 * A client that sent "Expect: 100-continue" gets the answer now; one that is already sending gets it when it
		 * reads.
		 */
		if (request->outcome.status && (expects || body_length(request) > DRAIN_MAX))
			answer(request);
		return MHD_YES;
	}
	if (*size) {
		take(request, data, *size);
		*size = 0;
		return MHD_YES;
	}
	answer(request);
	return request->answered ? MHD_YES : MHD_NO;
}

static void completed(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode how)
{
	struct sl_request *request = *own;

	if (!request)
		return;
	sl_packs_leave(&request->incoming);
	free(request->body);
	free(request->path);
	free(request);
	*own = NULL;
}

struct sl_http *sl_http_start(struct sl_server *server, const struct sockaddr *address, socklen_t size, int *port)
{
	struct sl_http *http = calloc(1, sizeof(*http));
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	int one = 1, fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!http || fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, address, size) || listen(fd, 512) || getsockname(fd, (struct sockaddr *)&bound, &length))
		return NULL; /* the server is ending */
	*port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						  : ((struct sockaddr_in *)&bound)->sin_port);
	/* Not epoll: libmicrohttpd 0.9.75 then misses the end of an upload that comes together with its last bytes. */
	http->daemon = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle, server,
					MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS,
					MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
					(unsigned)OF_ONE_ADDRESS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX,
					MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
					MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
	return http->daemon ? http : NULL;
}

void sl_http_stop(struct sl_http *http)
{
	MHD_stop_daemon(http->daemon);
	free(http);
}
