/* SPDX-License-Identifier: MIT */
/*
 * What a store keeps: of each project the newest runs, bounded in number, total size and age by the options.  Pinned runs, and
 * the runs on both sides of a change of the project's peak, are kept whatever the options say.
 */
#ifndef SERVER_KEEP_H
#define SERVER_KEEP_H

#include "server/server.h"

/* One thread, now and then. */
void sl_keep(struct sl_server *server);

#endif
