/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's backend as far as PyTorch's cudnn_frontend asks: descriptors that remember their attributes, and for each graph two
 * engines, the second of which needs no workspace. Numbers of attributes and types are those of cuDNN 9.19.
 */
#include "dry/cudnn.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "dry/version.h"

enum {
	HEURISTIC_GRAPH = 201,
	HEURISTIC_RESULTS = 202,
	CONFIG_ENGINE = 300,
	CONFIG_WORKSPACE = 303,
	CONFIG_SHARED_MEMORY = 304,
	PLAN_CONFIG = 401,
	PLAN_WORKSPACE = 402,
	GRAPH_ENGINES = 802,
	ENGINE_GRAPH = 1300,
	ENGINE_NUMBER = 1301,
};
enum { PLAN = 5, ENGINES = 2 };
enum {
	TYPE_HANDLE = 0,
	TYPE_BOOLEAN = 2,
	TYPE_INT64,
	TYPE_DOUBLE = 5,
	TYPE_POINTER,
	TYPE_DESCRIPTOR = 15,
	TYPE_CHAR = 24,
	TYPE_FRACTION = 26
};

struct attribute {
	int name, type;
	int64_t count;
	void *data;
	struct attribute *next;
};

static size_t width(int type)
{
	switch (type) {
	case TYPE_HANDLE:
	case TYPE_INT64:
	case TYPE_DOUBLE:
	case TYPE_POINTER:
	case TYPE_DESCRIPTOR:
		return 8;
	case TYPE_BOOLEAN:
	case TYPE_CHAR:
		return 1;
	case TYPE_FRACTION:
		return 16;
	default:
		return 4;
	}
}

static struct attribute *find(const struct sl_cudnn *d, int name)
{
	struct attribute *a = d ? d->attributes : NULL;

	while (a && a->name != name)
		a = a->next;
	return a;
}

const void *sl_cudnn_values(const struct sl_cudnn *d, int name, int64_t *count)
{
	struct attribute *a = find(d, name);

	*count = a ? a->count : 0;
	return a ? a->data : NULL;
}

struct sl_cudnn *sl_cudnn_child(const struct sl_cudnn *d, int name)
{
	struct attribute *a = find(d, name);

	return a && a->count ? *(struct sl_cudnn **)a->data : NULL;
}

int cudnnBackendCreateDescriptor(int type, struct sl_cudnn **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out)
		(*out)->type = type;
	return 0;
}

/* They stay: objects made from a descriptor outlive it, since cuDNN copies it and we do not. */
int cudnnBackendDestroyDescriptor(struct sl_cudnn *d)
{
	return 0;
}

int cudnnBackendSetAttribute(struct sl_cudnn *d, int name, int type, int64_t count, const void *data)
{
	struct attribute *a = find(d, name);

	if (!a) {
		a = calloc(1, sizeof(*a));
		a->name = name;
		a->next = d->attributes;
		d->attributes = a;
	}
	free(a->data);
	a->type = type;
	a->count = count;
	a->data = malloc((size_t)count * width(type) + 1);
	if (data)
		memcpy(a->data, data, (size_t)count * width(type));
	return 0;
}

bool sl_cudnn_measured(void)
{
	enum { MAJOR = 75 }; /* of CUdevice_attribute */
	int (*get)(int *, int, int) = (int (*)(int *, int, int))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuDeviceGetAttribute");
	int major = 0;

	return get && !get(&major, MAJOR, 0) && major == 9;
}

static int64_t workspace_of(const struct sl_cudnn *config)
{
	const struct sl_cudnn *graph = config->source;

	if (config->plain)
		return 0;
	return sl_cudnn_workspace(graph ? graph : sl_cudnn_child(sl_cudnn_child(config, CONFIG_ENGINE), ENGINE_GRAPH));
}

int cudnnBackendFinalize(struct sl_cudnn *d)
{
	struct sl_cudnn *config = d->type == PLAN ? sl_cudnn_child(d, PLAN_CONFIG) : NULL;
	int64_t bytes = config ? workspace_of(config) : 0;

	if (config)
		cudnnBackendSetAttribute(d, PLAN_WORKSPACE, TYPE_INT64, 1, &bytes);
	return 0;
}

/* Engines that the heuristic offers for the graph, best first.  PyTorch 2.14 asks for one, and takes as many as are told. */
static void put_engines(const struct sl_cudnn *d, int64_t room, int64_t *count, struct sl_cudnn **out)
{
	*count = out && room < ENGINES ? room : ENGINES;
	for (int i = 0; out && i < *count; i++)
		if (out[i]) {
			out[i]->source = sl_cudnn_child(d, HEURISTIC_GRAPH);
			out[i]->plain = i > 0;
		}
}

/* What was not set and yet has an answer. False: it has none. */
static int put_made(const struct sl_cudnn *d, int name, int64_t *count, void *out)
{
	*count = 1;
	switch (name) {
	case CONFIG_ENGINE:
		return 1;
	case ENGINE_NUMBER:
		return out ? *(int64_t *)out = 0, 1 : 1;
	case GRAPH_ENGINES:
		return out ? *(int64_t *)out = 1, 1 : 1;
	case CONFIG_WORKSPACE:
		return out ? *(int64_t *)out = workspace_of(d), 1 : 1;
	case CONFIG_SHARED_MEMORY:
		return out ? *(int32_t *)out = 0, 1 : 1;
	}
	*count = 0;
	return 0;
}

int cudnnBackendGetAttribute(struct sl_cudnn *d, int name, int type, int64_t room, int64_t *count, void *out)
{
	struct attribute *a = find(d, name);
	int64_t ignored;

	if (!count)
		count = &ignored;
	if (name == HEURISTIC_RESULTS) {
		put_engines(d, room, count, out);
	} else if (!a) {
		put_made(d, name, count, room ? out : NULL);
	} else {
		*count = a->count;
		if (out)
			memcpy(out, a->data, (size_t)(room < a->count ? room : a->count) * width(a->type));
	}
	return 0;
}

static void version(const void *caller, int out[3])
{
	out[0] = 9;
	out[1] = 19;
	out[2] = 0;
	sl_dry_version(caller, "nvidia_cudnn_cu*", out);
}

size_t cudnnGetVersion(void)
{
	int v[3];

	version(__builtin_return_address(0), v);
	return (size_t)(v[0] * 10000 + v[1] * 100 + v[2]);
}

int cudnnGetProperty(int which, int *value)
{
	int v[3];

	version(__builtin_return_address(0), v);
	*value = v[which];
	return 0;
}

size_t cudnnGetCudartVersion(void)
{
	return 13000;
}

const char *cudnnGetErrorString(int status)
{
	return status ? "CUDNN_STATUS_INTERNAL_ERROR" : "CUDNN_STATUS_SUCCESS";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
	if (size)
		*text = 0;
}

struct handle {
	void *stream;
};

int cudnnCreate(struct handle **out)
{
	*out = calloc(1, sizeof(**out));
	return 0;
}

int cudnnDestroy(struct handle *handle)
{
	free(handle);
	return 0;
}

int cudnnSetStream(struct handle *handle, void *stream)
{
	handle->stream = stream;
	return 0;
}

int cudnnGetStream(struct handle *handle, void **stream)
{
	*stream = handle->stream;
	return 0;
}
