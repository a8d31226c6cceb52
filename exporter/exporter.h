/* SPDX-License-Identifier: MIT */
/* stormlog-exporter: what its files share.  One thread. */
#ifndef EXPORTER_EXPORTER_H
#define EXPORTER_EXPORTER_H

#include "analyzer/follow/figures.h"
#include "analyzer/follow/forecast.h"

#define EXPORTER_DEVICES   16 /* of a process */
#define EXPORTER_LIBRARIES 8  /* of a device of a process, the largest; the others are one series */

/* Where a process runs, by what the node says of it; "" where it says nothing. */
struct where {
	char pod[254], namespace[254], container[254]; /* Kubernetes' longest names */
};

/* What this program remembers of a process, beside what is followed. */
struct seen {
	const struct sl_followed *followed; /* with when it began: an address is used again */
	uint64_t started_unix_ns;
	struct where where;
	struct sl_trend trend[EXPORTER_DEVICES];
	struct sl_forecast forecast[EXPORTER_DEVICES];
	uint64_t ended_ns; /* 0: it runs */
};

struct exporter {
	struct sl_follow *follow;
	SL_VECTOR(struct seen) seen; /* as in follow */
	const char *root;	     /* where the node's /proc and /var are: "" or /host */
	unsigned most;		     /* processes that have series */
	uint64_t now_ns, cost_ns;
	unsigned *shown, shown_count, left_out; /* while it writes: indexes */
};

/* exporter/where.c: the pod of a process, by its cgroup and kubelet's links to logs; else what the program was told (--meta). */
void exporter_where(struct where *where, const char *root, const struct sl_process *process);
/* The number that the node's tools give a device, by its PCI id; -1: unknown. */
int exporter_gpu(const char *root, const char *pci);

/* exporter/families.c: all series; open_metrics: as OpenMetrics 1.0, else in Prometheus's older text. */
void exporter_write(struct exporter *exporter, FILE *out, bool open_metrics);

#endif
