/* SPDX-License-Identifier: MIT */
/* Ends connections that bring their headers or take an answer too slowly.  libmicrohttpd itself waits as long as a byte comes
 * now and then.  One thread. */
#pragma once

#include <microhttpd.h>

struct exporter_client;
struct exporter_slow {
	struct exporter_client *first;
};

/* For MHD_OPTION_NOTIFY_CONNECTION and MHD_OPTION_NOTIFY_COMPLETED. */
void exporter_slow_notify(void *slow, struct MHD_Connection *connection, void **own, enum MHD_ConnectionNotificationCode code);
void exporter_slow_completed(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code);

void exporter_slow_answers(struct MHD_Connection *connection); /* its headers have arrived */
void exporter_slow_look(const struct exporter_slow *slow);     /* call it every second */
