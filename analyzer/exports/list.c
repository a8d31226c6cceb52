/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include "analyzer/report/owners.h"
#include "analyzer/model/replay/replay.h"

#define EXPORTS(E) E(snapshot) E(perfetto) E(pprof) E(collapsed) E(speedscope) E(prometheus) E(sqlite) E(csv) E(ndjson)

#define DECLARED(name) extern const struct sl_export sl_export_##name;
EXPORTS(DECLARED)

#define ENTRY(name) &sl_export_##name,
const struct sl_export *const sl_exports[] = {EXPORTS(ENTRY) NULL};

void sl_export_replay(struct sl_merge *merge)
{
	while (sl_merge_next(merge))
		;
	for (unsigned i = 0; i < merge->count; i++)
		sl_replay_end(merge->processes[i].process.model, sl_trace_lost_events(merge->processes[i].process.trace));
}
