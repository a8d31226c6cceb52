/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/vector.h"
#include "analyzer/faces/faces.h"
#include "analyzer/model/counts/moments.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/tensor.h"
#include "analyzer/report/window_facts.h"

/* reads */
static void put_reads(struct sl_page *page)
{
	struct sl_dry_read read;

	sl_json_array(page->j, "reads");
	for (unsigned i = 0; i < page->process_count; i++)
		for (size_t k = 0; sl_dry_read(&page->report->processes[i], k, &read); k++) {
			sl_page_row(page, i);
			sl_json_string(page->j, "line", read.line);
			sl_json_string(page->j, "what", read.what);
			sl_json_end(page->j);
		}
	sl_json_end(page->j);
}

/* The document of the run, as report.json has it.  filed: its commands say where the run lies. */
static void put_answer(struct sl_page *page, bool filed)
{
	char *paths = filed ? sl_make_paths(page->report, true) : sl_memory_copy("");

	sl_face_json(page->j, "answer", sl_answer_report(page->report), paths);
	free(paths);
}

/* Marks over the time line, and the steps of its third axis. */

static void put_mark(struct sl_page *page, unsigned process, int device, uint64_t ns, const char *kind, const char *text)
{
	sl_page_row(page, process);
	sl_json_known(page->j, "device", device);
	sl_page_put_time(page, "at", process, ns);
	sl_json_string(page->j, "kind", kind);
	sl_json_string(page->j, "text", text);
	sl_json_end(page->j);
}

static void put_marks(struct sl_page *page, unsigned process)
{
	static const char *const kinds[] = {"context", "module", "reset"};
	const struct sl_model *model = page->report->processes[process].model;
	char text[256];

	for (size_t k = 0; k < model->ooms.count; k++) {
		snprintf(text, sizeof(text), "out of memory: asked for %s", SL_SIZE(model->ooms.item[k].requested_bytes));
		put_mark(page, process, model->ooms.item[k].device, model->ooms.item[k].time_ns, "oom", text);
	}
	for (size_t k = 0; k < model->moments.marks.count; k++) {
		const struct sl_mark *mark = &model->moments.marks.item[k];
		const struct sl_hook *hook = sl_header_hook(model->header, mark->api);

		snprintf(text, sizeof(text), "%s%s%s%s", hook ? hook->plain : kinds[mark->kind], mark->bytes ? ", cost " : "",
			 mark->bytes ? SL_SIZE(mark->bytes) : "", mark->bytes ? " of device memory" : "");
		put_mark(page, process, mark->device, mark->time_ns, kinds[mark->kind], text);
	}
}

static void put_steps(struct sl_page *page, unsigned process, const struct sl_label *label)
{
	const struct sl_model *model = page->report->processes[process].model;
	const struct sl_steps *steps = &label->steps;
	double *column = sl_memory_must(calloc(steps->count, sizeof(*column)));

	sl_page_row(page, process);
	sl_json_string(page->j, "label", sl_defs_text(model->defs, label->text));
	for (uint32_t i = 0; i < steps->count; i++)
		column[i] = sl_page_time(page, process, steps->item[i].time_ns);
	sl_json_column(page->j, "at", SL_PACKED_F64, column, steps->count);
	for (uint32_t i = 0; i < steps->count; i++)
		column[i] = (double)steps->item[i].number;
	sl_json_column(page->j, "number", SL_PACKED_F64, column, steps->count);
	sl_json_end(page->j);
	free(column);
}

/* marks, steps */
static void put_all_marks(struct sl_page *page)
{
	sl_json_array(page->j, "marks");
	for (unsigned k = 0; k < page->budget.detailed; k++)
		put_marks(page, page->order[k]);
	sl_json_end(page->j);
	sl_json_array(page->j, "steps");
	for (unsigned k = 0; k < page->budget.detailed; k++) {
		const struct sl_label *label = sl_model_steps(page->report->processes[page->order[k]].model);

		if (label)
			put_steps(page, page->order[k], label);
	}
	sl_json_end(page->j);
}

/* PyTorch's segments and their blocks at the first error, the peak or the largest moment kept, and the end. */

struct columns {
	double *segment_bytes, *block_offset, *block_bytes;
	uint32_t *block_segment, *block_stack;
	size_t segments, blocks;
};

static void *column(size_t count, size_t width)
{
	return sl_memory_must(calloc(count + 1, width));
}

/* Both lists are by address: one walk finds the segment of each block.  Blocks of unknown segments are left out. */
static struct columns match(struct sl_page *page, unsigned process, const struct sl_segments *map)
{
	struct columns c = {.segments = map->segment_count};
	uint32_t s = 0;

	c.segment_bytes = column(map->segment_count, sizeof(double));
	c.block_offset = column(map->block_count, sizeof(double));
	c.block_bytes = column(map->block_count, sizeof(double));
	c.block_segment = column(map->block_count, sizeof(uint32_t));
	c.block_stack = column(map->block_count, sizeof(uint32_t));
	for (uint32_t i = 0; i < map->segment_count; i++)
		c.segment_bytes[i] = (double)map->segment[i].bytes;
	for (uint32_t i = 0; i < map->block_count && c.blocks < page->budget.blocks; i++) {
		const struct sl_piece *block = &map->block[i];

		while (s < map->segment_count && map->segment[s].address + map->segment[s].bytes <= block->address)
			s++;
		if (s == map->segment_count)
			break;
		if (block->address < map->segment[s].address)
			continue;
		c.block_segment[c.blocks] = s;
		c.block_offset[c.blocks] = (double)(block->address - map->segment[s].address);
		c.block_bytes[c.blocks] = (double)block->bytes;
		c.block_stack[c.blocks++] = sl_page_site(page, process, block->site);
	}
	return c;
}

static void put_map(struct sl_page *page, unsigned process, const struct sl_segments *map, const char *kind)
{
	struct columns c = match(page, process, map);
	char text[96];

	sl_page_row(page, process);
	sl_json_known(page->j, "device", map->device);
	sl_json_string(page->j, "kind", kind);
	sl_page_put_time(page, "at", process, map->time_ns);
	snprintf(text, sizeof(text), "%zu blocks are left out to keep this page small",
		 map->block_count + map->left_out - c.blocks);
	sl_json_string(page->j, "left_out", c.blocks == page->budget.blocks || map->left_out ? text : NULL);
	sl_json_column(page->j, "segment_bytes", SL_PACKED_F64, c.segment_bytes, c.segments);
	sl_json_column(page->j, "block_segment", SL_PACKED_U32, c.block_segment, c.blocks);
	sl_json_column(page->j, "block_offset", SL_PACKED_F64, c.block_offset, c.blocks);
	sl_json_column(page->j, "block_bytes", SL_PACKED_F64, c.block_bytes, c.blocks);
	sl_json_column(page->j, "block_stack", SL_PACKED_U32, c.block_stack, c.blocks);
	sl_json_end(page->j);
	free(c.segment_bytes);
	free(c.block_offset);
	free(c.block_bytes);
	free(c.block_segment);
	free(c.block_stack);
}

/* Puts the map of each device whose peak is before `until_ns`, and that has none yet. */
static void put_peaks(struct sl_page *page, unsigned process, const struct sl_model *now, uint64_t until_ns, bool *done)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (unsigned d = 1; d <= SL_DEVICES_MAX; d++) {
		struct sl_segments map;

		if (done[d] || !model->devices[d] || !model->devices[d]->torch.used || model->devices[d]->known_peak_ns >= until_ns)
			continue;
		done[d] = true;
		sl_moments_segments(now, (int)d - 1, &map);
		if (map.segment_count)
			put_map(page, process, &map, "peak");
		free(map.segment);
		free(map.block);
	}
}

/* A snapshot's events are read again, up to each device's peak: the moments kept in one replay would only be near it. */
static void put_window_peaks(struct sl_page *page, unsigned process)
{
	struct sl_trace *trace = page->report->processes[process].trace;
	struct sl_model *now = sl_replay_new(&trace->header, &trace->defs);
	struct sl_order *order = sl_order_new(trace);
	bool done[SL_DEVICES_MAX + 1] = {false};
	const struct sl_item *item;

	while ((item = sl_order_next(order))) {
		if (item->kind == SL_ITEM_EVENT)
			put_peaks(page, process, now, item->event->time_ns, done);
		sl_replay_apply(now, item);
	}
	put_peaks(page, process, now, UINT64_MAX, done);
	sl_order_free(order);
	sl_replay_free(now);
}

/* segments */
static void put_all_segments(struct sl_page *page)
{
	unsigned process_count = page->report->process_count < 16 ? page->report->process_count : 16;

	sl_json_array(page->j, "segments");
	for (unsigned k = 0; k < process_count; k++) {
		const struct sl_moments *moments = &page->report->processes[page->order[k]].model->moments;

		if (moments->at_oom.segment_count)
			put_map(page, page->order[k], &moments->at_oom, "oom");
		if (page->report->processes[page->order[k]].model->recording.lists_tensors)
			put_window_peaks(page, page->order[k]);
		else if (moments->largest.segment_count)
			put_map(page, page->order[k], &moments->largest, "largest");
		for (size_t i = 0; i < moments->at_end.count; i++)
			put_map(page, page->order[k], &moments->at_end.item[i], "end");
	}
	sl_json_end(page->j);
}

/* The tensors of a dry run at its peak: a row for each type and module of a process, and one for what is of no known type. */

struct part {
	const char *type, *module; /* NULL: not known, none */
	uint64_t bytes, blocks;
};

static void put_part(struct sl_page *page, unsigned process, const struct part *part)
{
	if (!part->bytes)
		return;
	sl_page_row(page, process);
	sl_json_string(page->j, "type", part->type);
	sl_json_string(page->j, "module", part->module);
	sl_json_uint(page->j, "bytes", part->bytes);
	sl_json_uint(page->j, "blocks", part->blocks);
	sl_json_end(page->j);
}

static void put_process(struct sl_page *page, const struct sl_process *process, unsigned index)
{
	const struct sl_model *model = process->model;
	SL_VECTOR(struct part) parts = {0};
	struct sl_idmap numbers = {0}; /* module << 8 | type -> number + 1 */
	struct part rest = {0};

	for (size_t i = 0; i < model->born_named.count; i++) {
		const struct sl_born_named *named = &model->born_named.item[i];
		const struct sl_tensor *tensor = &model->tensors.item[named->called];
		uint64_t key = (uint64_t)tensor->module << 8 | tensor->type, number;

		if (!sl_owners_shows(process, &model->sites.item[named->site]))
			continue;
		number = sl_idmap_get(&numbers, key, 0);
		if (!number) {
			*SL_PUSH(&parts) = (struct part){sl_tensor_type(tensor),
							 tensor->module ? sl_defs_text(model->defs, tensor->module) : NULL, 0, 0};
			number = parts.count;
			sl_idmap_set(&numbers, key, number);
		}
		parts.item[number - 1].bytes += named->bytes;
		parts.item[number - 1].blocks += named->blocks;
	}
	for (size_t i = 0; model->born && i < model->sites.count; i++)
		if (sl_owners_shows(process, &model->sites.item[i])) {
			rest.bytes += model->born[i].bytes - model->born[i].named_bytes;
			rest.blocks += model->born[i].blocks - model->born[i].named_blocks;
		}
	for (size_t i = 0; i < parts.count; i++)
		put_part(page, index, &parts.item[i]);
	put_part(page, index, &rest);
	free(parts.item);
	sl_idmap_free(&numbers);
}

/* tensors */
static void put_all_tensors(struct sl_page *page)
{
	const struct sl_report *tensors = page->report->tensors;

	sl_json_array(page->j, "tensors");
	for (unsigned i = 0; tensors && i < tensors->process_count; i++)
		put_process(page, &tensors->processes[i], i);
	sl_json_end(page->j);
}

static int by_oddness(const void *a, const void *b, void *oddness)
{
	unsigned i = *(const unsigned *)a, k = *(const unsigned *)b;
	const uint64_t *odd = oddness;

	return SL_FALLING(odd[i], odd[k]) ?: SL_RISING(i, k);
}

/* Which processes keep their detail: out of memory first, then killed, then by distance from the median peak. */
static void order_processes(struct sl_page *page)
{
	unsigned count = page->report->process_count;
	uint64_t *peaks = sl_memory_must(calloc(count + 1, sizeof(*peaks))), *odd = sl_memory_must(calloc(count + 1, sizeof(*odd))),
		 median;

	for (unsigned i = 0; i < count; i++)
		peaks[i] = sl_devices_peak(&page->report->processes[i]);
	qsort(peaks, count, sizeof(*peaks), sl_stats_by_number);
	median = peaks[count / 2];
	for (unsigned i = 0; i < count; i++) {
		const struct sl_process *p = &page->report->processes[i];
		uint64_t peak = sl_devices_peak(p);

		page->order[i] = i;
		odd[i] = (peak > median ? peak - median : median - peak) >> 8;
		odd[i] |= p->model->ooms.count ? 1ull << 63 : p->trace->status == SL_STATUS_INTERRUPTED ? 1ull << 62 : 0;
	}
	qsort_r(page->order, count, sizeof(*page->order), by_oddness, odd);
	free(peaks);
	free(odd);
}

static int process_of(const struct sl_page *page, int64_t rank, int64_t pid)
{
	for (unsigned i = 0; i < page->process_count; i++) {
		const struct sl_header *header = &page->report->processes[i].trace->header;

		if ((header->rank < 0 ? 0 : header->rank) == rank && (pid < 0 || header->pid == pid))
			return (int)i;
	}
	return -1;
}

/* What pools keep unused: the words that fit every process. */
static const char *rest_name(const struct sl_report *report)
{
	struct sl_torch all = {0};

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t d = 1; d < SL_COUNT(report->processes[i].model->devices); d++) {
			const struct sl_device_state *device = report->processes[i].model->devices[d];

			all.pooled |= device && device->torch.pooled;
			all.reported |= device && device->torch.reported;
		}
	return sl_model_rest_name(&all);
}

/* The head of a page of snapshots, which tell neither host nor exit; nil for others. */
static void put_window(struct sl_page *page)
{
	struct sl_answers *answers = sl_window_all(page->report) ? sl_answer_title(page->report) : NULL;

	sl_json_string(page->j, "window", answers ? answers->title : NULL);
	sl_answers_free(answers);
}

static void begin(struct sl_page *page, struct sl_report *report, const struct sl_page_budget *budget)
{
	const struct sl_header *first = report->process_count ? &report->processes[0].trace->header : NULL;

	sl_page_begin(page, report->process_count, budget);
	page->report = report;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];

		page->timelines[i] = (struct sl_page_timeline){&p->model->timeline, (int64_t)(sl_process_unix(p, 1) - 1)};
	}
	page->t0_unix_ns = report->started_unix_ns;
	page->t1_unix_ns = report->ended_unix_ns;
	page->timeless = first && !sl_header_is_timed(first);
	order_processes(page);
	sl_page_open(page, "trace", first ? sl_stacks_program(first) : report->path, first ? first->run_id : NULL,
		     first ? first->tag : NULL, sl_dry_report(report));
}

void sl_page_build_lines(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	begin(page, of->report, budget);
	sl_page_lines(page);
	sl_page_close(page);
}

void sl_page_build(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	struct sl_report *report = of->report;

	begin(page, report, budget);
	sl_json_string(page->j, "rest", rest_name(report));
	put_window(page);
	sl_page_processes(page);
	sl_page_lines(page);
	sl_page_heat(page);
	sl_page_moments(page);
	sl_page_places(page);
	put_all_marks(page);
	put_all_segments(page);
	sl_page_fit(page, of->fits);
	put_reads(page);
	put_all_tensors(page);
	put_answer(page, of->text);
	if (of->telemetry && of->telemetry->selected)
		sl_page_session_findings(page, of->telemetry->selected->answers, process_of);
	sl_page_put_findings(page);
	sl_report_warn_of_symbols(report);
	sl_json_array(page->j, "warnings");
	for (size_t i = 0; i < report->warnings.count; i++)
		sl_page_put_warning(page, report->warnings.item[i]);
	sl_json_end(page->j);
	sl_page_close(page);
}
