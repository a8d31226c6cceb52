/* SPDX-License-Identifier: MIT */
/*
 * The series that Prometheus reads: names, labels and values.  UUID, gpu, Hostname, GPU_I_ID, GPU_I_PROFILE, pod, namespace,
 * container and hpc_job are spelled as dcgm-exporter spells them, so that both can be joined.  The number of series is bounded:
 * families x devices of at most exporter->max_processes processes, and for each the largest libraries.
 */
#include <ctype.h>
#include <limits.h>
#include <math.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "common/below.h"
#include "tools/exporter/exporter.h"

#define EXPORTER_LIBRARIES 8  /* largest libraries on a device of a process; the rest is summed in one series */
#define ID		   64 /* hex digits of a container's id */

/* The pid as this node numbers it.  Files of a process in a container are reached through /proc/PID/root. */
static long pid_here(const struct sl_process *process)
{
	long pid;

	return sscanf(process->trace->name, "/proc/%ld/root/", &pid) == 1 ? pid : (long)process->trace->header.pid;
}

/* docker, containerd and CRI-O put the container's id, 64 hex digits, at the end of the cgroup's path. */
static bool id_of(const char *line, char *id)
{
	for (const char *at = line; *at; at++) {
		size_t length = 0;

		while (isxdigit((unsigned char)at[length]))
			length++;
		if (length == ID) {
			memcpy(id, at, ID);
			id[ID] = 0;
			return true;
		}
		at += length ? length - 1 : 0;
	}
	return false;
}

static bool container_of(const char *root, long pid, char *id)
{
	char path[PATH_MAX], line[4096];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/%ld/cgroup", root, pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = id_of(line, id);
	if (file)
		fclose(file);
	return found;
}

static void copy(char *to, size_t size, const char *from, size_t length)
{
	snprintf(to, size, "%.*s", (int)length, from);
}

/* POD_NAMESPACE_CONTAINER-ID.log; none of the three names can contain an underscore. */
static void split(struct sl_exporter_where *where, const char *name)
{
	const char *namespace = strchr(name, '_'), *container = namespace ? strchr(namespace + 1, '_') : NULL,
		   *end = container ? strrchr(container, '-') : NULL;

	if (!end)
		return;
	copy(where->pod, sizeof(where->pod), name, (size_t)(namespace - name));
	copy(where->namespace, sizeof(where->namespace), namespace + 1, (size_t)(container - namespace - 1));
	copy(where->container, sizeof(where->container), container + 1, (size_t)(end - container - 1));
}

static void copy_metadata(char *to, size_t size, const struct sl_header *header, const char *key)
{
	for (unsigned i = 0; i < header->metadata_count && !*to; i++)
		if (header->metadata[i].name && header->metadata[i].value && !strcmp(header->metadata[i].name, key))
			snprintf(to, size, "%s", header->metadata[i].value);
}

void sl_exporter_where(struct sl_exporter_where *where, const char *root, const struct sl_process *process)
{
	char id[ID + 1], pattern[ID + 64];
	glob_t found;

	*where = (struct sl_exporter_where){0};
	if (container_of(root, pid_here(process), id)) {
		snprintf(pattern, sizeof(pattern), "/var/log/containers/*-%s.log", id);
		if (sl_below_glob(root, pattern, &found)) {
			split(where, strrchr(found.gl_pathv[0], '/') + 1);
			globfree(&found);
		}
	}
	copy_metadata(where->pod, sizeof(where->pod), &process->trace->header, "pod");
	copy_metadata(where->namespace, sizeof(where->namespace), &process->trace->header, "namespace");
	copy_metadata(where->container, sizeof(where->container), &process->trace->header, "container");
}

/*
 * The number that the node's tools give the device with this PCI id; -1: unknown.
 * The driver's folder writes the PCI domain with four digits, NVML with eight.
 */
static int exporter_gpu(const char *root, const char *pci)
{
	char line[256];
	size_t length = pci ? strlen(pci) : 0;
	int minor = -1;
	glob_t found;
	FILE *file;

	if (length < 12)
		return -1;
	if (!sl_below_glob(root, "/proc/driver/nvidia/gpus/*", &found))
		return -1;
	for (size_t i = 0; i < found.gl_pathc && minor < 0; i++) {
		char path[PATH_MAX + 16];

		if (strcasecmp(strrchr(found.gl_pathv[i], '/') + 1, pci + length - 12) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/information", found.gl_pathv[i]);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "Device Minor: %d", &minor) == 1)
				break;
		if (file)
			fclose(file);
	}
	globfree(&found);
	return minor;
}

struct series {
	const struct sl_exporter *exporter;
	struct sl_exporter_seen *seen;
	const struct sl_process *process;
	struct sl_figures figures;  /* of the device; families about a whole process do not use it */
	struct sl_outlook *outlook; /* of the device; NULL: the process has too many */
};

/* NAN: the process has no such series. */
typedef double value_of(const struct series *s);

static double bytes_or_nan(uint64_t bytes)
{
	return bytes == SL_UNKNOWN ? NAN : (double)bytes;
}

static double live(const struct series *s)
{
	return (double)s->figures.live;
}

static double peak(const struct series *s)
{
	return (double)s->figures.peak;
}

static double allocated(const struct series *s)
{
	return bytes_or_nan(s->figures.allocated);
}

static double reserved(const struct series *s)
{
	return bytes_or_nan(s->figures.reserved);
}

static double growth(const struct series *s)
{
	double slope;

	return !s->seen->ended_ns && s->outlook && sl_trend_slope(&s->outlook->trend, &slope) ? slope : NAN;
}

static double full_in(const struct series *s)
{
	double left = s->seen->ended_ns || !s->outlook ? INFINITY : sl_figures_full_in(s->outlook, s->process, &s->figures);

	return isinf(left) ? NAN : left;
}

static double events(const struct series *s)
{
	return (double)s->process->model->events;
}

static double ooms(const struct series *s)
{
	return (double)s->process->model->ooms_total;
}

static double lost(const struct series *s)
{
	return (double)sl_trace_lost_events(s->process->trace);
}

static double damaged(const struct series *s)
{
	return s->process->trace->damage.damaged;
}

static double in_flight(const struct series *s)
{
	return (double)s->process->model->in_flight.count;
}

static double running(const struct series *s)
{
	return s->seen->followed->removed ? NAN : !s->seen->ended_ns;
}

static double info(const struct series *s)
{
	return 1;
}

enum scope { OF_DEVICE, OF_PROCESS };
static const struct family {
	const char *name, *unit, *help;
	enum scope scope;
	bool counter;
	value_of *value;
} families[] = {
	{"stormlog_live_bytes", "bytes", "Device memory that the process holds by its calls.", OF_DEVICE, false, live},
	{"stormlog_peak_bytes", "bytes", "The most that the process held by its calls.", OF_DEVICE, false, peak},
	{"stormlog_pytorch_allocated_bytes", "bytes", "Blocks of PyTorch's allocator in use.", OF_DEVICE, false, allocated},
	{"stormlog_pytorch_reserved_bytes", "bytes", "Memory that PyTorch's allocator obtained from the driver.", OF_DEVICE, false,
	 reserved},
	{"stormlog_growth_bytes_per_second", "bytes_per_second", "Slope of the live bytes, where it is more than chance.",
	 OF_DEVICE, false, growth},
	{"stormlog_full_in_seconds", "seconds", "Forecast of when the device is full; absent without one.", OF_DEVICE, false,
	 full_in},
	{"stormlog_events", NULL, "Recorded events.", OF_PROCESS, true, events},
	{"stormlog_out_of_memory", NULL, "Calls that ran out of memory.", OF_PROCESS, true, ooms},
	{"stormlog_lost_events", NULL, "Events that the recording is known to lack.", OF_PROCESS, true, lost},
	{"stormlog_trace_damaged", NULL, "1 where something of the recording could not be read.", OF_PROCESS, false, damaged},
	{"stormlog_calls_in_flight", NULL, "Calls that have not returned.", OF_PROCESS, false, in_flight},
	{"stormlog_process_running", NULL, "1 while the process runs; a minute longer 0; absent once its recording was removed.",
	 OF_PROCESS, false, running},
	{"stormlog_process_info", NULL, "The program of a process.", OF_PROCESS, false, info},
};

/* ---- the text */

static void put_family(FILE *out, bool open_metrics, const char *name, const char *unit, const char *help, bool counter)
{
	const char *suffix = counter && !open_metrics ? "_total" : "";

	sl_escape_print(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix, counter ? "counter" : "gauge");
	if (open_metrics && unit)
		sl_escape_print(out, "# UNIT %s %s\n", name, unit);
}

/* A label without a known value is left out. */
static void put_label(FILE *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	sl_escape_print(out, "%s=\"", name);
	sl_escape_put(out, SL_ESCAPE_METRIC, value);
	fputs("\",", out);
}

static void put_number(FILE *out, double value)
{
	if (value == floor(value) && fabs(value) < 1e15)
		sl_escape_print(out, "%.0f\n", value);
	else
		sl_escape_print(out, "%.9g\n", value);
}

/* The profile of a MIG instance is in "... MIG 1g.10gb".  Drivers before R470 named an instance MIG-GPU-UUID/GI/CI. */
static void put_device(FILE *out, const struct sl_exporter *exporter, const struct sl_process *process, const struct sl_figures *f)
{
	const struct sl_device *device = sl_defs_device(&process->trace->defs, f->device);
	const char *profile = f->name ? strstr(f->name, "MIG ") : NULL, *instance = f->uuid ? strchr(f->uuid, '/') : NULL;
	int gpu = exporter_gpu(exporter->root, device ? device->pci : NULL);
	char text[24];

	put_label(out, "UUID", f->uuid);
	snprintf(text, sizeof(text), "%d", gpu);
	put_label(out, "gpu", gpu < 0 ? NULL : text);
	put_label(out, "model", f->name);
	if (instance) {
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(instance + 1, "/"), instance + 1);
		put_label(out, "GPU_I_ID", text);
	}
	put_label(out, "GPU_I_PROFILE", profile ? profile + 4 : NULL);
}

static void put_process(FILE *out, const struct series *s, const char *name, const char *suffix, bool with_device)
{
	const struct sl_header *header = &s->process->trace->header;
	const struct sl_exporter_where *where = &s->seen->where;
	char number[24];

	sl_escape_print(out, "%s%s{", name, suffix);
	put_label(out, "Hostname", header->host);
	put_label(out, "run", header->run_id);
	put_label(out, "hpc_job", header->job_id);
	snprintf(number, sizeof(number), "%lld", (long long)header->rank);
	put_label(out, "rank", header->rank < 0 ? NULL : number);
	put_label(out, "pod", where->pod);
	put_label(out, "namespace", where->namespace);
	put_label(out, "container", where->container);
	if (with_device) {
		put_device(out, s->exporter, s->process, &s->figures);
		if (s->figures.device >= 0)
			sl_escape_print(out, "ordinal=\"%d\",", s->figures.device);
	}
	sl_escape_print(out, "pid=\"%lld\"", (long long)header->pid);
}

static void put_series(FILE *out, const struct family *family, const struct series *s)
{
	double value = family->value(s);

	if (isnan(value))
		return;
	put_process(out, s, family->name, family->counter ? "_total" : "", family->scope == OF_DEVICE);
	if (family->value == info) {
		fputc(',', out);
		put_label(out, "program", sl_stacks_program(&s->process->trace->header));
		put_label(out, "session", s->process->session_id);
		put_label(out, "recorded", sl_trace_recorded(s->process->trace));
		sl_escape_print(out, "status=\"%s\"", sl_trace_status(s->process->trace));
	}
	fputs("} ", out);
	put_number(out, value);
}

/* ---- who has series */

/* True: the program before an exec; only the process's present program has series. */
static bool is_past(const struct sl_exporter *exporter, unsigned index)
{
	const struct sl_followed *followed = sl_follow_process(exporter->follow, index);
	const struct sl_process *process = &followed->process;
	const char *host = process->trace->header.host;

	for (unsigned i = 0; i < sl_follow_count(exporter->follow); i++) {
		const struct sl_process *other = &sl_follow_process(exporter->follow, i)->process;

		if (sl_follow_process(exporter->follow, i)->run == followed->run &&
		    other->trace->header.pid == process->trace->header.pid && host && other->trace->header.host &&
		    !strcmp(other->trace->header.host, host) && other->started_unix_ns > process->started_unix_ns)
			return true;
	}
	return false;
}

/* Chooses the processes that have series, in the order in which they were met; returns how many. */
static unsigned shown(const struct sl_exporter *exporter, unsigned *index, unsigned *left_out)
{
	unsigned count = 0;

	*left_out = 0;
	for (unsigned i = 0; i < sl_follow_count(exporter->follow); i++) {
		if (is_past(exporter, i))
			continue;
		if (count < exporter->max_processes)
			index[count++] = i;
		else
			++*left_out;
	}
	return count;
}

static void each(const struct sl_exporter *exporter, enum scope scope, void (*put)(void *context, const struct series *s),
		 void *context)
{
	for (unsigned i = 0; i < exporter->shown_count; i++) {
		unsigned index = exporter->shown[i];
		struct series s = {exporter, &exporter->seen.item[index], &sl_follow_process(exporter->follow, index)->process};
		struct sl_figures figures[EXPORTER_DEVICES];
		unsigned count = scope == OF_PROCESS ? 1 : sl_figures_of(s.process, figures, EXPORTER_DEVICES);

		for (unsigned d = 0; d < count; d++) {
			if (scope == OF_DEVICE) {
				unsigned at = sl_figures_met(&s.seen->met, figures[d].device);

				s.figures = figures[d];
				s.outlook = at < EXPORTER_DEVICES ? &s.seen->outlook[at] : NULL;
			}
			put(context, &s);
		}
	}
}

struct putting {
	FILE *out;
	const struct family *family;
};

static void put_one(void *context, const struct series *s)
{
	const struct putting *putting = context;

	put_series(putting->out, putting->family, s);
}

/* ---- libraries: the largest by name, the rest summed */

static int by_live(const void *a, const void *b)
{
	const struct sl_holder *const *x = a, *const *y = b;

	return ((*x)->live_bytes < (*y)->live_bytes) - ((*x)->live_bytes > (*y)->live_bytes);
}

static void put_library(FILE *out, const struct series *s, const char *library, uint64_t bytes)
{
	put_process(out, s, "stormlog_library_live_bytes", "", true);
	fputs(",library=\"", out);
	sl_escape_put(out, SL_ESCAPE_METRIC, library);
	fputs("\"} ", out);
	put_number(out, (double)bytes);
}

static void put_libraries(void *context, const struct series *s)
{
	const struct sl_model *model = s->process->model;
	SL_VECTOR(const struct sl_holder *) holders = {0};
	uint64_t others = 0;

	for (size_t i = 0; i < model->holders.count; i++)
		if (model->holders.item[i].device == s->figures.device && model->holders.item[i].live_bytes)
			*SL_PUSH(&holders) = &model->holders.item[i];
	if (holders.count)
		qsort(holders.item, holders.count, sizeof(*holders.item), by_live);
	for (size_t i = 0; i < holders.count; i++) {
		if (i < EXPORTER_LIBRARIES)
			put_library(context, s, model->libraries.item[holders.item[i]->library], holders.item[i]->live_bytes);
		else
			others += holders.item[i]->live_bytes;
	}
	if (others)
		put_library(context, s, "(others)", others);
	free(holders.item);
}

/* ---- devices: one series each, however many processes use them */

struct shared {
	const struct sl_process *process;
	struct sl_figures figures; /* used: the newest value from a living process; live: the sum over all */
};

struct devices {
	SL_VECTOR(struct shared) device;
};

static void join(void *context, const struct series *s)
{
	struct devices *devices = context;
	struct shared *shared = NULL;

	if (!s->figures.uuid || s->seen->ended_ns)
		return;
	for (size_t i = 0; i < devices->device.count; i++)
		if (!strcmp(devices->device.item[i].figures.uuid, s->figures.uuid))
			shared = &devices->device.item[i];
	if (!shared) {
		*SL_PUSH(&devices->device) = (struct shared){s->process, s->figures};
		return;
	}
	shared->figures.live += s->figures.live;
	if (s->figures.used != SL_UNKNOWN && s->figures.sampled_unix_ns > shared->figures.sampled_unix_ns) {
		shared->figures.used = s->figures.used;
		shared->figures.sampled_unix_ns = s->figures.sampled_unix_ns;
	}
}

static void put_devices(const struct sl_exporter *exporter, FILE *out, bool open_metrics)
{
	static const struct {
		const char *name, *help;
	} names[] = {{"stormlog_device_used_bytes", "Of the whole device, by the last sample of a process that uses it."},
		     {"stormlog_device_total_bytes", "Capacity of the device."},
		     {"stormlog_device_recorded_bytes", "Memory that all recorded processes hold on the device by their calls."}};
	struct devices devices = {0};

	each(exporter, OF_DEVICE, join, &devices);
	for (size_t n = 0; n < SL_COUNT(names); n++) {
		put_family(out, open_metrics, names[n].name, "bytes", names[n].help, false);
		for (size_t i = 0; i < devices.device.count; i++) {
			const struct shared *shared = &devices.device.item[i];
			uint64_t bytes = n == 0 ? shared->figures.used : n == 1 ? shared->figures.total : shared->figures.live;

			if (bytes == SL_UNKNOWN)
				continue;
			sl_escape_print(out, "%s{", names[n].name);
			put_device(out, exporter, shared->process, &shared->figures);
			fputs("Hostname=\"", out);
			sl_escape_put(out, SL_ESCAPE_METRIC,
				      shared->process->trace->header.host ? shared->process->trace->header.host : "");
			fputs("\"} ", out);
			put_number(out, (double)bytes);
		}
	}
	free(devices.device.item);
}

static void put_own(const struct sl_exporter *exporter, FILE *out, bool open_metrics)
{
	put_family(out, open_metrics, "stormlog_exporter_processes", NULL, "Recordings that are followed.", false);
	sl_escape_print(out, "stormlog_exporter_processes %u\n", sl_follow_count(exporter->follow));
	put_family(out, open_metrics, "stormlog_exporter_processes_left_out", NULL, "Recordings without series: more than --most.",
		   false);
	sl_escape_print(out, "stormlog_exporter_processes_left_out %u\n", exporter->left_out);
	put_family(out, open_metrics, "stormlog_exporter_poll_seconds", "seconds", "Time of the last look at all of them.", false);
	fputs("stormlog_exporter_poll_seconds ", out);
	put_number(out, (double)exporter->cost_ns / 1e9);
}

void sl_exporter_write(struct sl_exporter *exporter, FILE *out, bool open_metrics)
{
	exporter->shown = sl_memory_must(calloc(sl_follow_count(exporter->follow) + 1, sizeof(*exporter->shown)));
	exporter->shown_count = shown(exporter, exporter->shown, &exporter->left_out);
	for (size_t i = 0; i < SL_COUNT(families); i++) {
		struct putting putting = {out, &families[i]};

		put_family(out, open_metrics, families[i].name, families[i].unit, families[i].help, families[i].counter);
		each(exporter, families[i].scope, put_one, &putting);
	}
	put_family(out, open_metrics, "stormlog_library_live_bytes", "bytes",
		   "Memory that a library holds on a device; the eight largest, and the others together.", false);
	each(exporter, OF_DEVICE, put_libraries, out);
	put_devices(exporter, out, open_metrics);
	put_own(exporter, out, open_metrics);
	if (open_metrics)
		fputs("# EOF\n", out);
	free(exporter->shown);
}
