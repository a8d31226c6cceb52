/* SPDX-License-Identifier: MIT */
/* A descriptor of cuDNN's backend, and the workspace that a graph of operations takes on the device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct attribute;

struct sl_cudnn {
	int type;   /* cudnnBackendDescriptorType_t */
	bool plain; /* an engine that needs no workspace */
	struct attribute *attributes;
	struct sl_cudnn *source; /* of an engine's configuration: the graph that it was offered for */
};

/* The elements of attribute `name`, in their type's width, which the descriptor keeps. NULL, and *count 0: it was not set. */
const void *sl_cudnn_values(const struct sl_cudnn *d, int name, int64_t *count);
/* The first descriptor that attribute `name` holds; NULL: it was not set. */
struct sl_cudnn *sl_cudnn_child(const struct sl_cudnn *d, int name);

int64_t sl_cudnn_width(int type); /* bytes of an element, by cudnnDataType_t */

/* The card is one whose workspaces were recorded: of compute capability 9.0. */
bool sl_cudnn_measured(void);

/* Returns the workspace's bytes; 0 for operations without a rule (workspace.c). */
int64_t sl_cudnn_workspace(const struct sl_cudnn *graph);
