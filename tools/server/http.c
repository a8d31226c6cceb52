/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <inttypes.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/host_header.h"
#include "analyzer/base/memory.h"

/* Access control: tokens, and whether another site sent the browser. */

enum { FAILURES_MAX = 20, WINDOW_S = 60, SLOTS = 1024 };

/* Failed attempts by address.  Two addresses may share a slot; at worst a stranger gets a 429. */
static struct {
	uint64_t window;
	unsigned count;
} failures[SLOTS];
static pthread_mutex_t failures_mutex = PTHREAD_MUTEX_INITIALIZER;

static unsigned slot_of(const struct sockaddr *address)
{
	const uint8_t *bytes = (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
	unsigned size = 4, hash = 2166136261u;

	if (address->sa_family == AF_INET6) {
		bytes = (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr;
		size = 8; /* counts a whole network as one */
	}
	for (unsigned i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash % SLOTS;
}

/* False: there were too many failures from that address. */
static bool count_failure(const struct sl_request *request)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	unsigned slot = slot_of(info->client_addr);
	struct timespec now;
	bool fine;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&failures_mutex);
	if (failures[slot].window != (uint64_t)now.tv_sec / WINDOW_S) {
		failures[slot].window = (uint64_t)now.tv_sec / WINDOW_S;
		failures[slot].count = 0;
	}
	fine = failures[slot].count < FAILURES_MAX;
	failures[slot].count += fine;
	pthread_mutex_unlock(&failures_mutex);
	return fine;
}

/* Finds the rights of the request's token; false: it has no token. */
static bool presented(struct sl_request *request, unsigned *rights)
{
	const char *header = sl_request_header(request, "Authorization");
	char *user, *password = NULL;

	*rights = 0;
	if (!header)
		return false;
	if (!strncasecmp(header, "Bearer ", 7)) {
		*rights = sl_tokens_rights(&request->server->tokens, header + 7 + strspn(header + 7, " "), request->who);
		return true;
	}
	user = MHD_basic_auth_get_username_password(request->connection, &password);
	if (password)
		*rights = sl_tokens_rights(&request->server->tokens, password, request->who);
	MHD_free(user);
	MHD_free(password);
	return true;
}

/* Checks "Authorization: Bearer TOKEN", or Basic with the token as password, which browsers ask for.  Failure: 401, 403 or 429. */
static struct sl_http_outcome check_right(struct sl_request *request, enum sl_right right)
{
	unsigned rights;
	bool any = presented(request, &rights);

	if ((rights & right) || (request->server->open && right == SL_RIGHT_READ))
		return (struct sl_http_outcome){0};
	if (rights)
		return (struct sl_http_outcome){403, "this token does not give that right"};
	if (any && !count_failure(request))
		return (struct sl_http_outcome){429, "too many wrong tokens from there: wait a minute"};
	if (any)
		return (struct sl_http_outcome){401, "this token is not known"};
	return (struct sl_http_outcome){401, right == SL_RIGHT_WRITE
						     ? "a token for writing is needed: Authorization: Bearer TOKEN"
						     : "a token for reading is needed: Authorization: Bearer TOKEN"};
}

/* Fine: the Host is one of ours, and a request that changes something was not sent by a page of another site. */
static struct sl_http_outcome check_site(const struct sl_request *request)
{
	const char *site = sl_request_header(request, "Sec-Fetch-Site"), *origin = sl_request_header(request, "Origin"),
		   *to = sl_request_header(request, "Host");
	char host[SL_HOST_HEADER_MAX], from[SL_HOST_HEADER_MAX];
	bool changes = strcmp(request->method, "GET") && strcmp(request->method, "HEAD");

	sl_host_header_name(to, host);
	if (!sl_host_header_is_ours(host, request->server->names.item, (unsigned)request->server->names.count))
		return (struct sl_http_outcome){421, "this server does not go by that name (--name)"};
	if (changes && site && strcmp(site, "same-origin") && strcmp(site, "none"))
		return (struct sl_http_outcome){403, "a page of another site sent this"};
	if (changes && origin) {
		const char *authority = strstr(origin, "://");

		sl_host_header_name(authority ? authority + 3 : NULL, from);
		/* Compares the whole authority: another port is another site. */
		if (strcmp(from, host) || strcasecmp(authority + 3, to))
			return (struct sl_http_outcome){403, "a page of another site sent this"};
	}
	return (struct sl_http_outcome){0};
}

/* PUT and HEAD of /api/v1/packs/SHA256 (doc/server.md): a pack comes in one piece or in several. */

/* "bytes 100-199/5000", or "/ *" where the whole is not known. */
static bool read_range(const char *text, uint64_t *first, uint64_t *end, uint64_t *total)
{
	char star = 0;
	int past = 0;

	if (strspn(text, "bytes 0123456789-*/") != strlen(text))
		return false;
	if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%n", first, end, total, &past) == 3 && !text[past]) {
		*end += 1;
		return *end > *first && *end <= *total;
	}
	past = 0;
	if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%c%n", first, end, &star, &past) != 3 || star != '*' || text[past])
		return false;
	*end += 1;
	*total = UINT64_MAX;
	return *end > *first;
}

/* Called before the body: checks the headers. */
static struct sl_http_outcome begin_upload(struct sl_request *request)
{
	const char *range = sl_request_header(request, "Content-Range"), *length = sl_request_header(request, "Content-Length");
	struct sl_incoming *in = &request->incoming;
	uint64_t offset = 0, bytes = length ? strtoull(length, NULL, 10) : 0;

	if (!sl_packs_is_name(request->rest))
		return (struct sl_http_outcome){400, "a pack is named by its SHA-256, 64 digits in lower case"};
	snprintf(in->name, sizeof(in->name), "%s", request->rest);
	in->end = bytes;
	in->total = length ? bytes : UINT64_MAX;
	if (range && (!length || !read_range(range, &offset, &in->end, &in->total) || in->end - offset != bytes))
		return (struct sl_http_outcome){400, "Content-Range does not agree with itself or with Content-Length"};
	if (request->server->project_bytes && sl_quota_refuses(request->server, sl_runs_store(request->server), in->name))
		return (struct sl_http_outcome){507, SL_QUOTA_FULL};
	return sl_packs_begin(&request->server->packs, in, offset);
}

static void say(struct sl_request *request, struct sl_http_outcome outcome, uint64_t offset)
{
	char number[24], place[SL_PACKS_NAME + 32];
	const char *const header[][2] = {{"Upload-Offset", number}, {outcome.status == 201 ? "Location" : NULL, place}, {0}};

	snprintf(number, sizeof(number), "%" PRIu64, offset);
	snprintf(place, sizeof(place), "/api/v1/packs/%s", request->incoming.name);
	sl_request_say(request, outcome.status, outcome.why, header);
}

/* Called after the body. */
static void answer_upload(struct sl_request *request)
{
	struct sl_incoming *in = &request->incoming;
	struct sl_http_outcome outcome = request->outcome;

	if (!outcome.status)
		outcome = sl_packs_end(&request->server->packs, in);
	if (outcome.status == 201) {
		sl_escape_print(stderr, "stormlog-server: pack %s, %" PRIu64 " bytes\n", in->name, in->size);
		sl_work_index(request->server->work, in->name);
	}
	say(request, outcome, outcome.status >= 400 ? sl_packs_begun(&request->server->packs, in->name) : in->size);
}

/* True: what was made of the pack says why it cannot be kept; `why` is that sentence, of one line. */
static bool runs_unreadable(const struct sl_server *server, const char *pack, char *why, size_t size)
{
	char path[SL_PACKS_NAME + 64];
	ssize_t length;
	int fd;

	sl_places_of(pack, "failed", path);
	fd = openat(server->packs.folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	length = read(fd, why, size - 1);
	close(fd);
	why[length > 0 ? length : 0] = 0;
	why[strcspn(why, "\r\n")] = 0;
	return true;
}

/* Run: "kept", "waiting" while the pack is read, or why its run cannot be kept. */
static void say_stored(struct sl_request *request, uint64_t size)
{
	char number[24], run[257] = "waiting";
	const char *const header[][2] = {{"Upload-Offset", number}, {"Run", run}, {0}};
	bool is_known;

	snprintf(number, sizeof(number), "%" PRIu64, size);
	if (sl_runs_known(request->server, request->rest, &is_known) && is_known)
		snprintf(run, sizeof(run), "kept");
	else
		runs_unreadable(request->server, request->rest, run, sizeof(run));
	sl_request_say(request, 200, "stored", header);
}

static void answer_head(struct sl_request *request)
{
	struct stat st;
	int fd = -1;

	if (!sl_packs_is_name(request->rest)) {
		sl_request_say(request, 400, "a pack is named by its SHA-256, 64 digits in lower case", NULL);
		return;
	}
	fd = sl_packs_read(&request->server->packs, request->rest, &st);
	snprintf(request->incoming.name, sizeof(request->incoming.name), "%s", request->rest);
	if (fd >= 0) {
		close(fd);
		say_stored(request, (uint64_t)st.st_size);
	} else {
		say(request, (struct sl_http_outcome){404, "not stored"}, sl_packs_begun(&request->server->packs, request->rest));
	}
}

static void answer_download(struct sl_request *request)
{
	static const char *const header[][2] = {{"Content-Disposition", "attachment; filename=\"run.stormlog\""}, {0}};
	struct sl_http_answer answer = {.status = 200, .type = "application/octet-stream", .header = header, .keep = true};
	struct stat st;
	int fd = sl_packs_is_name(request->rest) ? sl_packs_read(&request->server->packs, request->rest, &st) : -1;

	if (fd < 0)
		sl_request_say(request, 404, "there is no such pack", NULL);
	else
		sl_request_file(request, &answer, fd, (uint64_t)st.st_size);
}

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

/* Finds the run of a pack that was just sent: /packs/SHA256. */
static void run_of_pack(struct sl_request *request)
{
	struct sl_store *store = sl_runs_store(request->server);
	char place[64], why[257];
	const char *const header[][2] = {{"Location", place}, {0}};
	struct stat st;
	int64_t run = 0;
	int fd;

	if (sl_packs_is_name(request->rest) && sl_quota_refuses(request->server, store, request->rest)) {
		sl_request_say(request, 507, SL_QUOTA_FULL, NULL);
		return;
	}
	if (!sl_packs_is_name(request->rest) || !store || (fd = sl_packs_read(&request->server->packs, request->rest, &st)) < 0) {
		sl_request_say(request, 404, "there is no such pack", NULL);
		return;
	}
	close(fd);
	if (sl_store_find(store, request->rest, &run) && run) {
		snprintf(place, sizeof(place), "/runs/%" PRId64, run);
		sl_request_say(request, 302, "this run", header);
		return;
	}
	if (!runs_unreadable(request->server, request->rest, why, sizeof(why))) {
		sl_html_wait(request, "This pack is being read.");
		return;
	}
	sl_request_say(request, 422, why, NULL);
}

static void site_static(struct sl_request *request)
{
	for (const struct sl_asset *asset = sl_assets; asset->name; asset++)
		if (!strcmp(asset->name, request->rest)) {
			struct sl_http_answer answer = {.status = 200, .type = asset->type};

			sl_request_static(request, &answer, asset->bytes, asset->size);
			return;
		}
	sl_request_say(request, 404, "there is no such page", NULL);
}

static const struct sl_route routes[] = {
	{"PUT", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_PACK, NULL},
	{"HEAD", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_NONE, answer_head},
	{"GET", "/api/v1/packs/", SL_RIGHT_READ, SL_BODY_NONE, answer_download},
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
	{"GET", "/packs/", SL_RIGHT_READ, SL_BODY_NONE, run_of_pack},
	{"GET", "/runs/", SL_RIGHT_READ, SL_BODY_NONE, sl_run_page},
	{"POST", "/runs/", SL_RIGHT_WRITE, SL_BODY_SMALL, sl_run_change},
	{"GET", "/static/", SL_RIGHT_READ, SL_BODY_NONE, site_static},
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

static enum MHD_Result count_length(void *count, enum MHD_ValueKind kind, const char *name, const char *value)
{
	*(unsigned *)count += !strcasecmp(name, "Content-Length") || !strcasecmp(name, "Transfer-Encoding");
	return MHD_YES;
}

/* True: it has more than one header that says how long its body is. */
static bool request_is_of_two_lengths(const struct sl_request *request)
{
	unsigned count = 0;

	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_length, &count);
	return count > 1;
}

/* Checks the request before any of its body is read. */
static struct sl_http_outcome admit(struct sl_request *request)
{
	struct sl_http_outcome outcome = {0};

	if (request_is_of_two_lengths(request)) /* a proxy before us may have taken the other one */
		outcome = (struct sl_http_outcome){400, "says twice how long it is"};
	if (!outcome.status)
		outcome = check_site(request);
	if (!outcome.status)
		outcome = find_route(request);
	if (!outcome.status)
		outcome = check_right(request, request->route->right);
	if (!outcome.status && request->route->body == SL_BODY_PACK)
		outcome = begin_upload(request);
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
		answer_upload(request); /* the request had reached the upload */
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
