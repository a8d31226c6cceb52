/* SPDX-License-Identifier: MIT */
/*
 * What a store keeps: of each project the newest runs, as many, as large together and as young as the options say.  A run that is
 * pinned, or stands beside a change of its project's peak, stays whatever they say.
 */
#ifndef SERVER_KEEP_H
#define SERVER_KEEP_H

#include "server/server.h"

/* One thread, now and then. */
void sl_keep(struct sl_server *server);

#endif
