/* SPDX-License-Identifier: MIT */
/*
 * --project-quota limits what a project's runs take together.  Which project a pack belongs to is known only after its upload,
 * when a child process has read it.  A pack that does not fit is then removed and remembered, so that a second try is refused
 * before any byte.
 */
#pragma once

#include <stdbool.h>

#include "analyzer/catalogue/store.h"
#include "server/server.h"

/* The sentence of a 507 answer to a refused pack. */
#define SL_QUOTA_FULL "the quota of this run's project is used up (--project-quota): it is not kept; reading goes on"

/* Bytes of a run: its pack and its pages, as --quota counts them; 0: there is no such pack.  Any thread. */
uint64_t sl_quota_taken(const struct sl_server *server, const char *pack);

/* True: this pack fits into its project (NULL: no project).  A new pack that does not fit is removed.  One thread. */
bool sl_quota_admits(struct sl_server *server, struct sl_store *store, const char *project, const char *pack);
/* To be called when a run's pack was removed, or what was made of it changed.  Any thread. */
void sl_quota_changed(const struct sl_server *server, const char *pack);
/* True: the pack was removed for lack of room, and there is still no room.  Any thread. */
bool sl_quota_refuses(struct sl_server *server, struct sl_store *store, const char *pack);
