/* SPDX-License-Identifier: MIT */
/* Memory of the machine: processes that the kernel killed for it, or beside which it killed others of their cgroup. */
#include "analyzer/analyses/analysis.h"

#include "analyzer/base/amounts.h"
#include "analyzer/report/report.h"

/* A process does not see its own kill by the kernel, only those of others in its group. */
static bool kernel_killed(const struct sl_host *host)
{
	return host->oom_kills != SL_UNKNOWN && host->oom_kills > host->oom_kills_before;
}

/* The most that its cgroup held while it was sampled (the kernel's own peak may be from before this process).  0: unknown. */
static uint64_t group_held(const struct sl_process *process)
{
	const struct sl_model *model = process->model;

	if (model->host.cgroup_held) /* 0: an older summary, in which all was of one group */
		return model->host.cgroup_held == SL_UNKNOWN ? 0 : model->host.cgroup_held;
	return sl_timeline_max(&model->timeline, model->host.cgroup, model->timeline.begin_ns, model->timeline.end_ns);
}

static bool was_near(const struct sl_process *process)
{
	const struct sl_host *host = &process->model->host;

	return host->cgroup_limit != SL_UNKNOWN && (double)group_held(process) >= SL_NEARLY_ALL * (double)host->cgroup_limit;
}

/* count: the kernel killed in its cgroup; other: what the cgroup held, 0: unknown. */
static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_process *process = &report->processes[index];
	const struct sl_host *host = &process->model->host;
	bool killed = process->trace->status == SL_STATUS_INTERRUPTED;

	if (!kernel_killed(host) && !(killed && was_near(process)))
		return;
	sl_report_find(report, &(struct sl_finding){
				       .kind = SL_FOUND_host_killed,
				       .severity = killed ? "critical" : "warning",
				       .process = (int)index,
				       .device = -1,
				       .unix_ns = process->ended_unix_ns,
				       .bytes = host->rss_peak,
				       .count = kernel_killed(host),
				       .other = group_held(process),
				       .lacked = killed,
			       });
}

const struct sl_analysis sl_analysis_host = {.name = "host", .find_in_process = find_in_process};
