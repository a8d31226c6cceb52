/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analyzer/base/memory.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/place.h"

/* ---- tables */

uint32_t sl_page_string(struct sl_page *page, const char *text)
{
	uintptr_t *at;

	if (!text || !*text)
		return 0;
	at = sl_map_at(&page->strings, text);
	if (!*at) {
		*at = page->texts.count;
		*SL_PUSH(&page->texts) = sl_map_intern(&page->strings, text);
	}
	return (uint32_t)*at;
}

static uint32_t frame_id(struct sl_page *page, const struct sl_stack_frame *frame)
{
	struct sl_page_frame key = {
		.function = sl_page_string(page, frame->function),
		.file = sl_page_string(page, frame->file),
		.module = sl_page_string(page, frame->module),
		.line = frame->line,
		.python = frame->python,
		.folded = frame->passes_on || sl_place_is_wrapper(frame),
		.own = frame->own,
	};
	char text[72], unnamed[32];
	uintptr_t *at;

	if (!key.function && !frame->python) { /* without symbols, module and offset tell frames apart */
		snprintf(unnamed, sizeof(unnamed), "+0x%llx", (unsigned long long)frame->offset);
		key.function = sl_page_string(page, unnamed);
	}
	snprintf(text, sizeof(text), "%x %x %x %x %x %x %x", key.function, key.file, key.module, key.line, key.python, key.folded,
		 key.own);
	at = sl_map_at(&page->frame_ids, text);
	if (!*at) {
		*SL_PUSH(&page->frames) = key;
		*at = page->frames.count;
	}
	return (uint32_t)*at - 1;
}

static uint32_t child(struct sl_page *page, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t node = sl_idmap_get(&page->node_ids, key, 0);

	if (node)
		return node;
	node = (uint32_t)page->node_parent.count;
	*SL_PUSH(&page->node_parent) = parent;
	*SL_PUSH(&page->node_frame) = frame;
	sl_idmap_set(&page->node_ids, key, node);
	return node;
}

uint32_t sl_page_frames(struct sl_page *page, uint32_t root, const struct sl_stack_frame *frames, unsigned count)
{
	while (count--)
		root = child(page, root, frame_id(page, &frames[count]));
	return root;
}

uint32_t sl_page_stack(struct sl_page *page, unsigned process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	uint64_t key = (uint64_t)stack.python << 32 | stack.native;
	uint32_t node;
	unsigned count;

	node = key ? sl_idmap_get(&page->stack_nodes[process], key, UINT32_MAX) : UINT32_MAX;
	if (node != UINT32_MAX)
		return node;
	count = sl_process_stack(&page->report->processes[process], frames, stack);
	node = sl_page_frames(page, 0, frames, count);
	if (key)
		sl_idmap_set(&page->stack_nodes[process], key, node);
	return node;
}

uint32_t sl_page_site(struct sl_page *page, unsigned process, uint32_t index)
{
	const struct sl_model *model = page->report->processes[process].model;
	const struct sl_site *site;
	uint32_t *node;

	if (index >= model->sites.count)
		return 0;
	site = &model->sites.item[index];
	if (!page->site_nodes[process])
		page->site_nodes[process] = sl_memory_must(calloc(model->sites.count, sizeof(*node)));
	node = &page->site_nodes[process][index];
	if (!*node)
		*node = 1 + sl_page_stack(page, process, site->stack);
	return *node - 1;
}

uint32_t sl_page_note(struct sl_page *page, const char *text)
{
	struct sl_stack_frame frame = {.function = text};

	return child(page, 0, frame_id(page, &frame));
}

/* ---- values */

double sl_page_time(const struct sl_page *page, unsigned process, uint64_t ns)
{
	uint64_t unix_ns = sl_process_unix(&page->report->processes[process], ns);

	return unix_ns > page->t0_unix_ns ? (double)(unix_ns - page->t0_unix_ns) : 0;
}

void sl_page_put_time(struct sl_page *page, const char *key, unsigned process, uint64_t ns)
{
	sl_json_double(page->j, key, ns && ns != SL_UNKNOWN ? sl_page_time(page, process, ns) : NAN);
}

void sl_page_put_unix(struct sl_page *page, const char *key, uint64_t unix_ns)
{
	sl_json_double(page->j, key, !unix_ns ? NAN : unix_ns > page->t0_unix_ns ? (double)(unix_ns - page->t0_unix_ns) : 0);
}

void sl_page_row(struct sl_page *page, unsigned process)
{
	sl_json_object(page->j, NULL);
	sl_json_uint(page->j, "process", process);
}

/* ---- the whole */

void sl_page_begin(struct sl_page *page, unsigned processes, const struct sl_page_budget *budget)
{
	*page = (struct sl_page){.process_count = processes, .budget = *budget};
	page->budget.detailed = budget->detailed < processes ? budget->detailed : processes;
	page->j = sl_json_new(NULL, SL_JSON_PACKED);
	page->timelines = sl_memory_must(calloc(processes + 1, sizeof(*page->timelines)));
	page->site_nodes = sl_memory_must(calloc(processes + 1, sizeof(*page->site_nodes)));
	page->stack_nodes = sl_memory_must(calloc(processes + 1, sizeof(*page->stack_nodes)));
	page->order = sl_memory_must(calloc(processes + 1, sizeof(*page->order)));
	*SL_PUSH(&page->texts) = "";
	*SL_PUSH(&page->node_parent) = 0;
	*SL_PUSH(&page->node_frame) = 0;
}

void sl_page_open(struct sl_page *page, const char *source, const char *title, const char *run, const char *tag, const char *dry)
{
	char number[32];

	sl_json_object(page->j, NULL);
	sl_json_string(page->j, "schema", "stormlog.page");
	sl_json_known(page->j, "version", 2);
	sl_json_string(page->j, "generator", SL_VERSION);
	sl_json_string(page->j, "source", source);
	sl_json_string(page->j, "title", title);
	sl_json_string(page->j, "run", run);
	sl_json_string(page->j, "tag", tag);
	sl_json_string(page->j, "dry", dry);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)page->t0_unix_ns);
	sl_json_string(page->j, "t0_unix_ns", page->timeless ? NULL : number);
	sl_json_double(page->j, "duration_ns", (double)(page->t1_unix_ns - page->t0_unix_ns));
}

static void put_tables(struct sl_page *page)
{
	size_t count = page->frames.count;
	uint32_t *column = sl_memory_must(calloc(count + 1, sizeof(*column)));
	uint8_t *flag = sl_memory_must(calloc(count + 1, 1));

	sl_json_array(page->j, "strings");
	for (size_t i = 0; i < page->texts.count; i++)
		sl_json_string(page->j, NULL, page->texts.item[i]);
	sl_json_end(page->j);
	sl_json_object(page->j, "frames");
#define COLUMN(name, to, type)                                                                                                     \
	for (size_t i = 0; i < count; i++)                                                                                         \
		to[i] = page->frames.item[i].name;                                                                                 \
	sl_json_column(page->j, #name, type, to, count)
	COLUMN(function, column, SL_PACKED_U32);
	COLUMN(file, column, SL_PACKED_U32);
	COLUMN(module, column, SL_PACKED_U32);
	COLUMN(line, column, SL_PACKED_U32);
	COLUMN(python, flag, SL_PACKED_U8);
	COLUMN(folded, flag, SL_PACKED_U8);
	COLUMN(own, flag, SL_PACKED_U8);
#undef COLUMN
	sl_json_end(page->j);
	sl_json_object(page->j, "nodes");
	sl_json_column(page->j, "parent", SL_PACKED_U32, page->node_parent.item, page->node_parent.count);
	sl_json_column(page->j, "frame", SL_PACKED_U32, page->node_frame.item, page->node_frame.count);
	sl_json_end(page->j);
	free(column);
	free(flag);
}

void sl_page_put_warning(void *page, const char *text)
{
	sl_json_string(((struct sl_page *)page)->j, NULL, text);
}

/* Says in words what was left out to stay below the size. */
static void put_given_up(struct sl_page *page)
{
	const struct sl_page_budget *b = &page->budget;
	unsigned count = page->process_count;
	bool diff = page->left_stacks || page->left_rows;
	char lines[4][256];
	uint32_t line_count = 0;

	if (b->bins < SL_TIMELINE_BINS)
		snprintf(lines[line_count++], sizeof(lines[0]),
			 "To keep this page small every line has %u bins instead of %u (each still knows its least and most).",
			 b->bins, SL_TIMELINE_BINS);
	if (b->detailed < count)
		snprintf(lines[line_count++], sizeof(lines[0]),
			 "To keep this page small %u of %u processes, those unlike the others, have their lines by kind and "
			 "library and their stacks; the others have their total.",
			 b->detailed, count);
	if (page->left_stacks)
		snprintf(lines[line_count++], sizeof(lines[0]),
			 "To keep this page small %zu stacks, those that changed least, are drawn as one.", page->left_stacks);
	if (page->left_rows)
		snprintf(lines[line_count++], sizeof(lines[0]),
			 "To keep this page small %zu rows, those that changed least, are left out.", page->left_rows);
	if (line_count)
		snprintf(lines[line_count++], sizeof(lines[0]), "--html-max-bytes SIZE allows a larger page; %s has every number.",
			 diff ? "diff --json" : "report.json");
	sl_json_array(page->j, "given_up");
	for (uint32_t i = 0; i < line_count; i++)
		sl_json_string(page->j, NULL, lines[i]);
	sl_json_end(page->j);
}

void sl_page_close(struct sl_page *page)
{
	put_given_up(page);
	put_tables(page); /* strings frames nodes */
	sl_json_end(page->j);
}

void sl_page_free(struct sl_page *page)
{
	for (unsigned i = 0; i < page->process_count; i++) {
		free(page->site_nodes[i]);
		sl_idmap_free(&page->stack_nodes[i]);
	}
	free(page->site_nodes);
	free(page->stack_nodes);
	free(page->timelines);
	free(page->ranks);
	free(page->findings.item);
	free(page->order);
	free(page->texts.item);
	free(page->frames.item);
	free(page->node_parent.item);
	free(page->node_frame.item);
	sl_map_free(&page->strings);
	sl_map_free(&page->frame_ids);
	sl_idmap_free(&page->node_ids);
	sl_json_close(page->j);
}
