/* SPDX-License-Identifier: MIT */
/* Who else holds memory of the device, and what to do about it. */
#include "analyzer/analyses/oom_causes.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/report/devices.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/owners.h"

#define OTHERS_PART 4	/* a place is named if it held at least one of so many parts of what others held */
#define NEAR_PEAK   0.9 /* share of its peak that the other process must hold for its peak to tell who held it */

/* True: most of this process's memory comes from that line too, as in workers that each load the model. */
static bool holds_most_at(struct sl_process *process, const struct sl_oom *oom, const char *line)
{
	char own[300] = "";

	if (oom->owner_count)
		sl_leak_list_line(process, process->model->sites.item[oom->owners[0].site].stack, own, sizeof(own));
	return !strcmp(own, line);
}

/* True: that process leaks on the device.  Writes the line of its largest leak. */
static bool leaks_on(struct sl_process *process, int device, char *line, size_t size)
{
	for (size_t i = 0; i < process->kept.count && process->kept.item[i].verdict == SL_KEPT_GROWING; i++)
		if (process->kept.item[i].track->device == device) {
			sl_leak_list_line(process, process->kept.item[i].track->stack, line, size);
			return line[0];
		}
	return false;
}

const char *sl_oom_causes_others(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom,
				 const struct sl_account *account)
{
	static const char own[] = "give each process a device of its own: CUDA_VISIBLE_DEVICES";
	static const char shared[] = "share one copy between these processes, run fewer of them, or give each a device of its own: "
				     "CUDA_VISIBLE_DEVICES";
	static const char leak[] = "free there what is not needed any more; or give each process a device of its own: "
				   "CUDA_VISIBLE_DEVICES";
	static const char ranks[] = "give each rank a device of its own: cudaSetDevice(LOCAL_RANK) first, or CUDA_VISIBLE_DEVICES";
	const struct sl_device_state *state;
	struct sl_process *other;
	struct sl_owners owners;
	bool alike = false, leaks = false;
	unsigned most, held;
	char where[300];

	out[0] = 0;
	for (unsigned i = most = 0; i < account->other_count; i++)
		most = account->others[i].bytes > account->others[most].bytes ? i : most;
	if (!account->other_count || !(other = account->others[most].process))
		return own;
	state = account->others[most].state;
	sl_owners_init(&owners);
	for (size_t i = 0; i < other->model->sites.count; i++) {
		const struct sl_site *site = &other->model->sites.item[i];
		const char *name = where;

		if (site->device != state->device || !sl_owners_shows(other, site))
			continue;
		sl_leak_list_line(other, site->stack, where, sizeof(where));
		if (where[0])
			sl_owners_add(&owners, &name, 1, sl_model_site_at_peak(other->model, site), 0);
	}
	sl_owners_sort(&owners);
	held = 2 * state->context_bytes < account->others[most].bytes ? owners.share.item[0].child : 0;
	if (held && owners.share.item[held].bytes) {
		if (OTHERS_PART * owners.share.item[held].bytes >= account->others_bytes &&
		    (double)account->others[most].bytes >= NEAR_PEAK * (double)owners.share.item[0].bytes) {
			alike = holds_most_at(process, oom, owners.share.item[held].name);
			leaks = !alike && leaks_on(other, state->device, where, sizeof(where)) &&
				!strcmp(where, owners.share.item[held].name);
			snprintf(out, size, ", %s of it at %s%s",
				 2 * owners.share.item[held].bytes >= account->others_bytes ? "most" : "the largest part",
				 owners.share.item[held].name,
				 alike	 ? ", where this one holds most too"
				 : leaks ? ", where it leaks"
					 : "");
		} else if (leaks_on(other, state->device, where, sizeof(where))) {
			leaks = true;
			snprintf(out, size, ", and leaks at %s", where);
		}
	} else {
		held = 0;
		sl_leak_list_line(other, state->context_stack, where, sizeof(where));
		snprintf(out, size, ", mostly contexts%s%s", where[0] ? ", made at " : "", where);
	}
	sl_owners_free(&owners);
	if (account->others[most].stray)
		return "let those ranks use only their own device: set it first, name it there, or set CUDA_VISIBLE_DEVICES";
	if (leaks)
		return leak;
	if (sl_process_is_rank(process) && sl_process_is_rank(other) && sl_devices_visible(process) > 1)
		return ranks;
	if (alike)
		return shared;
	return held ? own : "let those processes make no context there, or give each a device of its own: CUDA_VISIBLE_DEVICES";
}
