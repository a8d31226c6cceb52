/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include "analyzer/report/owners.h"
#include "analyzer/model/replay.h"

extern const struct sl_export sl_export_collapsed, sl_export_csv, sl_export_ndjson, sl_export_perfetto, sl_export_pprof,
	sl_export_prometheus, sl_export_snapshot, sl_export_speedscope, sl_export_sqlite;

const struct sl_export *const sl_exports[] = {
	&sl_export_snapshot,   &sl_export_perfetto, &sl_export_pprof, &sl_export_collapsed, &sl_export_speedscope,
	&sl_export_prometheus, &sl_export_sqlite,   &sl_export_csv,   &sl_export_ndjson,    NULL};

void sl_export_replay(struct sl_stream *stream)
{
	while (sl_stream_next(stream))
		;
	for (unsigned i = 0; i < stream->count; i++)
		sl_replay_end(stream->processes[i].process.model);
}

uint64_t sl_export_weight(const struct sl_stream_process *process, const struct sl_site *site, enum sl_weigh weigh)
{
	if (!sl_owners_shows(&process->process, site))
		return 0;
	return weigh == SL_WEIGH_PEAK	? sl_model_site_at_peak(process->process.model, site)
	       : weigh == SL_WEIGH_LIVE ? site->live_bytes
					: site->total_bytes;
}
