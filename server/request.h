/* SPDX-License-Identifier: MIT */
/*
 * A request and its answer, over libmicrohttpd.  Every answer leaves with headers that let a browser run nothing of it but our own.
 */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/server.h"

struct MHD_Connection;

struct sl_request {
	struct sl_server *server;
	struct MHD_Connection *connection;
	const struct sl_route *route;
	const char *method, *rest; /* of the path behind the route's */
	char *path;		   /* the request's own */
	struct sl_incoming incoming;
	struct sl_http_outcome outcome; /* of an upload so far; status 0: go on */
	char who[SL_TOKEN_NAME + 1];	/* the token's name; "": it had none */
	char *body;			/* of a small one */
	size_t body_size;
	bool answered;
};

enum sl_route_body { SL_BODY_NONE, SL_BODY_SMALL, SL_BODY_PACK };

struct sl_route {
	const char *method; /* GET is HEAD too, where HEAD has no route of its own */
	const char *path;   /* ending in '/': and what follows, as request->rest */
	enum sl_right right;
	enum sl_route_body body;
	void (*answer)(struct sl_request *request); /* exactly one answer; a small body is complete */
};

/* A value of the query or NULL; a header of the request or NULL. */
const char *sl_request_argument(const struct sl_request *request, const char *name);
const char *sl_request_header(const struct sl_request *request, const char *name);

/* ---- answers: exactly one of these */

struct sl_answer {
	unsigned status;
	const char *type, *policy;	/* policy NULL: nothing may run */
	const char *const (*header)[2]; /* more headers, a name of NULL ends them; NULL: none */
	bool keep;			/* never changes: a browser may keep it */
};
void sl_request_text(struct sl_request *request, const struct sl_answer *answer, char *text, size_t size); /* frees text */
void sl_request_static(struct sl_request *request, const struct sl_answer *answer, const void *text, size_t size);
void sl_request_file(struct sl_request *request, const struct sl_answer *answer, int fd, uint64_t size); /* closes fd */
/* A sentence: as JSON below /api/, else as a page. */
void sl_request_say(struct sl_request *request, unsigned status, const char *why, const char *const (*header)[2]);

#endif
