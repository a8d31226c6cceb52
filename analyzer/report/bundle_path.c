/* SPDX-License-Identifier: MIT */
/*
 * Names of bundles: oom_dump_<utc>_<pid>_<backend>_<n>, one for each error with all its attempts.  Within one second n counts
 * up (upstream/files/bundle_write.c).  Errors are written in order, so the number is known before the bundle is written.
 */
#include "analyzer/report/bundle_path.h"

#include <string.h>
#include <time.h>

static const char *backend_of(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);

	return hook && (hook->family == SL_FAMILY_hip || hook->family == SL_FAMILY_hsa) ? "rocm" : "cuda";
}

const char *sl_bundle_reason(const struct sl_oom *oom)
{
	return oom->reported_by_torch ? "torch.cuda.OutOfMemoryError" : "message_pattern:out of memory";
}

/* Signed, as the bundle's writer counts: a clock may be centuries off. */
static int64_t second_of(const struct sl_process *process, const struct sl_oom *oom)
{
	return (int64_t)sl_process_unix(process, oom->time_ns) / (int64_t)SL_NS_PER_S;
}

bool sl_bundle_path(const struct sl_process *process, const struct sl_oom *oom, char *path, size_t size)
{
	const struct sl_oom *all = process->model->ooms.item, *first = &all[oom->group];
	int64_t second = second_of(process, first);
	unsigned number = 1;
	time_t s = (time_t)second;
	char utc[32];
	struct tm tm;

	if (sl_process_unix(process, first->time_ns) < process->bundles_from_ns ||
	    sl_process_unix(process, first->time_ns) < process->bundles_kept_ns)
		return false;
	for (uint32_t i = 0; i < oom->group; i++) {
		if (all[i].group != i || sl_process_unix(process, all[i].time_ns) < process->bundles_from_ns)
			continue;
		number +=
			second_of(process, &all[i]) == second && !strcmp(backend_of(process, &all[i]), backend_of(process, first));
	}
	gmtime_r(&s, &tm);
	strftime(utc, sizeof(utc), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(path, size, "oom/oom_dump_%s_%lld_%s_%u", utc, (long long)process->trace->header.pid, backend_of(process, first),
		 number);
	return true;
}
