/* SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <time.h>

#include "analyzer/base/memory.h"

enum { HEADERS_S = 10, FIRST_S = 30, RATE = 16 << 10 };

struct client {
	struct client *next, **before;
	int fd;
	uint64_t deadline_s; /* read by the watchdog, written by the connection's thread */
	uint64_t began_s, bytes;
};

struct sl_slow {
	pthread_mutex_t mutex;
	pthread_cond_t end;
	pthread_t thread;
	struct client *first;
	bool ends;
};

static uint64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

static void until(struct client *client, uint64_t deadline_s)
{
	__atomic_store_n(&client->deadline_s, deadline_s, __ATOMIC_RELAXED);
}

static void *watch(void *context)
{
	struct sl_slow *slow = context;

	pthread_mutex_lock(&slow->mutex);
	while (!slow->ends) {
		struct timespec next;
		uint64_t now = now_s();

		for (struct client *client = slow->first; client; client = client->next)
			if (now > __atomic_load_n(&client->deadline_s, __ATOMIC_RELAXED))
				shutdown(client->fd, SHUT_RDWR); /* its thread then sees the end and closes it */
		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_sec++;
		pthread_cond_timedwait(&slow->end, &slow->mutex, &next);
	}
	pthread_mutex_unlock(&slow->mutex);
	return NULL;
}

struct sl_slow *sl_slow_new(void)
{
	struct sl_slow *slow = sl_memory_must(calloc(1, sizeof(*slow)));

	pthread_mutex_init(&slow->mutex, NULL);
	pthread_cond_init(&slow->end, NULL);
	if (pthread_create(&slow->thread, NULL, watch, slow))
		abort();
	return slow;
}

void sl_slow_free(struct sl_slow *slow)
{
	pthread_mutex_lock(&slow->mutex);
	slow->ends = true;
	pthread_cond_signal(&slow->end);
	pthread_mutex_unlock(&slow->mutex);
	pthread_join(slow->thread, NULL);
	free(slow);
}

static struct client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info->socket_context;
}

static void add(struct sl_slow *slow, struct client *client)
{
	client->next = slow->first;
	client->before = &slow->first;
	if (client->next)
		client->next->before = &client->next;
	slow->first = client;
}

void sl_slow_notify(void *context, struct MHD_Connection *connection, void **own, enum MHD_ConnectionNotificationCode code)
{
	struct sl_slow *slow = context;
	struct client *client = *own;

	pthread_mutex_lock(&slow->mutex);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*own = client = sl_memory_must(calloc(1, sizeof(*client)));
		client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		until(client, now_s() + HEADERS_S);
		add(slow, client);
	} else if (client) {
		*client->before = client->next;
		if (client->next)
			client->next->before = client->before;
		free(client);
		*own = NULL;
	}
	pthread_mutex_unlock(&slow->mutex);
}

void sl_slow_began(struct MHD_Connection *connection)
{
	struct client *client = client_of(connection);

	client->began_s = now_s();
	client->bytes = 0;
	until(client, client->began_s + FIRST_S);
}

void sl_slow_took(struct MHD_Connection *connection, uint64_t bytes)
{
	struct client *client = client_of(connection);

	client->bytes += bytes;
	until(client, client->began_s + FIRST_S + client->bytes / RATE);
}

void sl_slow_answers(struct MHD_Connection *connection, uint64_t bytes)
{
	until(client_of(connection), now_s() + FIRST_S + bytes / RATE);
}

void sl_slow_ended(struct MHD_Connection *connection)
{
	struct client *client = client_of(connection);

	if (client)
		until(client, now_s() + HEADERS_S + FIRST_S);
}
