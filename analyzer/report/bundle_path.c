/* SPDX-License-Identifier: MIT */
/*
 * Names of bundles: oom_dump_<utc>_<pid>_<backend>_<n>, one for each error with all its attempts.  Within one second n counts
 * up (upstream/files/bundle_write.c).  Errors are written in order, so the number is known before the bundle is written.
 */
#include "analyzer/report/bundle_path.h"

#include "analyzer/base/stats.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *sl_bundle_backend(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);

	return hook && (hook->family == SL_FAMILY_hip || hook->family == SL_FAMILY_hsa) ? "rocm" : "cuda";
}

const char *sl_bundle_reason(const struct sl_oom *oom)
{
	return oom->reported_by_torch ? "torch.cuda.OutOfMemoryError" : "message_pattern:out of memory";
}

bool sl_bundle_is_of(const struct sl_process *process, size_t at)
{
	const struct sl_oom *oom = &process->model->ooms.item[at];

	return oom->group == at && sl_process_unix(process, oom->time_ns) >= process->bundles_from_ns;
}

uint64_t *sl_bundle_times(const struct sl_report *report, size_t *count)
{
	SL_VECTOR(uint64_t) times = {0};

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].model->ooms.count; k++)
			if (sl_bundle_is_of(&report->processes[i], k))
				*SL_PUSH(&times) =
					sl_process_unix(&report->processes[i], report->processes[i].model->ooms.item[k].time_ns);
	if (times.count)
		qsort(times.item, times.count, sizeof(*times.item), sl_stats_by_number);
	*count = times.count;
	return times.item;
}

/* Signed, as the bundle's writer counts: a clock may be centuries off. */
static int64_t second_of(const struct sl_process *process, const struct sl_oom *oom)
{
	return (int64_t)sl_process_unix(process, oom->time_ns) / (int64_t)SL_NS_PER_S;
}

bool sl_bundle_path(const struct sl_process *process, const struct sl_oom *oom, char *path, size_t size)
{
	const struct sl_oom *all = process->model->ooms.item, *first = &all[oom->group];
	const char *backend = sl_bundle_backend(process, first);
	int64_t second = second_of(process, first);
	unsigned number = 1;
	time_t s = (time_t)second;
	char utc[32];
	struct tm tm;

	if (!sl_bundle_is_of(process, oom->group) || sl_process_unix(process, first->time_ns) < process->bundles_kept_ns)
		return false;
	for (uint32_t i = 0; i < oom->group; i++)
		number += sl_bundle_is_of(process, i) && second_of(process, &all[i]) == second &&
			  !strcmp(sl_bundle_backend(process, &all[i]), backend);
	gmtime_r(&s, &tm);
	strftime(utc, sizeof(utc), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(path, size, "oom/oom_dump_%s_%lld_%s_%u", utc, (long long)process->trace->header.pid, backend, number);
	return true;
}
