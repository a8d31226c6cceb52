/* SPDX-License-Identifier: MIT */
/*
 * What a process that ended by itself still held, by stack.  The bytes of all leaks of a row add up to its live
 * bytes.  Growth is read from the births of the blocks that are left: a line of what they add up to over time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/drive.h"

#define GROWING_BLOCKS_MIN 5
#define GROWING_SPAN_MIN   0.25 /* of the process's life: births further apart than a set-up phase */
#define R_SQUARED_MIN	   0.8

struct birth {
	uint32_t site, torch;
	uint64_t time_ns, bytes;
};

struct births {
	SL_VECTOR(struct birth) list;
};

static bool counts(unsigned kind)
{
	return kind == SL_KIND_device || kind == SL_KIND_pool || kind == SL_KIND_managed || kind == SL_KIND_vmm ||
	       kind == SL_KIND_array || kind == SL_KIND_host_pinned;
}

static void add(struct births *births, const struct sl_model *model, struct birth birth)
{
	if (!counts(model->sites.item[birth.site].kind))
		return;
	births->list.item = sl_arena_grow(births->list.item, &births->list.capacity, births->list.count, sizeof(birth));
	births->list.item[births->list.count++] = birth;
}

/* Physical memory is a segment of PyTorch's when a mapping of it is. */
static void collect_physical(struct births *births, const struct sl_model *model)
{
	size_t count;
	const struct sl_physical *physical = sl_vmm_physical(model->vmm, &count);
	uint8_t *torch = calloc(count + 1, 1);

	if (!torch)
		abort();
	SL_TABLE_EACH(sl_vmm_mappings(model->vmm), mapping)
	{
		if (mapping->flags & SL_LIVE_TORCH && mapping->owner < count)
			torch[mapping->owner] = 1;
	}
	for (size_t i = 0; i < count; i++)
		if (physical[i].site != SL_NO_SITE)
			add(births, model, (struct birth){physical[i].site, torch[i], physical[i].time_ns, physical[i].bytes});
	free(torch);
}

static void collect(struct births *births, const struct sl_model *model)
{
	const struct sl_table *spaces[] = {&model->pointers, &model->arrays};

	for (size_t s = 0; s < SL_COUNT(spaces); s++)
		SL_TABLE_EACH(spaces[s], live)
		{
			add(births, model, (struct birth){live->site, live->flags & SL_LIVE_TORCH, live->time_ns, live->bytes});
		}
	collect_physical(births, model);
}

/* One leak is one stack, kind and device; blocks of PyTorch's cache are apart from others of the same stack. */
static int compare_groups(const struct sl_model *model, const struct birth *a, const struct birth *b)
{
	const struct sl_site *x = &model->sites.item[a->site], *y = &model->sites.item[b->site];

#define BY(member) \
	if (x->member != y->member) \
		return x->member < y->member ? -1 : 1
	BY(kind);
	BY(device);
	BY(python);
	BY(native);
	BY(caller);
#undef BY
	return (int)a->torch - (int)b->torch;
}

static int by_group_and_time(const void *a, const void *b, void *model)
{
	const struct birth *x = a, *y = b;
	int order = compare_groups(model, x, y);

	return order ? order : x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static bool named(const char *library, const char *const *names)
{
	for (; *names; names++)
		if (strstr(library, *names))
			return true;
	return false;
}

static const char *const caches[] = {"libc10_cuda", "libc10_hip", "libtorch_cuda", "libtorch_hip", "libtensorflow",
				     "_pywrap_tensorflow", "xla_cuda", "xla_extension", "jaxlib", "pjrt", "cupy", NULL};
static const char *const workspaces[] = {"libcublas", "libcudnn", "libnccl", "librccl", "libcufft", "libcusolver",
					 "libcusparse", "libcurand", "librocblas", "libhipblas", "libMIOpen", "librocfft",
					 "libnvinfer", "libcutensor", NULL};

/* Births of one leak, oldest first. */
static void fit(struct sl_leak *leak, const struct birth *births, size_t count, uint64_t life_ns)
{
	double n = (double)count, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, sum = 0, xx, xy, yy;

	if (count < GROWING_BLOCKS_MIN || (double)(leak->last_ns - leak->first_ns) < GROWING_SPAN_MIN * (double)life_ns)
		return;
	for (size_t i = 0; i < count; i++) {
		double x = (double)(births[i].time_ns - leak->first_ns) / 1e9;

		sum += (double)births[i].bytes;
		sx += x;
		sy += sum;
		sxx += x * x;
		sxy += x * sum;
		syy += sum * sum;
	}
	xx = sxx - sx * sx / n;
	xy = sxy - sx * sy / n;
	yy = syy - sy * sy / n;
	if (xx <= 0 || yy <= 0)
		return;
	leak->r_squared = fmin(1, xy * xy / (xx * yy));
	leak->bytes_per_second = xy / xx;
	leak->growing = leak->r_squared >= R_SQUARED_MIN && xy > 0;
}

static void judge(struct sl_leak *leak, bool torch)
{
	if (torch || named(leak->library, caches)) {
		leak->verdict = "cache";
		leak->severity = "info";
		leak->suggestion = "held by an allocator that hands it out again; empty its cache to give it back";
	} else if (named(leak->library, workspaces)) {
		leak->verdict = "workspace";
		leak->severity = "info";
		leak->suggestion = "kept by the library; destroy its handle to give it back";
	} else if (leak->growing) {
		leak->verdict = "growing";
		leak->severity = "critical";
		leak->suggestion = "free each block when its work is done: this place added to the total all the time";
	} else {
		leak->verdict = "live_at_exit";
		leak->severity = "warning";
		leak->suggestion = "free it before the process ends";
	}
}

static void add_leak(struct sl_process *process, const struct birth *births, size_t count)
{
	const struct sl_model *model = process->model;
	const struct sl_site *site = &model->sites.item[births[0].site];
	struct sl_leak leak = {
		.python = site->python,
		.native = site->native,
		.caller = site->caller,
		.kind = site->kind,
		.device = site->device,
		.blocks = count,
		.first_ns = births[0].time_ns,
		.last_ns = births[count - 1].time_ns,
		.library = sl_model_library(model, site),
	};

	for (size_t i = 0; i < count; i++)
		leak.bytes += births[i].bytes;
	fit(&leak, births, count, model->now_ns - model->first_ns);
	judge(&leak, births[0].torch);
	process->leaks.item = sl_arena_grow(process->leaks.item, &process->leaks.capacity, process->leaks.count, sizeof(leak));
	process->leaks.item[process->leaks.count++] = leak;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sl_leak *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void process(struct sl_process *process)
{
	struct births births = {0};
	size_t begin = 0;

	if (process->trace->status != SL_STATUS_COMPLETED)
		return;
	collect(&births, process->model);
	if (births.list.count)
		qsort_r(births.list.item, births.list.count, sizeof(*births.list.item), by_group_and_time, process->model);
	for (size_t i = 1; i <= births.list.count; i++) {
		if (i < births.list.count &&
		    !compare_groups(process->model, &births.list.item[begin], &births.list.item[i]))
			continue;
		add_leak(process, &births.list.item[begin], i - begin);
		begin = i;
	}
	free(births.list.item);
	if (process->leaks.count)
		qsort(process->leaks.item, process->leaks.count, sizeof(*process->leaks.item), by_bytes);
}

const struct sl_analysis sl_analysis_leaks = {.name = "leaks", .process = process};
