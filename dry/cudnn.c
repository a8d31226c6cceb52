/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's backend as far as PyTorch's cudnn_frontend asks: descriptors that remember their attributes, and for each graph two
 * engines, the second of which needs no workspace. Numbers of attributes and types are those of cuDNN 9.19.
 */
#include "dry/cudnn.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dry/unsure.h"
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

struct sl_cudnn {
	int type;   /* cudnnBackendDescriptorType_t */
	bool plain; /* an engine that needs no workspace */
	struct attribute *attributes;
	struct sl_cudnn *source; /* of an engine's configuration: the graph that it was offered for */
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

/* The elements of attribute `name`, in their type's width, which the descriptor keeps. NULL, and *count 0: it was not set. */
static const void *values_of(const struct sl_cudnn *d, int name, int64_t *count)
{
	struct attribute *a = find(d, name);

	*count = a ? a->count : 0;
	return a ? a->data : NULL;
}

/* The first descriptor that attribute `name` holds; NULL: it was not set. */
static struct sl_cudnn *child_of(const struct sl_cudnn *d, int name)
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

/* ---- workspaces */

/*
 * cuDNN's workspace as an H200 took it (cuDNN 9.19, float32). Kernels of compute capability 9.0 want NHWC: for NCHW tensors the
 * chosen engine copies input, filter and output. The gradient of a filter has partial sums beside. The rules hold to the byte for
 * most convolutions of 49 recorded programs (tests/dry/workspaces.tsv has those of three). How much more it may be goes to the
 * trace (unsure.h).
 */
enum { OPERATIONS = 801, DATA_TYPE = 901, DIMENSIONS, STRIDES, FILTER_STRIDES = 103 };
enum { FORWARD = 10, BACKWARD_FILTER, BACKWARD_DATA, MATRIX_PRODUCT = 19 }; /* types of descriptors */
enum { DOUBLE = 1, HALF, BFLOAT16 = 9 };				    /* cudnnDataType_t */
enum { ALIGNMENT = 256, ATTENTION = 16, MULTIPROCESSORS = 132 /* of an H200 */, TILE_ROWS = 128, TILE_COLUMNS = 64 };
enum { SPLIT_ONE = 16 /* partial sums of a 1x1 filter, whatever its size; all recorded ones had 16 images */ };
enum { PARTIAL = (16 << 20) + 512 /* of an output that has few tiles and a long sum, as of 512 channels, 3x3 */ };
enum { SMALL = 1 << 28 /* products; recorded ones had 75 million, the next larger one 1.8 thousand million */ };
enum { WINOGRAD = 4 /* pixels of a tile's side */, TRANSFORMED = 36 /* its elements */ };

/* Attributes of a convolution that name its tensors. */
static const struct parts {
	int type, convolution, x, w, y;
} convolutions[] = {
	{FORWARD, 702, 704, 703, 705},
	{BACKWARD_DATA, 708, 710, 709, 711},
	{BACKWARD_FILTER, 714, 716, 715, 717},
};

static int64_t value(const struct sl_cudnn *d, int name, int at, int64_t otherwise)
{
	int64_t count;
	const int64_t *values = values_of(d, name, &count);

	return count > at ? values[at] : otherwise;
}

int64_t sl_cudnn_width(int type)
{
	return type == HALF || type == BFLOAT16 ? 2 : type == DOUBLE ? 8 : 4;
}

static int64_t bytes_of(const struct sl_cudnn *tensor)
{
	int64_t count, bytes;
	const int *kind = values_of(tensor, DATA_TYPE, &count);

	bytes = kind ? sl_cudnn_width(*kind) : 4;
	values_of(tensor, DIMENSIONS, &count);
	for (int i = 0; i < count; i++)
		bytes *= value(tensor, DIMENSIONS, i, 1);
	return bytes;
}

static int64_t dimension(const struct sl_cudnn *tensor, int at)
{
	return value(tensor, DIMENSIONS, at, 1);
}

static int64_t tiles(int64_t pixels)
{
	return (pixels + WINOGRAD - 1) / WINOGRAD;
}

/* Partial sums of a filter's gradient: as many as fill the card. */
static int64_t split(int64_t rows, int64_t columns)
{
	int64_t tiles = ((rows + TILE_ROWS - 1) / TILE_ROWS) * ((columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
	int64_t count = MULTIPROCESSORS / tiles;

	return count > 1 ? count : 0;
}

struct shape {
	int type;
	int64_t images, in, out, pixels_in, pixels_out, tiles, taps, stride, x, w, y;
};

/* A filter of one pixel is a matrix product: of NCHW as it is, if the rows of pixels are aligned. */
static int64_t one_pixel(const struct shape *s)
{
	int64_t sums = s->type == BACKWARD_FILTER ? split(s->out, s->in) * s->w : 0;

	if (s->stride == 1 && s->pixels_in % 4 == 0)
		return s->type == BACKWARD_FILTER ? SPLIT_ONE * s->w : ALIGNMENT;
	if (s->stride > 1 && s->type == FORWARD && s->pixels_out % 16 == 0)
		return s->x + s->w + ALIGNMENT;
	return s->x + s->y + (s->stride > 1 ? sums : 0) + ALIGNMENT;
}

static int64_t convolution(const struct shape *s)
{
	int64_t copies = s->x + s->w + s->y + ALIGNMENT;
	bool stem = s->in == 3 && s->taps == 49; /* the first layer of a ResNet */

	if (s->taps == 1)
		return one_pixel(s);
	if (s->in < 8 && !stem)
		return s->type == BACKWARD_FILTER && s->images * s->pixels_out <= 1 << 14 ? copies : 0;
	if (stem && s->type == BACKWARD_FILTER) /* its 3 channels become 4 */
		return s->x / 3 * 4 + s->y + (2 + 2 * split(s->out, s->taps * 4)) * (s->w / 3 * 4);
	if (s->out == 1 && s->type != FORWARD) /* its channel becomes 4 */
		return s->x + 4 * s->y + 4 * s->w + ALIGNMENT + (s->type == BACKWARD_FILTER ? 24 * 4 * s->w : 0);
	if (s->out > 1 && s->images * s->pixels_out * s->in * s->taps * s->out < SMALL) {
		if (s->type == FORWARD)
			return 0;
		if (s->type == BACKWARD_FILTER && s->taps == 9 && s->stride == 1) /* x, y and w, each transformed */
			return (s->tiles * (s->in + s->out) + s->in * s->out) * TRANSFORMED * (s->w / s->in / s->out / s->taps);
	}
	if (s->type == FORWARD && (s->out == 1 || (s->out == 64 && s->in >= 32 && s->images * s->pixels_out < 1 << 18)))
		return s->x + s->w + ALIGNMENT; /* writes NCHW itself */
	if (s->type == FORWARD && s->in * s->taps >= 1 << 12)
		return copies + PARTIAL;
	return copies + (s->type == BACKWARD_FILTER ? split(s->out, s->in * s->taps) * s->w : 0);
}

/* The card is one whose workspaces were recorded: of compute capability 9.0. */
static bool is_measured(void)
{
	enum { MAJOR = 75 }; /* of CUdevice_attribute */
	int (*get)(int *, int, int) = (int (*)(int *, int, int))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuDeviceGetAttribute");
	int major = 0;

	return get && !get(&major, MAJOR, 0) && major == 9;
}

/* How much more than the rule says: what was seen on an H200, and on another card all copies. */
static int64_t unsure(const struct shape *s, int64_t likely)
{
	int64_t more = PARTIAL, all = s->x + s->w + s->y;

	if (s->taps == 1 && s->type == BACKWARD_FILTER && s->images > SPLIT_ONE)
		more += (s->images - SPLIT_ONE) * s->w;
	return !is_measured() && all > likely ? more + all - likely : more;
}

static int64_t of_operation(const struct sl_cudnn *operation, const struct parts *parts)
{
	const struct sl_cudnn *x = child_of(operation, parts->x), *w = child_of(operation, parts->w),
			      *y = child_of(operation, parts->y);
	struct shape s = {
		.type = parts->type,
		.images = dimension(x, 0),
		.in = dimension(x, 1),
		.out = dimension(y, 1),
		.pixels_in = dimension(x, 2) * dimension(x, 3) * dimension(x, 4),
		.pixels_out = dimension(y, 2) * dimension(y, 3) * dimension(y, 4),
		.tiles = dimension(y, 0) * tiles(dimension(y, 2)) * tiles(dimension(y, 3)),
		.taps = dimension(w, 2) * dimension(w, 3) * dimension(w, 4),
		.stride = value(child_of(operation, parts->convolution), FILTER_STRIDES, 0, 1),
		.x = bytes_of(x),
		.w = bytes_of(w),
		.y = bytes_of(y),
	};
	bool nhwc = s.in > 1 && value(x, STRIDES, 1, 0) == 1, grouped = dimension(w, 1) < s.in;
	int64_t likely = nhwc || grouped ? 0 : convolution(&s);

	sl_dry_unsure("workspaces of cuDNN", unsure(&s, likely));
	return likely;
}

/* Returns the workspace's bytes; 0 for operations without a rule. */
static int64_t workspace_bytes(const struct sl_cudnn *graph)
{
	int64_t count, products = 0;
	struct sl_cudnn *const *operations = values_of(graph, OPERATIONS, &count);

	for (int64_t i = 0; i < count; i++)
		products += operations[i]->type == MATRIX_PRODUCT;
	if (products == 2)
		return ATTENTION; /* scaled_dot_product_attention, forward */
	for (size_t i = 0; count && i < sizeof(convolutions) / sizeof(*convolutions); i++)
		if (operations[0]->type == convolutions[i].type)
			return of_operation(operations[0], &convolutions[i]);
	return 0;
}

static int64_t workspace_of(const struct sl_cudnn *config)
{
	const struct sl_cudnn *graph = config->source;

	if (config->plain)
		return 0;
	return workspace_bytes(graph ? graph : child_of(child_of(config, CONFIG_ENGINE), ENGINE_GRAPH));
}

int cudnnBackendFinalize(struct sl_cudnn *d)
{
	struct sl_cudnn *config = d->type == PLAN ? child_of(d, PLAN_CONFIG) : NULL;
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
			out[i]->source = child_of(d, HEURISTIC_GRAPH);
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
