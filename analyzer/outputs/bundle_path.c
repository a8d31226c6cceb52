/* SPDX-License-Identifier: MIT */
/* oom_dump_<utc>_<pid>_<backend>_<n>: one bundle per error, its attempts together. */
#include <time.h>

#include "analyzer/outputs/output.h"

bool sl_oom_bundle_path(const struct sl_process *process, const struct sl_oom *oom, char *path, size_t size)
{
	const struct sl_oom *first = &process->model->ooms.item[oom->group];
	const struct sl_hook *hook = sl_header_hook(process->model->header, first->api);
	time_t s = (time_t)(sl_process_unix(process, first->time_ns) / SL_NS_PER_S);
	char utc[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(utc, sizeof(utc), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(path, size, "oom/oom_dump_%s_%lld_%s_%u", utc, (long long)process->trace->header.pid,
		 hook && (hook->family == SL_FAMILY_hip || hook->family == SL_FAMILY_hsa) ? "rocm" : "cuda", oom->group + 1);
	return true;
}
