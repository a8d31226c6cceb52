/* SPDX-License-Identifier: MIT */
/*
 * Changes for the worse in the newest runs of each project: peak, leaks, errors and largest places.  Kept in memory and
 * computed again, on the worker's thread, when a run arrives.  Any thread may read them.
 */
#pragma once

#include "analyzer/base/map.h"
#include "server/server.h"

struct sl_worse {
	const char *project;		  /* stays valid; "": runs without a project */
	char what[256];			  /* a phrase for people */
	int64_t metric;			  /* 0: `what` is a field */
	int64_t before_run, run, when_ns; /* the last run before the change, and the run that made it */
	char commit[16];		  /* of the run that made it; "": not known */
	double before, after;
	bool bytes, settled; /* settled: later runs cannot change this result */
};

void sl_worse_look(struct sl_server *server, const char *project); /* "": runs without a project */
/* The projects of the newest runs, as the map's texts. */
void sl_worse_projects(struct sl_server *server, struct sl_map *projects);
/* Newest first. */
void sl_worse_each(void (*each)(void *context, const struct sl_worse *worse), void *context);
