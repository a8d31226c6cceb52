/* SPDX-License-Identifier: MIT */
/*
 * Changes for the worse among the newest runs of each project: in its peak, leak, errors and largest places.  They are kept in
 * memory and computed again on the worker's thread when a run arrives; any thread may read them.
 */
#ifndef SERVER_WORSE_H
#define SERVER_WORSE_H

#include "analyzer/base/map.h"
#include "server/server.h"

struct sl_worse {
	char project[256], what[256];	  /* what: for people */
	int64_t metric;			  /* 0: `what` is a field */
	int64_t before_run, run, when_ns; /* the last before the change, and the one that made it */
	double before, after;
	bool bytes;
};

void sl_worse_look(struct sl_server *server, const char *project); /* "": runs without one */
/* Those of the newest runs, as texts of the map. */
void sl_worse_projects(struct sl_server *server, struct sl_map *projects);
/* The newest first. */
void sl_worse_each(void (*each)(void *context, const struct sl_worse *worse), void *context);

#endif
