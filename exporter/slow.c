/* SPDX-License-Identifier: MIT */
#include "exporter/slow.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "analyzer/base/memory.h"
#include "common/base.h"
#include "common/now.h"

#define HEADERS_NS (3 * SL_NS_PER_S)
#define ANSWER_NS  (30 * SL_NS_PER_S)
#define AGAIN_NS   (20 * SL_NS_PER_S) /* after an answer; libmicrohttpd ends ten seconds of silence itself */

struct sl_exporter_client {
	struct sl_exporter_client *next, **before;
	int fd;
	uint64_t deadline_ns;
};

static void allow(struct MHD_Connection *connection, uint64_t ns)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct sl_exporter_client *client = info->socket_context;

	if (client)
		client->deadline_ns = sl_now_ns(CLOCK_MONOTONIC) + ns;
}

void sl_exporter_slow_notify(void *context, struct MHD_Connection *connection, void **own, enum MHD_ConnectionNotificationCode code)
{
	struct sl_exporter_slow *slow = context;
	struct sl_exporter_client *client = *own;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*own = client = sl_memory_must(calloc(1, sizeof(*client)));
		client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		client->deadline_ns = sl_now_ns(CLOCK_MONOTONIC) + HEADERS_NS;
		client->next = slow->first;
		client->before = &slow->first;
		if (client->next)
			client->next->before = &client->next;
		slow->first = client;
	} else if (client) {
		*client->before = client->next;
		if (client->next)
			client->next->before = client->before;
		free(client);
		*own = NULL;
	}
}

void sl_exporter_slow_completed(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code)
{
	allow(connection, AGAIN_NS);
}

void sl_exporter_slow_answers(struct MHD_Connection *connection)
{
	allow(connection, ANSWER_NS);
}

void sl_exporter_slow_look(const struct sl_exporter_slow *slow)
{
	uint64_t now_ns = sl_now_ns(CLOCK_MONOTONIC);

	for (const struct sl_exporter_client *client = slow->first; client; client = client->next)
		if (now_ns > client->deadline_ns)
			shutdown(client->fd, SHUT_RDWR); /* libmicrohttpd then sees the end and closes it */
}
