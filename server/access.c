/* SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <netinet/in.h>
#include <strings.h>
#include <time.h>

#include "analyzer/base/host_header.h"

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

struct sl_http_outcome sl_access_right(struct sl_request *request, enum sl_right right)
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

struct sl_http_outcome sl_access_site(const struct sl_request *request)
{
	const char *site = sl_request_header(request, "Sec-Fetch-Site"), *origin = sl_request_header(request, "Origin"),
		   *to = sl_request_header(request, "Host");
	char host[SL_HOST_HEADER_MAX], from[SL_HOST_HEADER_MAX];
	bool changes = strcmp(request->method, "GET") && strcmp(request->method, "HEAD");

	sl_host_header_name(to, host);
	if (!sl_host_header_is_ours(host, request->server->names, request->server->name_count))
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
