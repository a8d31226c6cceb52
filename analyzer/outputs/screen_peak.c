/* SPDX-License-Identifier: MIT */
/* PEAK: the process that held most on a device, and its memory then. */

#include "analyzer/base/format.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/change.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/roles.h"
#include "analyzer/base/spark.h"

#define RIGHT	      40
#define SPARK	      14
#define MANAGED_LEAST 20 /* less managed memory than one of so many parts of the peak is not printed */

void sl_screen_spark(char *out, size_t size, const struct sl_screen_page *page, const struct sl_line *known)
{
	uint32_t bins = known->bin + 1, count = bins - known->first, columns = count < SPARK ? count : SPARK;
	uint64_t most[SPARK] = {0};

	for (uint32_t c = 0; c < columns; c++) {
		uint32_t from = known->first + count * c / columns, to = known->first + count * (c + 1) / columns;

		for (uint32_t b = from; b < to; b++)
			most[c] = known->bins[b].max > most[c] ? known->bins[b].max : most[c];
	}
	sl_spark(out, size, most, columns, page->style->ascii);
}

/* The range of other processes' peaks on any device, each at a moment of its own. */
static void describe_others(char *out, size_t size, const struct sl_screen_page *page, const struct sl_process *but)
{
	uint64_t least = UINT64_MAX, most = 0;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < page->report->process_count; i++) {
		uint64_t peak = sl_devices_peak(&page->report->processes[i]);

		if (&page->report->processes[i] == but)
			continue;
		least = peak < least ? peak : least;
		most = peak > most ? peak : most;
	}
	if (!most)
		return;
	sl_format_size(a, least);
	sl_format_size(b, most);
	snprintf(out, size, "   %s %s%s%s", page->report->process_count > 2 ? "others' own peaks" : "the other's own peak", a,
		 strcmp(a, b) ? " .. " : "", strcmp(a, b) ? b : "");
}

/* The device on which all recorded processes together held most, where that is more than `most`, what one held. */
static void describe_shared(char *out, size_t size, const struct sl_report *report, const struct sl_process *process, uint64_t most)
{
	const struct sl_shared_device *fullest = NULL;
	const struct sl_device_state *own;

	for (unsigned i = 0; i < report->device_count; i++)
		if (report->devices[i].known_peak_bytes > most) {
			most = report->devices[i].known_peak_bytes;
			fullest = &report->devices[i];
		}
	own = fullest ? sl_devices_state(report, fullest, (unsigned)(process - report->processes)) : NULL;
	if (own)
		snprintf(out, size, "   with others %s on device %d", SL_SIZE(most), own->device);
	else if (fullest)
		snprintf(out, size, "   %u others together %s", fullest->process_count, SL_SIZE(most));
}

/* The device, and the process's peaks on its others. */
static void describe_devices(char *device, char *others, size_t size, const struct sl_process *process,
			     const struct sl_device_state *most)
{
	uint64_t least = UINT64_MAX, largest = 0;
	size_t at = strlen(others);
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	if (sl_devices_held(process) <= 1)
		return;
	snprintf(device, size, ", device %d", most->device);
	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (!state || !state->known_peak || state == most)
			continue;
		least = state->known_peak < least ? state->known_peak : least;
		largest = state->known_peak > largest ? state->known_peak : largest;
	}
	sl_format_size(a, least);
	sl_format_size(b, largest);
	snprintf(others + at, size - at, "   other devices %s%s%s", a, strcmp(a, b) ? " .. " : "", strcmp(a, b) ? b : "");
}

/* Where most of a peak is JAX's pool: what of the pool was ever in use, by its own figure, and what changes it. */
static void put_jax(struct sl_screen_page *page, const struct sl_torch *torch)
{
	uint64_t used = torch->most_given.in_use ? torch->most_given.in_use : torch->pool_allocated_bytes;

	sl_screen_say(page,
		      "      of JAX's pool at most %s were in use; XLA_PYTHON_CLIENT_PREALLOCATE=false or a smaller "
		      "XLA_PYTHON_CLIENT_MEM_FRACTION lets it take less",
		      SL_SIZE(used));
}

static void put_peak_owners(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_owners owners;
	const char *rest;
	uint64_t left;

	sl_owners_init(&owners);
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes = sl_model_site_at_peak(process->model, site), taken, blocks;
		const char *called = site->kind == SL_KIND_block ? sl_defs_text(process->model->defs, site->label) : NULL,
			   *names[2];
		char where[256];

		if (!bytes || site->device != device->device || !sl_owners_shows(process, site))
			continue;
		sl_screen_place(process, site, where, sizeof(where));
		names[0] = site->kind == SL_KIND_block ? "tensors" : sl_model_library(process->model, site);
		names[1] = where[0] ? where : called ? called : "no stack";
		taken = sl_roles_workspaces(process, site, &blocks);
		if (taken)
			sl_owners_add(&owners, (const char *[]){SL_SCREEN_WORKSPACES, names[1]}, 2, taken, blocks);
		sl_owners_add(&owners, names, 2, bytes - taken,
			      sl_screen_blocks(process, site, sl_model_blocks_at_peak(process->model, site)));
	}
	rest = sl_model_rest_at_peak(process->model, device, &left);
	sl_screen_rests(&owners, process, &device->torch_at_peak, rest, left);
	sl_owners_sort(&owners);
	sl_screen_shares(page, &owners);
	if (owners.share.item[0].child && strstr(owners.share.item[owners.share.item[0].child].name, "JAX's pool") &&
	    device->torch.pool_most_bytes == device->torch.pool_reserved_bytes) /* one segment: taken at once */
		put_jax(page, &device->torch);
	sl_owners_free(&owners);
}

/* What the program itself calls its memory, largest peaks first. */
static void put_names(struct sl_screen_page *page, const struct sl_model *model)
{
	enum { SHOWN = 5 };
	uint64_t last = UINT64_MAX;
	char right[64];

	for (unsigned shown = 0; shown < SHOWN && shown < model->called.count;) {
		uint64_t most = 0;

		for (size_t i = 0; i < model->called.count; i++)
			if (model->called.item[i].peak_bytes < last && model->called.item[i].peak_bytes > most)
				most = model->called.item[i].peak_bytes;
		for (size_t i = 0; i < model->called.count && most && shown < SHOWN; i++) {
			const struct sl_called *called = &model->called.item[i];

			if (called->peak_bytes != most)
				continue;
			snprintf(right, sizeof(right), "so named by the program; %s at the end", SL_SIZE(called->live_bytes));
			sl_screen_owner(page, most, sl_defs_text(model->defs, called->text), right);
			shown++;
		}
		if (!most)
			break;
		last = most;
	}
}

/* True: an error shown above happened at the peak, so the peak's owners have been shown. */
static bool fell_there(const struct sl_screen_page *page, const struct sl_process *process, const struct sl_device_state *device)
{
	const struct sl_oom *first = process->model->ooms.item, *end = first + process->model->ooms.count;

	for (unsigned i = 0; i < SL_SCREEN_OOMS; i++) {
		const struct sl_oom *oom = page->ooms[i];

		if (oom && oom >= first && oom < end && oom->device == device->device && oom->live_bytes == device->known_peak)
			return true;
	}
	return false;
}

/* What the peak was used for, largest first; nothing where it is unknown. */
static void put_roles(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device)
{
	uint64_t bytes[SL_ROLE_COUNT], all = 0;
	char text[256] = "      for";
	size_t at = strlen(text);
	unsigned shown = 0;

	if (!sl_roles_at_peak(process, device, bytes))
		return;
	for (int role = 0; role < SL_ROLE_COUNT; role++)
		all += bytes[role];
	for (;; shown++) {
		int most = SL_ROLE_UNKNOWN;

		for (int role = 0; role < SL_ROLE_COUNT; role++)
			most = bytes[role] > bytes[most] ? role : most;
		if (200 * bytes[most] < all || !bytes[most] || at >= sizeof(text)) /* it would read 0% */
			break;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s %.0f%%", shown ? "," : "",
				       sl_roles_name((enum sl_role)most), 100 * (double)bytes[most] / (double)all);
		bytes[most] = 0;
	}
	sl_screen_line(page, 0, text, "");
}

/* Managed memory is on the device or the host, so it is no part of a device's peak. */
static void put_managed(struct sl_screen_page *page, uint64_t peak)
{
	const struct sl_process *process = NULL;
	uint64_t most = peak / MANAGED_LEAST;

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (int slot = 0; slot <= SL_DEVICES_MAX; slot++) {
			uint64_t bytes = sl_model_row(page->report->processes[i].model, SL_KIND_managed, slot)->peak_bytes;

			process = bytes > most ? &page->report->processes[i] : process;
			most = bytes > most ? bytes : most;
		}
	if (!process)
		return;
	if (!peak)
		sl_screen_head(page, "PEAK", SL_SCREEN_PLAIN);
	sl_screen_say(page, "     %s   %s of managed memory%s, on a device or the host", SL_WHO(process), SL_SIZE(most),
		      peak ? " beside that, at most" : "");
}

void sl_screen_peak(struct sl_screen_page *page)
{
	struct sl_process *process = sl_devices_fullest_process(page->report);
	const struct sl_device_state *device = process ? sl_devices_fullest(process) : NULL;
	char spark[64] = "", others[200] = "", on[128] = "", tensors[64] = "", text[512];

	if (!process) {
		put_managed(page, 0);
		return;
	}
	sl_screen_head(page, "PEAK", SL_SCREEN_PLAIN);
	if (device->line && device->line->begun) /* a summary may say anything */
		sl_screen_spark(spark, sizeof(spark), page, device->line);
	describe_shared(others, sizeof(others), page->report, process, device->known_peak);
	if (page->report->process_count > 1)
		describe_others(others + strlen(others), sizeof(others) - strlen(others), page, process);
	describe_devices(on, others, sizeof(others), process, device);
	if (device->torch.used && device->torch.peak_allocated_bytes)
		snprintf(tensors, sizeof(tensors), ", in tensors %s at most", SL_SIZE(device->torch.peak_allocated_bytes));
	snprintf(text, sizeof(text), "     %s%s   %s%s   %s%s", SL_WHO(process), on, SL_SIZE(device->known_peak), tensors, spark,
		 others);
	if (fell_there(page, process, device)) {
		sl_screen_line(page, RIGHT, text, "held as when memory ran out, above");
	} else {
		sl_screen_line(page, 0, text, "");
		put_peak_owners(page, process, device);
	}
	put_roles(page, process, device);
	if (!fell_there(page, process, device))
		sl_screen_said(page, "memory.spike", (int)(process - page->report->processes), device->device);
	if (process->changes && !process->changes->failed && process->changes->device == device->device)
		sl_screen_changes(page, process);
	put_names(page, process->model);
	put_managed(page, device->known_peak);
}
