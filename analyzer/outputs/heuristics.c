/* SPDX-License-Identifier: MIT */
/* The results of Stormlog's leak heuristics for a process, in Stormlog's words, as a part of report.json. */
#include "analyzer/outputs/output.h"

static void begin(struct sl_json *j, const char *analyzer, const char *type, const char *severity)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "analyzer", analyzer);
	sl_json_string(j, "type", type);
	sl_json_string(j, "severity", severity);
	sl_json_object(j, "evidence");
}

static void end(struct sl_json *j)
{
	sl_json_end(j);
	sl_json_end(j);
}

static void put_leaks(struct sl_json *j, const struct sl_leak_series *s)
{
	if (s->monotonic) {
		begin(j, "tensorflow", "monotonic_increase", s->monotonic_high ? "high" : "medium");
		sl_json_double(j, "rising_share", s->rising_share);
		end(j);
	}
	if (s->spikes) {
		begin(j, "tensorflow", "memory_spikes", "medium");
		sl_json_uint(j, "spike_count", s->spikes);
		sl_json_double(j, "spike_limit_mb", s->spike_limit);
		end(j);
	}
	if (s->no_cleanup) {
		begin(j, "tensorflow", "insufficient_cleanup", "medium");
		sl_json_double(j, "initial_avg", s->first_average);
		sl_json_double(j, "final_avg", s->last_average);
		end(j);
	}
	if (s->drift) {
		begin(j, "jax", "leak", s->drift_high ? "high" : "medium");
		sl_json_double(j, "slope", s->drift_slope);
		end(j);
	}
}

static void put_patterns(struct sl_json *j, const struct sl_leak_series *s)
{
	if (s->periodic) {
		begin(j, "tensorflow", "periodic_pattern", NULL);
		sl_json_double(j, "correlation", s->correlation);
		end(j);
	}
	if (s->stepped) {
		begin(j, "tensorflow", "step_pattern", NULL);
		sl_json_uint(j, "step_count", s->steps);
		end(j);
	}
	if (s->autocorrelated) {
		begin(j, "jax", "periodic", NULL);
		end(j);
	}
}

void sl_heuristics_put(struct sl_json *j, const struct sl_process *process)
{
	sl_json_array(j, "leak_heuristics");
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		sl_json_object(j, NULL);
		sl_json_int(j, "device", found->device);
		sl_json_uint(j, "samples", found->samples);
		sl_json_array(j, "patterns");
		put_leaks(j, &found->series);
		put_patterns(j, &found->series);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
}
