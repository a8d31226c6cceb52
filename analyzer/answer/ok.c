/* SPDX-License-Identifier: MIT */
/* OK: nothing went wrong.  FAILED: the program did, for another reason than memory.  RUNNING: it has not ended. */
#include <stdio.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/missing.h"

#define MANAGED_PART 20 /* managed memory is told if it is at least one of so many parts of the peak */

/* True: a runtime did not accept the driver, and so refused every call. */
static bool was_refused(const struct sl_report *report, uint64_t *failed)
{
	uint64_t made = 0, ooms = 0;

	*failed = 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_model *model = report->processes[i].model;

		ooms += model->ooms.count;
		for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
			for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
				made += sl_model_row(model, kind, d)->allocations;
				*failed += sl_model_row(model, kind, d)->failed_allocations;
			}
	}
	return !made && !ooms && *failed;
}

/* The process with the most resident memory, where no device memory tells anything. */
static const struct sl_process *most_resident(const struct sl_report *report)
{
	const struct sl_process *largest = NULL;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];

		if (p->model->host.rss_peak != SL_UNKNOWN && (!largest || p->model->host.rss_peak > largest->model->host.rss_peak))
			largest = p;
	}
	return largest;
}

static void note_host(struct sl_make *make, struct sl_answer *answer)
{
	const struct sl_process *largest = most_resident(make->report);

	if (largest && largest->model->host.rss_peak)
		sl_answer_say(answer, SL_LABEL_NOTE, "%s had %s of the host resident at most", SL_WHO(largest),
			      SL_ANSWER_SIZE(largest->model->host.rss_peak));
}

/* Other processes held memory of the card. */
static void note_others(struct sl_make *make, struct sl_answer *answer)
{
	for (unsigned i = 0; i < make->report->device_count; i++) {
		const struct sl_shared_device *device = &make->report->devices[i];

		if (device->others && device->others_bytes && device->others_bytes != SL_UNKNOWN)
			sl_answer_say(answer, SL_LABEL_NOTE, "%u other process%s held %s of device %d", device->others,
				      device->others == 1 ? "" : "es", SL_ANSWER_SIZE(device->others_bytes), device->device);
	}
}

static void see_damage(void *damage, bool damaged, const char *subject, const char *message)
{
	*(bool *)damage |= damaged;
}

bool sl_make_is_damaged(struct sl_make *make)
{
	bool damaged = false;

	sl_missing_tell(make->report, see_damage, &damaged);
	return damaged;
}

void sl_make_ok(struct sl_make *make)
{
	struct sl_report *report = make->report;
	struct sl_process *process = sl_devices_fullest_process(report);
	const struct sl_device_state *device = process ? sl_devices_fullest(process) : NULL;
	const struct sl_process *with = NULL;
	const struct sl_row *managed = sl_devices_largest_row(report, SL_KIND_managed, &with);
	uint64_t failed;
	const char *read = sl_make_is_damaged(make) ? ", in what was read" : "";
	struct sl_answer *answer;

	if (was_refused(report, &failed)) {
		answer = sl_answer_add(make->to, SL_WORD_FAILED, "run.refused");
		sl_answer_headline(answer, "every allocation failed, but not for want of memory");
		sl_answer_say(answer, SL_LABEL_WHY, "%llu calls were refused, and all of them failed.", (unsigned long long)failed);
		sl_answer_say(answer, SL_LABEL_OPEN, "the cause on this machine");
		sl_answer_next(answer, "a check of this machine and job", "stormlog-run --check -- COMMAND");
		return;
	}
	if (sl_report_has_ended(report, SL_ENDED_RUNNING)) {
		answer = sl_answer_add(make->to, SL_WORD_RUNNING, "run.ok");
		sl_answer_headline(answer, "no %s and no leak so far", make->retried ? "request that ended it" : "failed request");
	} else if (!process && !managed && !make->retried) {
		answer = sl_answer_add(make->to, SL_WORD_OK, "run.ok");
		sl_answer_headline(answer, "no memory of a card was used%s", read);
	} else {
		answer = sl_answer_add(make->to, SL_WORD_OK, "run.ok");
		sl_answer_headline(answer, "no leak, %s%s%s",
				   make->retried ? "and the program got over each failed request" : "no failed request",
				   sl_report_has_ended(report, SL_ENDED_KILLED) ? ", until it was killed" : "", read);
	}
	if (process && device) {
		answer->process = (int)(process - report->processes);
		answer->device = device->device;
		sl_answer_figure(answer, "peak", "bytes", (double)device->known_peak);
		sl_make_peak(make, answer, process, device, NULL);
		sl_make_changes(answer, process, SL_MAKE_SURE, NULL);
		if (!answer->label[SL_LABEL_LESS].count)
			sl_make_no_grad_at_peak(answer, process, device);
	}
	if (!process || sl_report_has_ended(report, SL_ENDED_KILLED))
		note_host(make, answer);
	note_others(make, answer);
	/* it is on a device or the host, so it is no part of what a device held */
	if (managed && managed->peak_bytes * MANAGED_PART > (device ? device->known_peak : 0))
		sl_answer_say(answer, SL_LABEL_NOTE, "%s held %s of managed memory at most, on a device or the host", SL_WHO(with),
			      SL_ANSWER_SIZE(managed->peak_bytes));
	if (make->retried)
		sl_answer_say(answer, SL_LABEL_NOTE, "%s", make->retried);
	make->retried = NULL;
	for (size_t i = 0; i < make->hints.count; i++) {
		sl_answer_say(answer, SL_LABEL_NOTE, "%s", make->hints.item[i].text);
		if (make->hints.item[i].advice)
			sl_answer_say(answer, SL_LABEL_LESS, "%s%s", sl_answer_break(answer, SL_LABEL_LESS),
				      make->hints.item[i].advice);
	}
	make->hints.count = 0;
	if (process && device && report->paths)
		sl_make_next(make, answer, sl_make_was_fuller(device) ? "tree --at tensors" : "tree --at peak",
			     "the lines that held it");
}
