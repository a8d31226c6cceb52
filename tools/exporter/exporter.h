/* SPDX-License-Identifier: MIT */
/* stormlog-exporter: what its files share.  One thread. */
#pragma once

#include "common/arguments.h"
#include "analyzer/follow/follow.h"

#define EXPORTER_DEVICES SL_FIGURES_DEVICES

/* The Kubernetes names of a process, read from the node; "" where unknown. */
struct sl_exporter_where {
	char pod[254], namespace[254], container[254]; /* Kubernetes' longest names */
};

/* What the exporter remembers of a process in addition to what sl_follow keeps. */
struct sl_exporter_seen {
	const struct sl_followed *followed; /* compared together with its start, since the address may be used again */
	uint64_t started_unix_ns;
	struct sl_exporter_where where;
	struct sl_met met;
	struct sl_outlook outlook[EXPORTER_DEVICES]; /* by their place in `met` */
	uint64_t ended_ns;			     /* 0: it is still running */
};

struct sl_exporter {
	struct sl_follow *follow;
	SL_VECTOR(struct sl_exporter_seen) seen; /* one for each process of sl_follow, in the same order */
	const char *root;			 /* prefix of the node's /proc and /var: "" or /host */
	struct sl_texts names;			 /* names by which it may be addressed, besides addresses and localhost */
	unsigned max_processes;			 /* how many processes may have series */
	uint64_t now_ns, cost_ns;
	unsigned *shown, shown_count, left_out; /* during one answer: indexes of the processes with series */
};

/* families.c: finds the pod of a process from its cgroup and kubelet's links to logs, else from its --meta. */
void sl_exporter_where(struct sl_exporter_where *where, const char *root, const struct sl_process *process);

/* tools/exporter/families.c: writes all series, as OpenMetrics 1.0 if open_metrics, else in Prometheus's older text format. */
void sl_exporter_write(struct sl_exporter *exporter, FILE *out, bool open_metrics);
