/* SPDX-License-Identifier: MIT */
/*
 * A request and its answer, over libmicrohttpd.  Every answer has headers that forbid the browser to run anything but our own
 * scripts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/server.h"

struct MHD_Connection;

struct sl_request {
	struct sl_server *server;
	struct MHD_Connection *connection;
	const struct sl_route *route;
	const char *method, *rest; /* rest: the path after the route's */
	char *path;		   /* allocated copy of the request's path */
	struct sl_incoming incoming;
	struct sl_http_outcome outcome; /* of an upload so far; status 0: go on */
	char who[SL_TOKEN_NAME + 1];	/* name of the token; "": no token was sent */
	char *body;			/* a small body, whole; else NULL */
	size_t body_size;
	bool answered;
};

enum sl_route_body { SL_BODY_NONE, SL_BODY_SMALL, SL_BODY_PACK };

struct sl_route {
	const char *method; /* GET also serves HEAD, where HEAD has no route of its own */
	const char *path;   /* a path that ends in '/' matches what follows too (request->rest) */
	enum sl_right right;
	enum sl_route_body body;
	void (*answer)(struct sl_request *request); /* gives exactly one answer; a small body has arrived completely */
};

/* A value from the query string, or from the request's headers; NULL: absent. */
const char *sl_request_argument(const struct sl_request *request, const char *name);
const char *sl_request_header(const struct sl_request *request, const char *name);

/* True: it has more than one header that says how long its body is. */
bool sl_request_is_of_two_lengths(const struct sl_request *request);

/* ---- answers: exactly one of these */

struct sl_answer {
	unsigned status;
	const char *type, *policy;	/* policy NULL: no script may run */
	const char *const (*header)[2]; /* more headers, ended by a name of NULL; NULL: none */
	bool keep;			/* the content never changes, so that a browser may keep it */
};
void sl_request_text(struct sl_request *request, const struct sl_answer *answer, char *text, size_t size); /* frees text */
void sl_request_static(struct sl_request *request, const struct sl_answer *answer, const void *text, size_t size);
void sl_request_file(struct sl_request *request, const struct sl_answer *answer, int fd, uint64_t size); /* closes fd */
/* Answers with a sentence: as JSON below /api/, else as a page. */
void sl_request_say(struct sl_request *request, unsigned status, const char *why, const char *const (*header)[2]);
