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

const struct sl_oom *sl_bundle_next(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_model *model = process->model;

	for (size_t i = oom ? (size_t)(oom - model->ooms.item) + 1 : 0; i < model->ooms.count; i++) {
		oom = &model->ooms.item[i];
		if (oom->group == i && sl_process_unix(process, oom->time_ns) >= process->report->bundles_from_ns)
			return oom;
	}
	return NULL;
}

uint64_t *sl_bundle_times(const struct sl_report *report, size_t *count)
{
	SL_VECTOR(uint64_t) times = {0};

	for (unsigned i = 0; i < report->process_count; i++)
		for (const struct sl_oom *oom = NULL; (oom = sl_bundle_next(&report->processes[i], oom));)
			*SL_PUSH(&times) = sl_process_unix(&report->processes[i], oom->time_ns);
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
	const struct sl_oom *first = &process->model->ooms.item[oom->group], *one = NULL;
	const char *backend = sl_bundle_backend(process, first);
	int64_t second = second_of(process, first);
	unsigned number = 1;
	time_t s = (time_t)second;
	char utc[32];
	struct tm tm;

	while ((one = sl_bundle_next(process, one)) && one < first)
		number += second_of(process, one) == second && !strcmp(sl_bundle_backend(process, one), backend);
	if (one != first || sl_process_unix(process, first->time_ns) < process->report->bundles_kept_ns)
		return false;
	gmtime_r(&s, &tm);
	strftime(utc, sizeof(utc), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(path, size, "oom/oom_dump_%s_%lld_%s_%u", utc, (long long)process->trace->header.pid, backend, number);
	return true;
}
