/* SPDX-License-Identifier: MIT */
#include "analyzer/model/counts/sample_wait.h"

#include "analyzer/model/counts/tracks.h"
#include "analyzer/model/state/model.h"

/*
 * What a sample finds beyond the process's own memory.  If that memory changed while the sample was taken (NVML may answer an
 * allocation late) only two bounds are known: the value hidden before stays if it lies between them, else the nearer bound is
 * taken.  SL_UNKNOWN: there is no value from before and the bounds differ.
 */
static uint64_t hidden(const struct sl_device_state *device, uint64_t known_max)
{
	uint64_t figure = device->sampled.figure, known_min = device->sampled.known_min, before = device->hidden_last_bytes;
	uint64_t low = figure > known_max ? figure - known_max : 0, high = figure > known_min ? figure - known_min : 0;

	if (before == SL_UNKNOWN)
		return low == high ? low : SL_UNKNOWN;
	if (before < low)
		return low;
	return before < high ? before : high;
}

/* The first call on a device makes the context, and a sample during that call may show it. */
static struct sl_instant context_made(const struct sl_device_state *device)
{
	struct sl_instant made = device->context_made.time_ns ? device->context_made : device->sampled.at;

	if (!device->context_made.time_ns && device->entered_ns)
		made = (struct sl_instant){.step = SL_UNKNOWN};
	if (device->entered_ns)
		made.time_ns = device->entered_ns;
	return made;
}

/* The most that the part took while the sample was taken. */
static uint64_t most_of(const struct sl_device_state *device, const struct sl_hidden_part *part)
{
	return part->left_ns >= device->sampled.begin_ns && part->left_bytes > part->bytes ? part->left_bytes : part->bytes;
}

static uint64_t most_code(const struct sl_device_state *device)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < device->parts.count; i++)
		bytes += device->parts.item[i].what == SL_HIDDEN_CODE ? most_of(device, &device->parts.item[i]) : 0;
	return bytes;
}

/*
 * What contexts add that came since the sample which shows the context; below 0: what those that went took.
 * hidden_bytes: all that is hidden.
 */
static int64_t more_contexts(const struct sl_device_state *device, uint64_t hidden_bytes)
{
	uint32_t then = device->contexts_sampled, now = device->contexts;
	uint64_t bytes = device->context_sampled ? device->parts.item[device->context_sampled - 1].bytes : 0;
	uint64_t all = then ? bytes * now / then : bytes * (now + 1);

	return (int64_t)(all < hidden_bytes ? all : bytes < hidden_bytes ? hidden_bytes : bytes) - (int64_t)bytes;
}

/* What each part takes of a hidden peak: the most that it took while the sample was taken, if there is room for all. */
static void take_parts(struct sl_device_state *device, uint64_t peak)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < device->parts.count; i++)
		sum += most_of(device, &device->parts.item[i]);
	for (size_t i = 0; i < device->parts.count; i++) {
		struct sl_hidden_part *part = &device->parts.item[i];

		part->peak_bytes = sum <= peak ? most_of(device, part) : part->bytes;
	}
	if (device->context_sampled)
		device->parts.item[device->context_sampled - 1].peak_bytes += (uint64_t)more_contexts(device, peak);
	for (size_t i = 0; i < device->fresh.count; i++)
		device->fresh.item[i].peaked = true;
}

/* The context or module itself, as an object of its place; NULL: the cost is of code that came later. */
static struct sl_live *object_of(struct sl_model *model, const struct sl_fresh_cost *cost, enum sl_hidden_what what)
{
	enum sl_object object = what == SL_HIDDEN_CONTEXT ? SL_OBJECT_CONTEXT : SL_OBJECT_MODULE;
	struct sl_live *live = cost->handle ? sl_table_find(&model->objects[object - SL_OBJECT_CONTEXT], cost->handle) : NULL;

	return live && live->site == cost->track && live->bytes >= cost->bytes ? live : NULL;
}

/* Takes back part of the bytes of a birth; lives: it has not ended. */
static void tracks_lower(struct sl_model *model, uint32_t index, uint64_t bytes, bool lives)
{
	struct sl_track *track = &model->tracks.item[index];
	struct sl_track_course *course = &model->tracks.course[index];
	uint64_t *born = course->count ? &course->windows[course->count - 1].born_bytes : NULL;

	track->born_bytes -= bytes;
	track->live_bytes -= lives ? bytes : 0;
	track->most_bytes = track->born_bytes < track->most_bytes ? track->born_bytes : track->most_bytes;
	if (born)
		*born -= bytes < *born ? bytes : *born;
}

static void lower_cost(struct sl_model *model, struct sl_device_state *device, struct sl_fresh_cost *cost, uint64_t bytes)
{
	struct sl_hidden_part *part = &device->parts.item[cost->part];
	struct sl_live *live = cost->key ? sl_table_find(&model->costs, cost->key) : NULL, *object;

	if (cost->key && !(live && live->refs == device->age && live->bytes >= bytes))
		return; /* it has ended, and with it what it took */
	if (live)
		live->bytes -= bytes;
	if ((object = object_of(model, cost, part->what)))
		object->bytes -= bytes;
	part->bytes -= bytes;
	part->peak_bytes -= cost->peaked && part->peak_bytes >= bytes ? bytes : 0;
	*(part->what == SL_HIDDEN_CONTEXT ? &device->context_bytes : &device->module_bytes) -= bytes;
	if (cost->track != SL_NO_TRACK)
		tracks_lower(model, cost->track, bytes, object != NULL);
	cost->bytes -= bytes;
}

/*
 * Functions of a module that came since the same sample cost no more than the module.  Others on the device make the two calls
 * differ, and the module holds its code whichever of them loaded it.
 */
static void join_code(struct sl_model *model, struct sl_device_state *device)
{
	bool modules = false;

	for (size_t i = 0; i < device->fresh.count; i++)
		modules |= object_of(model, &device->fresh.item[i], SL_HIDDEN_CODE) != NULL;
	for (size_t i = 0; modules && i < device->fresh.count; i++) {
		struct sl_fresh_cost *cost = &device->fresh.item[i];
		const struct sl_live *module =
			cost->module && !object_of(model, cost, SL_HIDDEN_CODE)
				? sl_table_find(&model->objects[SL_OBJECT_MODULE - SL_OBJECT_CONTEXT], cost->module)
				: NULL;

		if (module && module->time_ns > device->fresh_ns)
			lower_cost(model, device, cost, cost->bytes);
	}
}

/*
 * What contexts and code cost is read from the device's free memory, which other processes change meanwhile.  What came since
 * the last exact sample took no more than hidden memory has risen.  A sample during such a call tells nothing.
 */
static void limit_costs(struct sl_model *model, struct sl_device_state *device, uint64_t known_max)
{
	uint64_t figure = device->sampled.figure, known_min = device->sampled.known_min, sum = 0;
	uint64_t low = figure > known_max ? figure - known_max : 0, high = figure > known_min ? figure - known_min : 0;
	uint64_t room = high > device->fresh_from ? high - device->fresh_from : 0;

	if (device->code_ns >= device->sampled.begin_ns)
		return;
	if (device->figure >= SL_FIGURE_LESS_OTHERS && device->shared)
		join_code(model, device);
	for (size_t i = 0; i < device->fresh.count; i++)
		sum += device->fresh.item[i].bytes;
	if (device->figure >= SL_FIGURE_LESS_OTHERS && device->shared && sum > room)
		for (size_t i = 0; i < device->fresh.count; i++) {
			struct sl_fresh_cost *cost = &device->fresh.item[i];

			lower_cost(model, device, cost, cost->bytes - (uint64_t)((double)cost->bytes * (double)room / (double)sum));
		}
	for (size_t i = model->ooms.count; i-- && model->ooms.item[i].time_ns + SL_NS_PER_S > device->sampled.time_ns;)
		if (model->ooms.item[i].device == device->device && model->ooms.item[i].module_bytes > device->module_bytes)
			model->ooms.item[i].module_bytes = device->module_bytes;
	if (low != high && device->fresh.count)
		return;
	device->fresh.count = 0;
	device->fresh_from = low;
	device->fresh_ns = device->sampled.begin_ns;
	device->shared = device->present.count != 0;
}

/*
 * Takes as the context what the first sample shows of this process beyond its calls, its code and what its limit set aside.  A
 * sample during calls may show too little: the first sample while nothing changes corrects that, later ones only lower it.  Once
 * blocks were freed to a pool, which may keep them, samples show too much and are not used.
 */
static void own(const struct sl_model *model, struct sl_device_state *device, uint64_t known_max)
{
	uint64_t accounted = known_max + most_code(device) + sl_device_state_aside(device, device->sampled.time_ns), bytes;
	struct sl_hidden_part *part = device->context_sampled ? &device->parts.item[device->context_sampled - 1] : NULL;
	bool steady = device->sampled.steady, tells = !device->sampled.pool_keeps;

	if (device->sampled.process == SL_UNKNOWN || device->sampled.process <= accounted)
		return;
	/* whatever came or went meanwhile, the context takes no more than this */
	if (!device->contexts && device->sampled.process - device->sampled.known_min < device->context_most)
		device->context_most = device->sampled.process - device->sampled.known_min;
	bytes = device->sampled.process - accounted;
	bytes = bytes < device->context_most || device->contexts ? bytes : device->context_most;
	if (part && device->context_bytes && steady && (bytes < part->bytes || (tells && !device->context_steady))) {
		for (size_t i = 0; i < model->ooms.count; i++)
			if (model->ooms.item[i].device == device->device &&
			    model->ooms.item[i].context_bytes == device->context_bytes)
				model->ooms.item[i].context_bytes = bytes;
		part->bytes = part->peak_bytes = device->context_bytes = bytes;
		device->contexts_sampled = device->contexts;
		device->context_steady = true;
	}
	if (device->context_bytes || !tells)
		return;
	if (!part) {
		*SL_PUSH(&device->parts) = (struct sl_hidden_part){
			.what = SL_HIDDEN_CONTEXT, .count = 1, .peak_bytes = bytes, .first = context_made(device)};
		device->context_sampled = device->parts.count;
		part = &device->parts.item[device->context_sampled - 1];
	}
	/*
	 * after a reset a context takes as much again: the earlier figure counts if it was steady and is smaller, or if no
	 * sample was steady and it is larger
	 */
	if (part->peak_bytes && (device->context_steady ? part->peak_bytes < bytes : !steady && part->peak_bytes > bytes))
		bytes = part->peak_bytes;
	part->bytes = device->context_bytes = bytes;
	device->contexts_sampled = device->contexts;
	part->peak_bytes = part->peak_bytes ? bytes : 0;
	device->context_steady |= steady;
}

const char *sl_sample_wait_context_bound(const struct sl_device_state *device)
{
	return !device->context_sampled ? NULL : device->context_steady ? "at most" : "about";
}

uint64_t sl_sample_wait_contexts(const struct sl_device_state *device)
{
	return device->context_bytes + (uint64_t)more_contexts(device, UINT64_MAX >> 1);
}

void sl_sample_wait_settle(struct sl_model *model, struct sl_device_state *device)
{
	uint64_t bytes, known_max = device->sampled.known_max;

	if (known_max == SL_UNKNOWN)
		return;
	device->sampled.known_max = SL_UNKNOWN;
	limit_costs(model, device, known_max);
	own(model, device, known_max);
	bytes = model->recording.has_device_figures ? hidden(device, known_max) : SL_UNKNOWN;
	if (bytes == SL_UNKNOWN)
		return;
	device->hidden_last_bytes = bytes;
	if (bytes > device->rounded && bytes - device->rounded > device->unrounded)
		device->unrounded = bytes - device->rounded;
	if (!device->hidden_line)
		device->hidden_line = sl_timeline_add(&model->timeline, SL_LINE_HIDDEN, device->device, 0);
	if (!device->samples_line)
		device->samples_line = sl_timeline_add(&model->timeline, SL_LINE_SAMPLES, device->device, 0);
	sl_timeline_set(&model->timeline, device->samples_line, device->sampled.at.time_ns, device->samples_line->value + 1,
			SL_NO_SITE);
	sl_timeline_set(&model->timeline, device->hidden_line, device->sampled.at.time_ns, bytes, SL_NO_SITE);
	if (device->hidden_peak_bytes == SL_UNKNOWN || bytes > device->hidden_peak_bytes) {
		device->hidden_peak_bytes = bytes;
		device->hidden_peak_ns = device->sampled.time_ns;
		device->hidden_peak_rounded =
			device->rounded < bytes - device->unrounded ? device->rounded : bytes - device->unrounded;
		take_parts(device, bytes);
	}
}

/* The driver may have done this allocation or free before the sample, although its call returned later. */
void sl_sample_wait_change(struct sl_model *model, struct sl_device_state *device, int64_t bytes)
{
	if (!device->entered_ns)
		device->entered_ns = model->call_begin_ns;
	if (device->sampled.known_max == SL_UNKNOWN)
		return;
	if (model->call_begin_ns > device->sampled.time_ns) {
		sl_sample_wait_settle(model, device);
		return;
	}
	device->sampled.steady &= !bytes;
	if (bytes > 0)
		device->sampled.known_max += (uint64_t)bytes;
	else
		device->sampled.known_min -=
			device->sampled.known_min < (uint64_t)-bytes ? device->sampled.known_min : (uint64_t)-bytes;
}
