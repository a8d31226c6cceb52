/* SPDX-License-Identifier: MIT */
/* Findings: the list that becomes cards, and those of upstream's analyses of a session's samples. */

#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/page/page.h"

#define INTERVALS 12 /* of collectives, most certain first */
#define SUSPECTS  4

struct sl_page_finding *sl_page_find(struct sl_page *page, const char *id, const char *severity)
{
	struct sl_page_finding *finding;

	finding = SL_PUSH(&page->findings);
	*finding = (struct sl_page_finding){.id = id, .severity = severity, .process = -1, .device = -1, .bytes = SL_UNKNOWN};
	return finding;
}

static void evidence(struct sl_page_finding *finding, const char *name, const char *format, double value)
{
	char *text = finding->evidence[finding->evidence_count].value;

	if (format)
		snprintf(text, sizeof(finding->evidence[0].value), format, value);
	else
		snprintf(text, sizeof(finding->evidence[0].value), "%s%s", value < 0 ? "-" : "",
			 SL_SIZE(sl_stats_bytes(value < 0 ? -value : value)));
	snprintf(finding->evidence[finding->evidence_count++].name, sizeof(finding->evidence[0].name), "%s", name);
}

static void take_gap(struct sl_page *page, const struct sl_gap_finding *gap,
		     int (*process_of)(const struct sl_page *page, int64_t rank, int64_t pid))
{
	static const char *const ids[] = {"gap.transient_spike", "gap.persistent_drift", "gap.fragmentation_like"};
	const char *severity = page->report ? "info" : gap->critical ? "critical" : "warning"; /* with a trace, the report judges */
	struct sl_page_finding *f = sl_page_find(page, ids[gap->kind], severity);

	snprintf(f->text, sizeof(f->text), "%s", gap->description);
	f->advice = sl_gap_advice[gap->kind];
	f->process = process_of(page, gap->event->rank, gap->event->pid);
	f->device = (int)gap->event->device_id;
	f->from_unix = f->to_unix = (uint64_t)gap->event->timestamp_ns;
	switch (gap->kind) {
	case SL_GAP_SPIKE:
		evidence(f, "largest gap", NULL, gap->spike.max_gap);
		evidence(f, "mean gap", NULL, gap->spike.mean_gap);
		evidence(f, "furthest from the mean", "%.1f deviations", gap->spike.max_zscore);
		break;
	case SL_GAP_DRIFT:
		evidence(f, "at first", NULL, gap->drift.start);
		evidence(f, "at last", NULL, gap->drift.end);
		evidence(f, "grows each second by", NULL, gap->drift.bytes_per_second);
		evidence(f, "as a straight line", "r\xc2\xb2 %.2f", gap->drift.r_squared);
		break;
	case SL_GAP_FRAGMENTATION:
		evidence(f, "unused of reserved", "%.0f %%", gap->fragmentation.average * 100);
		evidence(f, "at most", "%.0f %%", gap->fragmentation.max * 100);
		break;
	}
	evidence(f, "confidence", "%.2f", gap->confidence);
}

static int by_confidence(const void *a, const void *b)
{
	const struct sl_collective_interval *x = a, *y = b;

	return SL_FALLING(x->confidence, y->confidence) ?: SL_FALLING(x->peak_gap_bytes, y->peak_gap_bytes);
}

static void take_collectives(struct sl_page *page, const struct sl_collective_result *result,
			     int (*process_of)(const struct sl_page *page, int64_t rank, int64_t pid))
{
	struct sl_arena arena = {0};
	struct sl_collective_interval *sorted = sl_arena_alloc(&arena, (result->count + 1) * sizeof(*sorted));

	for (size_t i = 0; i < result->count; i++)
		sorted[i] = result->intervals[i];
	qsort(sorted, result->count, sizeof(*sorted), by_confidence);
	for (size_t i = 0; i < result->count && i < INTERVALS; i++) {
		const struct sl_collective_interval *interval = &sorted[i];
		struct sl_page_finding *f = sl_page_find(page, "collective.gap", "info");

		snprintf(f->text, sizeof(f->text), "rank %d: %s beyond the allocator while collectives ran", interval->rank,
			 SL_SIZE((uint64_t)interval->peak_gap_bytes));
		f->advice = "buffers of NCCL and its kin: fewer communicators, or a smaller NCCL_BUFFSIZE, need less";
		f->process = process_of(page, interval->rank, -1);
		f->from_unix = (uint64_t)interval->start_ns;
		f->to_unix = (uint64_t)interval->end_ns;
		evidence(f, "collectives seen", "%.0f", (double)interval->marker_hits);
		evidence(f, "ranks at once", "%.0f", (double)interval->synchronized_ranks);
		evidence(f, "confidence", "%.2f", interval->confidence);
	}
	sl_arena_free(&arena);
}

static void take_first(struct sl_page *page, const struct sl_cross_rank *result,
		       int (*process_of)(const struct sl_page *page, int64_t rank, int64_t pid))
{
	for (size_t i = 0; i < result->suspect_count && i < SUSPECTS; i++) {
		const struct sl_cross_suspect *suspect = &result->suspects[i];
		struct sl_page_finding *f = sl_page_find(page, "first_cause.rank", "info");

		snprintf(f->text, sizeof(f->text), "device memory of rank %d rose %s, by %s", suspect->rank, i ? "early" : "first",
			 SL_SIZE((uint64_t)suspect->delta_bytes));
		f->advice = "compare it with the others in the heat map of ranks";
		f->process = process_of(page, suspect->rank, -1);
		f->from_unix = f->to_unix = (uint64_t)suspect->spike_ns;
		evidence(f, "before the cluster", "%.3f s", (double)suspect->lead_ns / 1e9);
		snprintf(f->evidence[f->evidence_count].name, sizeof(f->evidence[0].name), "confidence");
		snprintf(f->evidence[f->evidence_count++].value, sizeof(f->evidence[0].value), "%s", suspect->confidence);
	}
}

void sl_page_session_findings(struct sl_page *page, const struct sl_session_answers *answers,
			      int (*process_of)(const struct sl_page *page, int64_t rank, int64_t pid))
{
	for (size_t i = 0; i < answers->gaps.count; i++)
		take_gap(page, &answers->gaps.findings[i], process_of);
	take_collectives(page, &answers->collectives[SL_COLLECTIVE_MEDIUM], process_of);
	if (!page->report) /* a guess from samples: a trace knows the rank that differs, and its line */
		take_first(page, &answers->cross_rank, process_of);
}

void sl_page_put_findings(struct sl_page *page)
{
	sl_json_array(page->j, "findings");
	for (size_t i = 0; i < page->findings.count; i++) {
		const struct sl_page_finding *f = &page->findings.item[i];

		sl_json_object(page->j, NULL);
		sl_json_known_uint(page->j, "bytes", f->bytes);
		sl_json_string(page->j, "id", f->id);
		sl_json_string(page->j, "severity", f->severity);
		sl_json_known(page->j, "process", f->process);
		sl_json_known(page->j, "device", f->device);
		sl_page_put_unix(page, "from", f->from_unix);
		sl_page_put_unix(page, "to", f->to_unix);
		sl_json_string(page->j, "text", f->text);
		sl_json_string(page->j, "advice", f->advice);
		sl_json_array(page->j, "evidence");
		for (unsigned k = 0; k < f->evidence_count; k++) {
			sl_json_array(page->j, NULL);
			sl_json_string(page->j, NULL, f->evidence[k].name);
			sl_json_string(page->j, NULL, f->evidence[k].value);
			sl_json_end(page->j);
		}
		sl_json_end(page->j);
		sl_json_uint(page->j, "stack", f->node);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
}
