/* SPDX-License-Identifier: MIT */
/*
 * Which packs a store keeps: the newest runs of each project, limited by the options in number, total size and age.  Pinned
 * runs, and the runs on both sides of a change of the project's peak, are always kept.
 */
#pragma once

#include "server/server.h"

/* Called by one thread, now and then. */
void sl_keep(struct sl_server *server);
