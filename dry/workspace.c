/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's workspace as an H200 took it (cuDNN 9.19, float32). Kernels of compute capability 9.0 want NHWC: for NCHW tensors the
 * chosen engine copies input, filter and output. The rules hold to the byte for most convolutions of 49 recorded programs; one of
 * 192 images is 6 % off. Below 9.0 the workspace is not known, and doc/dry-run.md says so.
 */
#include "dry/cudnn.h"

#include <stddef.h>

enum { OPERATIONS = 801, DATA_TYPE = 901, DIMENSIONS, STRIDES, FILTER_STRIDES = 103 };
enum { FORWARD = 10, BACKWARD_FILTER, BACKWARD_DATA, MATRIX_PRODUCT = 19 }; /* types of descriptors */
enum { DOUBLE = 1, HALF, BFLOAT16 = 9 };				    /* cudnnDataType_t */
enum { ALIGNMENT = 256, ATTENTION = 16 };

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

static int64_t convolution(const struct sl_cudnn *operation, const struct parts *parts)
{
	const struct sl_cudnn *x = sl_cudnn_child(operation, parts->x), *w = sl_cudnn_child(operation, parts->w),
			      *y = sl_cudnn_child(operation, parts->y);
	int64_t channels = dimension(x, 1);
	bool forward = parts->type == FORWARD, one = dimension(w, 2) == 1 && dimension(w, 3) == 1;
	bool first_layer = channels == 3 && dimension(w, 2) == 7; /* of a ResNet */

	if (channels > 1 && value(x, STRIDES, 1, 0) == 1)
		return 0; /* NHWC already */
	if ((channels < 8 && !first_layer) || dimension(w, 1) < channels)
		return 0; /* few channels, or groups of them: another engine */
	if (one && forward)
		return (value(sl_cudnn_child(operation, parts->convolution), FILTER_STRIDES, 0, 1) == 1
				? 0
				: bytes_of(x) + bytes_of(y)) +
		       ALIGNMENT;
	if (dimension(y, 1) == 1 || (forward && dimension(y, 1) == 64 && channels >= 32))
		return bytes_of(x) + bytes_of(w) + ALIGNMENT; /* writes NCHW itself */
	return bytes_of(x) + bytes_of(w) + bytes_of(y) + ALIGNMENT;
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
			return convolution(operations[0], &convolutions[i]);
	return 0;
}
