/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's recurrent networks as PyTorch asks for them: the weights' size is arithmetic. Workspace and reserve were not measured;
 * the reserve here keeps twice the gates of each step, which is what an LSTM's backward pass reads. Numbers are those of cuDNN
 * 9.19.
 */
#include "dry/cudnn.h"

#include <stddef.h>
#include <string.h>

#include "dry/unsure.h"

enum { LSTM = 2, GRU = 3 };	       /* cudnnRNNMode_t */
enum { NO_BIAS = 0, DOUBLE_BIAS = 2 }; /* cudnnRNNBiasMode_t */
enum { MATRICES = 2, DIMENSIONS_MAX = 8 };

struct sl_cudnn_rnn {
	int mode, biases, directions, type, input, hidden, projection, layers;
};

struct sl_cudnn_data {
	int steps, batch;
};

struct sl_cudnn_tensor {
	int type, count, dimensions[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
};

int cudnnSetTensorNdDescriptor(struct sl_cudnn_tensor *t, int type, int count, const int *dimensions, const int *strides)
{
	t->type = type;
	t->count = count < DIMENSIONS_MAX ? count : DIMENSIONS_MAX;
	memcpy(t->dimensions, dimensions, (size_t)t->count * sizeof(int));
	memcpy(t->strides, strides, (size_t)t->count * sizeof(int));
	return 0;
}

int cudnnGetTensorNdDescriptor(const struct sl_cudnn_tensor *t, int room, int *type, int *count, int *dimensions, int *strides)
{
	int n = room < t->count ? room : t->count;

	*type = t->type;
	*count = t->count;
	memcpy(dimensions, t->dimensions, (size_t)n * sizeof(int));
	memcpy(strides, t->strides, (size_t)n * sizeof(int));
	return 0;
}

int cudnnSetRNNDescriptor_v8(struct sl_cudnn_rnn *rnn, int algorithm, int mode, int bias, int direction, int skip, int type,
			     int precision, int math, int input, int hidden, int projection, int layers, void *dropout,
			     unsigned flags)
{
	*rnn = (struct sl_cudnn_rnn){
		mode, bias == NO_BIAS ? 0 : bias == DOUBLE_BIAS ? 2 : 1, direction + 1, type, input, hidden, projection, layers};
	return 0;
}

int cudnnSetRNNDataDescriptor(struct sl_cudnn_data *data, int type, int layout, int steps, int batch, int vector,
			      const int *lengths, void *fill)
{
	*data = (struct sl_cudnn_data){steps, batch};
	return 0;
}

static int gates(const struct sl_cudnn_rnn *rnn)
{
	return rnn->mode == LSTM ? 4 : rnn->mode == GRU ? 3 : 1;
}

static size_t width(const struct sl_cudnn_rnn *rnn)
{
	return (size_t)sl_cudnn_width(rnn->type);
}

static int output(const struct sl_cudnn_rnn *rnn)
{
	return rnn->projection ? rnn->projection : rnn->hidden;
}

/* Columns of a layer's matrix: of its input (which 0) or of what it said a step before (which 1). */
static int columns(const struct sl_cudnn_rnn *rnn, int pseudo, int which)
{
	return which ? output(rnn) : pseudo < rnn->directions ? rnn->input : output(rnn) * rnn->directions;
}

/* Elements of the matrices of all layers before `pseudo`. */
static size_t matrices_before(const struct sl_cudnn_rnn *rnn, int pseudo)
{
	size_t elements = 0;

	for (int i = 0; i < pseudo; i++) {
		for (int which = 0; which < MATRICES; which++)
			elements += (size_t)gates(rnn) * (size_t)rnn->hidden * (size_t)columns(rnn, i, which);
		if (rnn->projection && rnn->projection != rnn->hidden)
			elements += (size_t)rnn->projection * (size_t)rnn->hidden;
	}
	return elements;
}

static size_t biases_of_one(const struct sl_cudnn_rnn *rnn)
{
	return (size_t)rnn->biases * (size_t)gates(rnn) * (size_t)rnn->hidden;
}

int cudnnGetRNNWeightSpaceSize(void *handle, const struct sl_cudnn_rnn *rnn, size_t *bytes)
{
	int pseudo = rnn->layers * rnn->directions;

	*bytes = (matrices_before(rnn, pseudo) + (size_t)pseudo * biases_of_one(rnn)) * width(rnn);
	return 0;
}

/* Tells where one matrix or bias lies; a caller who does not ask for it passes NULL. */
static void put(struct sl_cudnn_tensor *t, char **out, int type, int rows, int columns, char *at)
{
	if (t)
		*t = (struct sl_cudnn_tensor){type, 3, {1, rows, columns}, {rows * columns, columns, 1}};
	if (out)
		*out = at;
}

/* Matrix and bias number `linear` of a layer: first all matrices lie there, gate by gate, then all biases. */
int cudnnGetRNNWeightParams(void *handle, const struct sl_cudnn_rnn *rnn, int pseudo, size_t bytes, char *space, int linear,
			    struct sl_cudnn_tensor *matrix, char **matrix_at, struct sl_cudnn_tensor *bias, char **bias_at)
{
	int each = gates(rnn), which = linear / each;
	size_t hidden = (size_t)rnn->hidden, at = matrices_before(rnn, pseudo);

	if (which >= MATRICES) { /* the projection of an LSTM, which has no bias */
		at = matrices_before(rnn, pseudo + 1) - (size_t)rnn->projection * hidden;
		put(matrix, matrix_at, rnn->type, rnn->projection, rnn->hidden, space + at * width(rnn));
		put(bias, bias_at, rnn->type, 0, 1, NULL);
		return 0;
	}
	at += which ? (size_t)each * hidden * (size_t)columns(rnn, pseudo, 0) : 0;
	at += (size_t)(linear % each) * hidden * (size_t)columns(rnn, pseudo, which);
	put(matrix, matrix_at, rnn->type, rnn->hidden, columns(rnn, pseudo, which), space + at * width(rnn));
	at = matrices_before(rnn, rnn->layers * rnn->directions) + (size_t)pseudo * biases_of_one(rnn) + (size_t)linear * hidden;
	put(bias, bias_at, rnn->type, rnn->hidden, 1, linear < rnn->biases * each ? space + at * width(rnn) : NULL);
	return 0;
}

int cudnnGetRNNTempSpaceSizes(void *handle, const struct sl_cudnn_rnn *rnn, int mode, const struct sl_cudnn_data *data,
			      size_t *work, size_t *reserve)
{
	size_t step = (size_t)data->batch * (size_t)rnn->hidden * (size_t)gates(rnn) * (size_t)rnn->layers *
		      (size_t)rnn->directions * width(rnn);

	if (work)
		*work = step * 2;
	if (reserve)
		*reserve = mode ? step * (size_t)data->steps * 2 : 0;
	if (mode)
		sl_dry_unsure("workspaces of cuDNN", (int64_t)(step * (size_t)data->steps * 2));
	return 0;
}
