/* SPDX-License-Identifier: MIT */
/*
 * HTTP: libmicrohttpd behind few calls.  A request that is too large, too slow, from a stranger or from another site ends here;
 * what is left goes to the route that its method and path name.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <sys/socket.h>

#include "server/server.h"

struct sl_http;
/* Listens, in threads of its own.  NULL: errno. */
struct sl_http *sl_http_start(struct sl_server *server, const struct sockaddr *address, socklen_t size, int *port);
void sl_http_stop(struct sl_http *http);

#endif
