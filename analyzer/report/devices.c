/* SPDX-License-Identifier: MIT */
/* Longer than other files: it separates one process's held and hidden memory on a device from that of all others. */
#include "analyzer/report/devices.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/trace/idmap.h"

#define SAMPLE_NS  2000000ull  /* a sample of the device usually takes no longer, from question to answer */
#define LEAVING_NS SL_NS_PER_S /* the driver takes so long to take back what an ended process held */
/* Looks at what another process held: enough for 120 processes of a device beside each other, and some more for each. */
#define LOOKS	   (32u << 20)
#define LOOKS_EACH 512

struct held_range {
	uint64_t min, max;
};

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

struct sl_device_state *sl_devices_state(const struct sl_report *report, const struct sl_shared_device *device, unsigned process)
{
	const struct sl_process *p = &report->processes[process];

	for (size_t i = 1; i < SL_COUNT(p->model->devices); i++) {
		struct sl_device_state *state = p->model->devices[i];
		const struct sl_device *def = state ? sl_defs_device(&p->trace->defs, state->device) : NULL;

		if (!state || !state->used)
			continue;
		if (device->uuid ? def && same_text(def->uuid, device->uuid) : state->device == device->device)
			return state;
	}
	return NULL;
}

const struct sl_shared_device *sl_devices_shared(const struct sl_report *report, const struct sl_device_state *state)
{
	for (unsigned i = 0; i < report->device_count; i++)
		for (unsigned u = 0; u < report->devices[i].user_count; u++)
			if (report->devices[i].users[u].state == state)
				return &report->devices[i];
	return NULL;
}

unsigned sl_devices_held(const struct sl_process *process)
{
	unsigned count = 0;

	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++)
		count += process->model->devices[d] && process->model->devices[d]->known_peak;
	return count;
}

const struct sl_device_state *sl_devices_home(const struct sl_process *process)
{
	const struct sl_device_state *home = NULL;

	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->used && (!home || state->known_peak > home->known_peak))
			home = state;
	}
	return home;
}

const struct sl_device_state *sl_devices_fullest(const struct sl_process *process)
{
	const struct sl_device_state *fullest = NULL;

	for (size_t d = 0; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->known_peak > (fullest ? fullest->known_peak : 0))
			fullest = state;
	}
	return fullest;
}

uint64_t sl_devices_peak(const struct sl_process *process)
{
	const struct sl_device_state *fullest = sl_devices_fullest(process);

	return fullest ? fullest->known_peak : 0;
}

uint64_t sl_devices_tensors_peak(const struct sl_process *process)
{
	const struct sl_device_state *state = sl_devices_fullest(process);
	const struct sl_bin *highest = state ? sl_timeline_highest(state->torch.allocated, 0, SL_TIMELINE_BINS) : NULL;

	return highest ? highest->max_ns : state ? state->known_peak_ns : 0;
}

struct sl_process *sl_devices_fullest_process(const struct sl_report *report)
{
	struct sl_process *found = NULL;
	uint64_t max_peak = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		uint64_t peak = sl_devices_peak(&report->processes[i]);

		if (peak > max_peak) {
			found = &report->processes[i];
			max_peak = peak;
		}
	}
	return found;
}

const struct sl_row *sl_devices_largest_row(const struct sl_report *report, unsigned kind, const struct sl_process **process)
{
	const struct sl_row *largest = NULL;

	for (unsigned i = 0; i < report->process_count; i++)
		for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
			const struct sl_row *row = sl_model_row(report->processes[i].model, kind, d);

			if (row->peak_bytes <= (largest ? largest->peak_bytes : 0))
				continue;
			largest = row;
			*process = &report->processes[i];
		}
	return largest;
}

/* names: of host and device -> index + 1 */
static struct sl_shared_device *shared_of(struct sl_report *report, struct sl_map *names, const char *host,
					  const struct sl_device *def, int ordinal)
{
	char *name = def && def->uuid && host ? sl_memory_print("%zu %s %s", strlen(host), host, def->uuid) : NULL;
	uintptr_t *at = name ? sl_map_at(names, name) : &(uintptr_t){0};
	struct sl_shared_device *device;

	free(name);
	if (*at)
		return &report->devices[*at - 1];
	report->devices = sl_memory_must(realloc(report->devices, (report->device_count + 1) * sizeof(*device)));
	device = &report->devices[report->device_count++];
	*at = report->device_count;
	*device = (struct sl_shared_device){
		.host = host,
		.uuid = def ? def->uuid : NULL,
		.name = def ? def->name : NULL,
		.device = ordinal,
		.total_bytes = def && def->total_bytes ? def->total_bytes : SL_UNKNOWN,
		.used_peak_bytes = SL_UNKNOWN,
		.hidden_peak_bytes = SL_UNKNOWN,
	};
	return device;
}

static void add_process(struct sl_report *report, struct sl_map *names, unsigned process, struct sl_device_state *state)
{
	const struct sl_process *p = &report->processes[process];
	struct sl_shared_device *device =
		shared_of(report, names, p->trace->header.host, sl_defs_device(&p->trace->defs, state->device), state->device);

	device->users = sl_memory_must(realloc(device->users, (device->user_count + 1) * sizeof(*device->users)));
	device->users[device->user_count++] = (struct sl_device_user){.process = process, .state = state};
	if (state->total_bytes != SL_UNKNOWN)
		device->total_bytes = state->total_bytes;
	if (state->source[0])
		device->source = state->source;
	if (state->used_peak_bytes != SL_UNKNOWN &&
	    (device->used_peak_bytes == SL_UNKNOWN || state->used_peak_bytes > device->used_peak_bytes))
		device->used_peak_bytes = state->used_peak_bytes;
}

/* The processes of a device, as a tree over time: the middle of each part of the array is the root of that part. */
struct user {
	unsigned process;
	uint64_t begin_ns, end_ns, last_end_ns; /* last_end_ns: of all in the part of which this one is the root */
	uint64_t left_ns;
	const struct sl_device_state *state; /* NULL: it did not use it */
};

struct users {
	const struct sl_report *report;
	struct user *item;
	size_t count;
	uint64_t looks, looks_max;
	unsigned skipped; /* processes for which there were no looks left */
};

static int by_begin(const void *a, const void *b)
{
	const struct user *x = a, *y = b;

	return SL_RISING(x->begin_ns, y->begin_ns) ?: SL_RISING(x->process, y->process);
}

static uint64_t note_ends(struct user *users, size_t count)
{
	struct user *middle = &users[count / 2];
	uint64_t before, after;

	if (!count)
		return 0;
	before = note_ends(users, count / 2);
	after = note_ends(middle + 1, count - count / 2 - 1);
	middle->last_end_ns = before > after ? before : after;
	return middle->last_end_ns = middle->end_ns > middle->last_end_ns ? middle->end_ns : middle->last_end_ns;
}

/* When each process left the device, by the samples of all that list it. */
static void take_left(const struct sl_report *report, struct sl_shared_device *device)
{
	struct sl_idmap pids = {0}; /* pid -> index in `last` */
	uint64_t *last = sl_memory_must(calloc(device->user_count, sizeof(*last)));

	for (unsigned i = 0; i < device->user_count; i++)
		sl_idmap_claim(&pids, (uint64_t)report->processes[device->users[i].process].trace->header.pid, pids.count);
	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_device_state *state = device->users[i].state;

		for (size_t k = 0; k < state->neighbours.count; k++) {
			const struct sl_neighbour *one = &state->neighbours.item[k];
			uint64_t listed = sl_process_unix(&report->processes[device->users[i].process], one->last_ns);
			uint32_t at = sl_idmap_get(&pids, (uint64_t)one->pid, UINT32_MAX);

			if (at != UINT32_MAX && listed > last[at])
				last[at] = listed;
		}
	}
	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_process *p = &report->processes[device->users[i].process];
		uint64_t listed = last[sl_idmap_get(&pids, (uint64_t)p->trace->header.pid, 0)];

		device->users[i].left_ns = listed > p->ended_unix_ns ? listed : p->ended_unix_ns;
	}
	sl_idmap_free(&pids);
	free(last);
}

static struct users users_of(const struct sl_report *report, const struct sl_shared_device *device)
{
	struct users users = {.report = report,
			      .item = sl_memory_must(calloc(device->user_count, sizeof(*users.item))),
			      .count = device->user_count,
			      .looks_max = LOOKS + (uint64_t)LOOKS_EACH * device->user_count};

	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_process *p = &report->processes[device->users[i].process];

		users.item[i] = (struct user){.process = device->users[i].process,
					      .begin_ns = p->trace->header.started_ns,
					      .end_ns = p->ended_unix_ns,
					      .left_ns = device->users[i].left_ns,
					      .state = device->users[i].state};
	}
	qsort(users.item, users.count, sizeof(*users.item), by_begin);
	note_ends(users.item, users.count);
	return users;
}

/* What is asked of the other processes: the least and the most that they held between two Unix times. */
struct asked {
	unsigned except;
	uint64_t begin_ns, end_ns;
	uint64_t since_ns; /* processes that ended before that held nothing any more */
	bool hidden;	   /* hidden memory is meant, not blocks */
};

static void add_held(struct held_range *range, const struct users *users, const struct user *user, const struct asked *asked)
{
	const struct sl_process *p = &users->report->processes[user->process];
	const struct sl_header *header = &p->trace->header;
	uint64_t begin = asked->begin_ns - header->started_ns + header->monotonic_ns;
	uint64_t end = asked->end_ns - header->started_ns + header->monotonic_ns;

	if (asked->hidden) {
		range->max += user->state->figure > SL_FIGURE_DEVICE
				      ? sl_timeline_max(&p->model->timeline, user->state->hidden_line, begin, end)
				      : 0;
		return;
	}
	range->max += sl_timeline_max(&p->model->timeline, user->state->line, begin, end);
	if (asked->begin_ns >= header->started_ns &&
	    (asked->end_ns <= p->ended_unix_ns ||
	     (p->trace->status != SL_STATUS_COMPLETED && asked->begin_ns + SAMPLE_NS <= user->left_ns)))
		range->min += sl_timeline_min(&p->model->timeline, user->state->line, begin, end);
}

/* Most of a thousand processes are from another time: the tree leads past them. */
static void add_part(struct held_range *range, struct users *users, const struct user *part, size_t count,
		     const struct asked *asked)
{
	const struct user *middle = &part[count / 2];

	if (!count || middle->last_end_ns < asked->since_ns)
		return;
	users->looks++;
	add_part(range, users, part, count / 2, asked);
	if (middle->begin_ns > asked->end_ns)
		return;
	if (middle->end_ns >= asked->since_ns && middle->process != asked->except && middle->state)
		add_held(range, users, middle, asked);
	add_part(range, users, middle + 1, count - count / 2 - 1, asked);
}

static struct held_range held_by_others(struct users *users, unsigned except, uint64_t begin_ns, uint64_t end_ns,
					uint64_t leaving_ns)
{
	struct asked asked = {except, begin_ns, end_ns, begin_ns > leaving_ns ? begin_ns - leaving_ns : 0, false};
	struct held_range range = {0};

	add_part(&range, users, users->item, users->count, &asked);
	return range;
}

static bool may_look(const struct users *users)
{
	return users->looks <= users->looks_max;
}

static void measure_known(struct users *users, struct sl_shared_device *device, unsigned process,
			  const struct sl_device_state *state)
{
	const struct sl_process *p = &users->report->processes[process];
	const struct sl_line *line = state->line;

	for (uint32_t b = line && line->begun ? line->first : 1; line && line->begun && b <= line->bin; b++) {
		uint64_t at = sl_process_unix(p, line->bins[b].max_ns), sum = line->bins[b].max;

		if (may_look(users))
			sum += held_by_others(users, process, at, at, 0).max;
		if (sum > device->known_peak_bytes)
			device->known_peak_bytes = sum;
	}
}

/* Adds up what is hidden in each process by its own figure, at the same time. */
static void measure_hidden(struct users *users, struct sl_shared_device *device, unsigned process,
			   const struct sl_device_state *state)
{
	const struct sl_process *p = &users->report->processes[process];
	const struct sl_line *line = state->hidden_line;

	for (uint32_t b = line && line->begun ? line->first : 1; line && line->begun && b <= line->bin; b++) {
		uint64_t at = sl_process_unix(p, line->bins[b].max_ns);
		struct asked asked = {process, at, at, at, true};
		struct held_range range = {0};

		if (may_look(users))
			add_part(&range, users, users->item, users->count, &asked);
		range.max += line->bins[b].max;
		if (device->hidden_peak_bytes != SL_UNKNOWN && range.max <= device->hidden_peak_bytes)
			continue;
		device->hidden_peak_bytes = range.max;
		device->hidden_peak_unix_ns = at;
	}
}

static uint64_t less(uint64_t bytes, uint64_t others)
{
	return bytes > others ? bytes - others : 0;
}

/*
 * How much of a sample is hidden.  What others held is known only within bounds: what was hidden before is kept if it lies
 * within them, else the nearer bound is taken.
 */
static uint64_t hidden_of(uint64_t sampled, struct held_range others, uint64_t before)
{
	uint64_t low = less(sampled, others.max), high = less(sampled, others.min);

	if (before < low)
		return low;
	return before < high ? before : high;
}

static bool is_sampled(const struct sl_line *samples, uint32_t bin)
{
	return bin == samples->first || samples->bins[bin].last > samples->bins[bin - 1].last;
}

/* What others held while the samples of each bin were taken. */
struct neighbours {
	uint32_t first, bin;	   /* of the process's samples and hidden memory */
	struct held_range *others; /* of each of these bins */
};

/* False: too much to look at. */
static bool take_beside(struct neighbours *neighbours, struct users *users, unsigned process, const struct sl_device_state *state)
{
	const struct sl_process *p = &users->report->processes[process];
	const struct sl_timeline *timeline = &p->model->timeline;
	const struct sl_line *samples = state->samples_line, *hidden = state->hidden_line;
	struct held_range range = {0};

	neighbours->first = samples->first < hidden->first ? samples->first : hidden->first;
	neighbours->bin = samples->bin > hidden->bin ? samples->bin : hidden->bin;
	neighbours->others = sl_memory_must(calloc(neighbours->bin - neighbours->first + 1, sizeof(*neighbours->others)));
	for (uint32_t b = neighbours->first; b <= neighbours->bin && may_look(users); b++) {
		uint64_t begin_ns = sl_process_unix(p, timeline->begin_ns + ((uint64_t)b << timeline->shift));

		if (b == hidden->first) /* hidden memory is known only after its sample: until the next one all of it counts */
			range = (struct held_range){0};
		if (is_sampled(samples, b))
			range = held_by_others(users, process, begin_ns - SAMPLE_NS,
					       begin_ns + (1ull << timeline->shift) + SAMPLE_NS, LEAVING_NS);
		neighbours->others[b - neighbours->first] = range;
	}
	return may_look(users);
}

/* What was hidden at the first sample during which no other process changed; without one, the least that any sample shows. */
static uint64_t hidden_at_rest(const struct sl_device_state *state, const struct neighbours *neighbours)
{
	uint64_t least = SL_UNKNOWN;

	for (uint32_t b = state->samples_line->first; b <= state->samples_line->bin; b++) {
		const struct held_range *range = &neighbours->others[b - neighbours->first];
		uint64_t bytes;

		if (!is_sampled(state->samples_line, b))
			continue;
		bytes = less(state->hidden_line->bins[b].last, range->min);
		if (range->min == range->max)
			return bytes;
		least = bytes < least ? bytes : least;
	}
	return least;
}

/*
 * Splits what the samples of a bin found into hidden memory and that of others.  The bin begins with what the sample before it
 * found (found_before), of which `before` was hidden.
 */
static void take(struct sl_bin *hidden, struct sl_bin *others_bin, uint64_t found_before, uint64_t before, struct held_range others)
{
	uint64_t max = others_bin->max == found_before ? others_bin->last : others_bin->max;
	uint64_t min = others_bin->min == found_before ? others_bin->last : others_bin->min;

	hidden->last = hidden_of(others_bin->last, others, before);
	hidden->max = hidden_of(max, others, before);
	hidden->min = hidden_of(min, others, before);
	if (found_before != SL_UNKNOWN) {
		hidden->max = before > hidden->max ? before : hidden->max;
		hidden->min = before < hidden->min ? before : hidden->min;
	}
	hidden->area = others_bin->max ? others_bin->area * (double)hidden->max / (double)others_bin->max : 0;
	others_bin->min -= hidden->min;
	others_bin->max -= hidden->max;
	others_bin->last -= hidden->last;
	others_bin->area -= hidden->area;
}

/*
 * What other recorded processes held is not hidden: it is subtracted from the line of hidden memory and gets a line of its
 * own.  For the bin of a sample it is known exactly where their memory did not change, else within bounds.  Within these
 * bounds as little as possible is called hidden.
 */
static void take_others(struct users *users, unsigned process, struct sl_device_state *state)
{
	struct sl_model *model = users->report->processes[process].model;
	struct sl_line *hidden = state->hidden_line, *others_line;
	uint64_t found = SL_UNKNOWN, before, max_hidden = 0;
	struct neighbours neighbours = {0};

	if (!hidden || !hidden->begun)
		return;
	if (!take_beside(&neighbours, users, process, state)) {
		free(neighbours.others);
		return;
	}
	before = hidden_at_rest(state, &neighbours);
	others_line = state->others_line = sl_timeline_copy(&model->timeline, hidden, SL_LINE_OTHERS);
	for (uint32_t b = hidden->first; b <= hidden->bin; b++) {
		uint64_t last = others_line->bins[b].last;

		take(&hidden->bins[b], &others_line->bins[b], found, before, neighbours.others[b - neighbours.first]);
		found = last;
		before = hidden->bins[b].last;
		if (b == hidden->first || hidden->bins[b].max > max_hidden) {
			max_hidden = hidden->bins[b].max;
			state->hidden_peak_ns = hidden->bins[b].max_ns;
		}
	}
	state->hidden_peak_bytes = max_hidden;
	hidden->value = hidden->bins[hidden->bin].last;
	others_line->value = others_line->bins[others_line->bin].last;
	free(neighbours.others);
}

/* What a process without a figure of its own took by the samples of others, such as one that was killed early. */
static uint64_t unsampled(const struct sl_report *report, const struct sl_shared_device *device, unsigned at)
{
	const struct sl_process *process = &report->processes[device->users[at].process];
	const struct sl_device_state *state = device->users[at].state;
	uint64_t max_peak = 0;

	if (state->figure >= device->figure || process->trace->header.started_ns > device->hidden_peak_unix_ns ||
	    device->users[at].left_ns < device->hidden_peak_unix_ns)
		return 0;
	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_device_state *other = device->users[i].state;

		for (size_t k = 0; k < other->neighbours.count; k++)
			if (other->neighbours.item[k].pid == process->trace->header.pid &&
			    other->neighbours.item[k].peak_bytes > max_peak)
				max_peak = other->neighbours.item[k].peak_bytes;
	}
	return less(max_peak, state->known_peak);
}

static void measure(struct sl_report *report, struct sl_shared_device *device)
{
	bool shared = device->user_count > 1;
	struct users users = shared ? users_of(report, device) : (struct users){0};

	for (unsigned i = 0; i < device->user_count; i++)
		if (device->users[i].state->figure > device->figure)
			device->figure = device->users[i].state->figure;
	for (unsigned i = 0; i < device->user_count; i++) {
		struct sl_device_state *state = device->users[i].state;

		if (shared) {
			measure_known(&users, device, device->users[i].process, state);
			if (state->figure > SL_FIGURE_DEVICE)
				measure_hidden(&users, device, device->users[i].process, state);
			else
				take_others(&users, device->users[i].process, state);
			users.skipped += !may_look(&users);
		} else {
			device->known_peak_bytes = state->known_peak;
		}
		if (state->hidden_peak_bytes == SL_UNKNOWN || state->figure < device->figure ||
		    (device->hidden_peak_bytes != SL_UNKNOWN && state->hidden_peak_bytes <= device->hidden_peak_bytes))
			continue;
		device->hidden_peak_bytes = state->hidden_peak_bytes;
		device->hidden_peak_unix_ns = sl_process_unix(&report->processes[device->users[i].process], state->hidden_peak_ns);
	}
	for (unsigned i = 0; device->figure > SL_FIGURE_DEVICE && i < device->user_count; i++)
		device->hidden_peak_bytes += device->hidden_peak_bytes != SL_UNKNOWN ? unsampled(report, device, i) : 0;
	for (unsigned i = 0; i < device->user_count; i++)
		device->partial |= sl_trace_lost_events(report->processes[device->users[i].process].trace) != 0;
	if (device->partial)
		device->hidden_peak_bytes = SL_UNKNOWN;
	if (users.skipped)
		sl_report_warn(
			report,
			"%u processes used device %d%s%s at the same time as others, too many to look at: they may have held "
			"more together, and their hidden memory may be that of others",
			users.skipped, device->device, device->host ? " of " : "", device->host ? device->host : "");
	free(users.item);
}

bool sl_devices_recorded(const struct sl_report *report, const char *host, int64_t pid)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_header *header = &report->processes[i].trace->header;

		if (header->pid == pid && same_text(header->host, host))
			return true;
	}
	return false;
}

/* Takes the others from the samples of the process that saw them hold most. */
static void take_strangers(const struct sl_report *report, struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_device_state *state = device->users[i].state;
		uint64_t bytes = 0;
		unsigned count = 0;

		for (size_t k = 0; sl_devices_knows_others(state) && k < state->crowd.count; k++)
			if (!sl_devices_recorded(report, device->host, state->crowd.item[k].pid)) {
				bytes += state->crowd.item[k].bytes;
				count++;
			}
		if (bytes > device->others_bytes) {
			device->others_bytes = bytes;
			device->others = count;
		}
	}
}

void sl_devices_join(struct sl_report *report)
{
	struct sl_map names = {0};

	for (unsigned p = 0; p < report->process_count; p++)
		for (size_t d = 1; d < SL_COUNT(report->processes[p].model->devices); d++) {
			struct sl_device_state *state = report->processes[p].model->devices[d];

			if (state && state->used)
				add_process(report, &names, p, state);
		}
	sl_map_free(&names);
	for (unsigned i = 0; i < report->device_count; i++) {
		take_left(report, &report->devices[i]);
		take_strangers(report, &report->devices[i]);
		measure(report, &report->devices[i]);
	}
}

uint64_t sl_devices_rounding(const struct sl_report *report, const struct sl_shared_device *device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < device->user_count; i++)
		bytes += device->users[i].state->hidden_peak_rounded;
	return bytes;
}

unsigned sl_devices_visible(const struct sl_process *process)
{
	const char *visible = sl_defs_capability(&process->trace->defs, "visible_devices");

	return visible ? (unsigned)strtoul(visible, NULL, 10) : 0;
}
