/* SPDX-License-Identifier: MIT */
/* Who held a snapshot's memory at its peak, or at its end where it has no window: the rows of PEAK and HELD. */

#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/window_facts.h"

#define SHOWN	    6
#define PARTS	    5	/* sizes of what was made before the window, largest sum first */
#define LEAST_REST  500 /* the same of smaller places together, and of rounding */
#define LARGE_PART  33	/* rows of at least one of so many parts are drawn beyond the first SHOWN */
#define SHOWN_LARGE 12
#define LAYERS	    4 /* a line that holds so many blocks of one stack at once keeps them for a backward pass */

/* One row: a line or the name of an operation, with its purpose. */
struct row {
	char name[256], what[320];
	uint64_t bytes;
	unsigned parts; /* of what was made before the window */
	struct {
		/* once: of stacks that never replaced a block; gathered: also of those that held several at once, as layers do */
		uint64_t bytes, once, gathered, live;
	} of[SL_ROLE_COUNT];
	/* Bytes that were freed in the window, of an optimizer or of no known purpose. */
	uint64_t freed, freed_by_optimizer;
};

struct rows {
	SL_VECTOR(struct row) row;
	struct sl_map names; /* index + 1 */
	uint64_t before;     /* what was held before the window and still is, with a stack or without */
};

static struct row *row_of(struct rows *rows, const char *name)
{
	uintptr_t *at = sl_map_at(&rows->names, name);
	struct row *row;

	if (*at)
		return &rows->row.item[*at - 1];
	row = SL_PUSH(&rows->row);
	*row = (struct row){0};
	snprintf(row->name, sizeof(row->name), "%s", name);
	*at = rows->row.count;
	return row;
}

/* "108 of 25.0 MiB" where the file has no stack of blocks of this size; else the name. */
static const char *sized(char out[64], const struct sl_process *process, const struct sl_site *site, const char *name)
{
	static const char prefix[] = "blocks ";

	if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
		return name ?: "?";
	snprintf(out, 64, "%s %s", SL_NUMBER(sl_model_blocks_at_peak(process->model, site)), name + strlen(prefix));
	return out;
}

/*
 * False: the operator computes a value, which each step of an optimizer makes anew.  State is made by zeros_like and the like;
 * where the stack has no operator, that is assumed.
 */
static bool makes_state(const struct sl_stack_frame *frames, unsigned count)
{
	static const char *const makers[] = {"zeros", "empty", "full", "ones", "clone", "copy"};

	if (!count || frames[0].python || !frames[0].function)
		return true;
	for (size_t i = 0; i < SL_COUNT(makers); i++)
		if (strstr(frames[0].function, makers[i]))
			return true;
	return false;
}

static void add_site(struct rows *rows, struct sl_process *process, const struct sl_site *site, uint64_t bytes)
{
	const struct sl_track *track = &process->model->tracks.item[site->track];
	struct sl_stack_frame frames[SL_STACK_MAX];
	char name[256], part[64];
	enum sl_role role;
	struct row *row;

	unsigned count = sl_process_stack(process, frames, site->stack);

	if (count && frames[count - 1].function && !strcmp(frames[count - 1].function, "made before the window"))
		rows->before += bytes;
	if (count == 2 && frames[1].function && !strcmp(frames[1].function, "no stack in the file")) {
		row = row_of(rows, sized(part, process, site, frames[0].function));
		row->bytes += bytes;
		snprintf(row->what, sizeof(row->what), "no stack in the file");
		return;
	}
	if (sl_window_is_before(process, site->stack)) {
		row = row_of(rows, "made before the window");
		row->bytes += bytes;
		if (row->parts <= PARTS && frames[0].function && strcmp(frames[0].function, "other sizes") != 0)
			snprintf(row->what + strlen(row->what), sizeof(row->what) - strlen(row->what), "%s%s",
				 row->what[0] ? ", " : "",
				 row->parts++ < PARTS ? sized(part, process, site, frames[0].function) : "and more");
		return;
	}
	if (count && frames[0].function && !strcmp(frames[0].function, "copies of weights by autocast")) {
		row = row_of(rows, frames[0].function);
		row->bytes += bytes;
		snprintf(row->what, sizeof(row->what), "in half precision");
		return;
	}
	sl_owners_line(process, site->stack, 1, name, sizeof(name));
	if (strstr(name, " via "))
		*strstr(name, " via ") = 0;
	role = sl_roles_of(process, site);
	row = row_of(rows, name[0] ? name : "without a stack");
	row->bytes += bytes;
	if (2 * site->live_bytes < bytes && (role == SL_ROLE_OPTIMIZER || role == SL_ROLE_UNKNOWN)) {
		row->freed += bytes;
		row->freed_by_optimizer += role == SL_ROLE_OPTIMIZER ? bytes : 0;
		return;
	}
	row->of[role].bytes += bytes;
	row->of[role].gathered += track->births <= track->most_blocks || track->most_blocks >= LAYERS ? bytes : 0;
	if (track->births <= track->most_blocks && (role != SL_ROLE_OPTIMIZER || makes_state(frames, count)))
		row->of[role].once += bytes;
	row->of[role].live += site->live_bytes;
}

struct held {
	const struct sl_site *site;
	uint64_t bytes;
};

static int by_held(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: SL_RISING((uintptr_t)x->site, (uintptr_t)y->site);
}

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

/* Why the row has less than what was held before the window. */
static void add_before(struct rows *rows, uint64_t at_start)
{
	for (size_t i = 0; i < rows->row.count; i++) {
		struct row *row = &rows->row.item[i];
		size_t used = strlen(row->what);

		if (strcmp(row->name, "made before the window") != 0)
			continue;
		if (at_start > rows->before)
			used += (size_t)snprintf(row->what + used, sizeof(row->what) - used, "; %s more had been freed by then",
						 SL_SIZE(at_start - rows->before));
		if (rows->before > row->bytes)
			snprintf(row->what + used, sizeof(row->what) - used, "; %s more are counted at their lines, below",
				 SL_SIZE(rows->before - row->bytes));
	}
}

/* The role of most of the row's memory. */
static enum sl_role role_of(const struct row *row)
{
	enum sl_role role = SL_ROLE_UNKNOWN;

	for (enum sl_role r = 0; r < SL_ROLE_COUNT; r++)
		if (row->of[r].bytes > row->of[role].bytes)
			role = r;
	return role;
}

/* What a line of an optimizer keeps, and what it frees again, are two rows. */
static void part_optimizers(struct rows *rows)
{
	for (size_t i = rows->row.count; i--;) {
		struct row *row = &rows->row.item[i], freed = {.bytes = row->freed};
		enum sl_role role = role_of(row);

		if (role != SL_ROLE_OPTIMIZER && (row->of[role].bytes || 2 * row->freed_by_optimizer <= row->freed)) {
			row->of[SL_ROLE_OPTIMIZER].bytes += row->freed_by_optimizer;
			row->of[SL_ROLE_UNKNOWN].bytes += row->freed - row->freed_by_optimizer;
			continue;
		}
		snprintf(freed.name, sizeof(freed.name), "%s", row->name);
		snprintf(freed.what, sizeof(freed.what), "made and freed in the optimizer's step");
		row->bytes -= row->freed;
		if (!row->bytes)
			*row = freed;
		else if (freed.bytes)
			*SL_PUSH(&rows->row) = freed;
	}
}

/* The purpose of the memory, as far as one round of the program's loop shows it.  backward: the window has a backward pass. */
static const char *what_for(const struct row *row, bool window, bool backward)
{
	enum sl_role role = role_of(row);
	bool once, stays;

	if (row->what[0])
		return row->what;
	once = window && 2 * row->of[role].once >= row->of[role].bytes;
	stays = 2 * row->of[role].live >= row->of[role].bytes;
	switch (role) {
	case SL_ROLE_PARAMETERS:
	case SL_ROLE_WORKSPACE:
	case SL_ROLE_COMMUNICATION:
		return sl_roles_name(role);
	case SL_ROLE_GRADIENTS:
		return window && stays ? "gradients: made in backward, held" : "made in backward";
	case SL_ROLE_OPTIMIZER:
		return once ? "optimizer, made once" : window ? "made in the optimizer's step" : "optimizer";
	case SL_ROLE_ACTIVATIONS:
		return (backward ? 2 * row->of[role].gathered >= row->of[role].bytes : once && stays) && window
			       ? "activations: held for backward"
			       : "made in forward";
	default:
		return "";
	}
}

/* True: the window has a backward pass.  Where stacks have Python only, a block of autograd's thread has none. */
static bool has_backward(struct sl_process *process, int device)
{
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];

		if (site->device == device && site->kind == SL_KIND_block && site->api &&
		    (!site->stack.python || sl_roles_of(process, site) == SL_ROLE_GRADIENTS))
			return true;
	}
	return false;
}

bool sl_screen_window_rows(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device,
			   bool window, uint64_t at_start)
{
	struct rows rows = {0};
	uint64_t left = 0, unused = 0, rest = 0, more = 0, without = 0;
	const char *name = sl_model_rest_at_peak(process->model, device, &unused);
	bool backward = has_backward(process, device->device);
	SL_VECTOR(struct held) held = {0};
	unsigned places = 0;

	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes = site->device == device->device && site->kind == SL_KIND_block
					 ? sl_model_site_at_peak(process->model, site)
					 : 0;

		if (bytes && site->api)
			*SL_PUSH(&held) = (struct held){site, bytes};
		else
			left += bytes; /* rounding */
	}
	if (held.count)
		qsort(held.item, held.count, sizeof(*held.item), by_held);
	for (size_t i = 0; i < held.count; i++)
		add_site(&rows, process, held.item[i].site, held.item[i].bytes);
	SL_DROP(&held);
	part_optimizers(&rows);
	add_before(&rows, at_start);
	if (rows.row.count)
		qsort(rows.row.item, rows.row.count, sizeof(*rows.row.item), by_bytes);
	for (size_t i = 0; i < rows.row.count; i++)
		without += !strcmp(rows.row.item[i].what, "no stack in the file") ? rows.row.item[i].bytes : 0;
	for (size_t i = 0; i < rows.row.count; i++)
		if (i < (rows.row.item[i].bytes >= sl_screen_window_held(device) / LARGE_PART ? SHOWN_LARGE : SHOWN) &&
		    rows.row.item[i].bytes >= sl_screen_window_held(device) / SL_SCREEN_LEAST_PART)
			sl_screen_owner(page, rows.row.item[i].bytes, rows.row.item[i].name,
					what_for(&rows.row.item[i], window, backward));
		else
			more += rows.row.item[i].bytes, places++;
	rest = more;
	if (rest >= sl_screen_window_held(device) / LEAST_REST) {
		char text[64];

		snprintf(text, sizeof(text), "%u smaller place%s", places, places == 1 ? "" : "s");
		sl_screen_owner(page, rest, text, "");
	}
	if (left >= sl_screen_window_held(device) / LEAST_REST)
		sl_screen_owner(page, left, "rounding of sizes", "");
	if (name)
		sl_screen_owner(page, unused, name, "");
	free(rows.row.item);
	sl_map_free(&rows.names);
	return without > sl_screen_window_held(device) / 2;
}
