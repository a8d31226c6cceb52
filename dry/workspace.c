/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's workspace as an H200 took it (cuDNN 9.19, float32). Kernels of compute capability 9.0 want NHWC: for NCHW tensors the
 * chosen engine copies input, filter and output. The gradient of a filter has partial sums beside. The rules hold to the byte for
 * most convolutions of 49 recorded programs (tests/dry/workspaces.tsv has those of three). How much more it may be goes to the
 * trace (unsure.h).
 */
#include "dry/cudnn.h"

#include <stddef.h>

#include "dry/unsure.h"

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
	const int64_t *values = sl_cudnn_values(d, name, &count);

	return count > at ? values[at] : otherwise;
}

int64_t sl_cudnn_width(int type)
{
	return type == HALF || type == BFLOAT16 ? 2 : type == DOUBLE ? 8 : 4;
}

static int64_t bytes_of(const struct sl_cudnn *tensor)
{
	int64_t count, bytes;
	const int *kind = sl_cudnn_values(tensor, DATA_TYPE, &count);

	bytes = kind ? sl_cudnn_width(*kind) : 4;
	sl_cudnn_values(tensor, DIMENSIONS, &count);
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

/* How much more than the rule says: what was seen on an H200, and on another card all copies. */
static int64_t unsure(const struct shape *s, int64_t likely)
{
	int64_t more = PARTIAL, all = s->x + s->w + s->y;

	if (s->taps == 1 && s->type == BACKWARD_FILTER && s->images > SPLIT_ONE)
		more += (s->images - SPLIT_ONE) * s->w;
	return !sl_cudnn_measured() && all > likely ? more + all - likely : more;
}

static int64_t of_operation(const struct sl_cudnn *operation, const struct parts *parts)
{
	const struct sl_cudnn *x = sl_cudnn_child(operation, parts->x), *w = sl_cudnn_child(operation, parts->w),
			      *y = sl_cudnn_child(operation, parts->y);
	struct shape s = {
		.type = parts->type,
		.images = dimension(x, 0),
		.in = dimension(x, 1),
		.out = dimension(y, 1),
		.pixels_in = dimension(x, 2) * dimension(x, 3) * dimension(x, 4),
		.pixels_out = dimension(y, 2) * dimension(y, 3) * dimension(y, 4),
		.tiles = dimension(y, 0) * tiles(dimension(y, 2)) * tiles(dimension(y, 3)),
		.taps = dimension(w, 2) * dimension(w, 3) * dimension(w, 4),
		.stride = value(sl_cudnn_child(operation, parts->convolution), FILTER_STRIDES, 0, 1),
		.x = bytes_of(x),
		.w = bytes_of(w),
		.y = bytes_of(y),
	};
	bool nhwc = s.in > 1 && value(x, STRIDES, 1, 0) == 1, grouped = dimension(w, 1) < s.in;
	int64_t likely = nhwc || grouped ? 0 : convolution(&s);

	sl_dry_unsure("workspaces of cuDNN", unsure(&s, likely));
	return likely;
}

int64_t sl_cudnn_workspace(const struct sl_cudnn *graph)
{
	int64_t count, products = 0;
	struct sl_cudnn *const *operations = sl_cudnn_values(graph, OPERATIONS, &count);

	for (int64_t i = 0; i < count; i++)
		products += operations[i]->type == MATRIX_PRODUCT;
	if (products == 2)
		return ATTENTION; /* scaled_dot_product_attention, forward */
	for (size_t i = 0; count && i < sizeof(convolutions) / sizeof(*convolutions); i++)
		if (operations[0]->type == convolutions[i].type)
			return of_operation(operations[0], &convolutions[i]);
	return 0;
}
