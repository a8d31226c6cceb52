/* SPDX-License-Identifier: MIT */
/*
 * --project-quota: packs of one project are together at most so large.  Of which project a run is, its child says, after the
 * upload: so a pack too many is let go again, and remembered, so that who sends it once more is refused before a byte of it.
 */
#ifndef SERVER_QUOTA_H
#define SERVER_QUOTA_H

#include <stdbool.h>

#include "analyzer/catalogue/store.h"
#include "server/server.h"

/* What a pack that is refused is answered with, as 507. */
#define SL_QUOTA_FULL "the quota of this run's project is used up (--project-quota): it is not kept; reading goes on"

/* Room for this pack among those of its project (NULL: of none).  A pack that is no run yet and has no room is removed.  One thread. */
bool sl_quota_admits(struct sl_server *server, struct sl_store *store, const char *project, const char *pack);
/* The pack was let go, and there is no room for it yet.  Any thread. */
bool sl_quota_refuses(const struct sl_server *server, struct sl_store *store, const char *pack);

#endif
