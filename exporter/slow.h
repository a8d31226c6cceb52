/* SPDX-License-Identifier: MIT */
/* Ends connections that bring their headers or take an answer too slowly.  libmicrohttpd itself waits as long as a byte comes
 * now and then.  One thread. */
#pragma once

#include <microhttpd.h>

struct sl_exporter_client;
struct sl_exporter_slow {
	struct sl_exporter_client *first;
};

/* For MHD_OPTION_NOTIFY_CONNECTION and MHD_OPTION_NOTIFY_COMPLETED. */
void sl_exporter_slow_notify(void *slow, struct MHD_Connection *connection, void **own, enum MHD_ConnectionNotificationCode code);
void sl_exporter_slow_completed(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code);

void sl_exporter_slow_answers(struct MHD_Connection *connection); /* its headers have arrived */
void sl_exporter_slow_look(const struct sl_exporter_slow *slow);  /* call it every second */
