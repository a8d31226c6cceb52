/* SPDX-License-Identifier: MIT */
/*
 * HTTP: wraps libmicrohttpd.  Requests that are too large, too slow, unauthorized or sent by another site are answered here;
 * the rest go to the route named by their method and path.
 */
#pragma once

#include <sys/socket.h>

#include "server/server.h"

struct sl_http;
/* Starts listening, with threads of its own.  NULL: errno. */
struct sl_http *sl_http_start(struct sl_server *server, const struct sockaddr *address, socklen_t size, int *port);
void sl_http_stop(struct sl_http *http);
