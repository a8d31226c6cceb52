/* SPDX-License-Identifier: MIT */
/*
 * Which packs a store keeps: the newest runs of each project, limited by the options in number, total size and age.  Pinned
 * runs, and the runs on both sides of a change of the project's peak, are always kept; so is everything while the catalogue
 * does not answer.  The caller first has every pack read whose run is not in the catalogue: what may go depends on all runs.
 */
#pragma once

#include "server/server.h"

/* Called by one thread, now and then. */
void sl_keep(struct sl_server *server);
