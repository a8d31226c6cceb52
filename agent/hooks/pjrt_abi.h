/* SPDX-License-Identifier: MIT */
/*
 * The part of PJRT's C interface that pjrt.c reads: arguments of the wrapped functions and of the questions, up to the last
 * member used.  Major version 0 only appends, since 0.57.  tests/pools/check_pjrt.py compares this with the header in a
 * plugin's wheel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *sl_pjrt_function(void *args);

struct sl_pjrt_api {
	size_t struct_size;
	void *extension_start;
	struct {
		size_t struct_size;
		void *extension_start;
		int major, minor;
	} version;
	sl_pjrt_function *slot[];
};

#define SL_PJRT_HEAD                                                                                                               \
	size_t struct_size;                                                                                                        \
	void *extension_start

struct sl_pjrt_from_host {
	SL_PJRT_HEAD;
	void *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *byte_strides;
	size_t num_byte_strides;
	int semantics;
	void *device, *memory, *layout, *done;
	void *buffer;
};

struct sl_pjrt_execute {
	SL_PJRT_HEAD;
	void *executable, *options;
	void *const *const *argument_lists;
	size_t num_devices, num_args;
	void **const *output_lists;
};

struct sl_pjrt_copy {
	SL_PJRT_HEAD;
	void *buffer, *destination;
	void *copy;
};

struct sl_pjrt_retrieve {
	SL_PJRT_HEAD;
	void *manager;
	int index;
	void *buffer;
};

struct sl_pjrt_uninitialized {
	SL_PJRT_HEAD;
	void *client;
	const int64_t *dims;
	size_t num_dims;
	int type;
	void *layout, *device, *memory;
	void *buffer;
};

struct sl_pjrt_buffer {
	SL_PJRT_HEAD;
	void *buffer;
};

struct sl_pjrt_loaded {
	SL_PJRT_HEAD;
	void *executable;
};

struct sl_pjrt_compile {
	SL_PJRT_HEAD;
	void *client, *program;
	const char *options;
	size_t options_size;
	void *executable;
};

struct sl_pjrt_deserialize {
	SL_PJRT_HEAD;
	void *client;
	const char *serialized;
	size_t serialized_size;
	void *executable;
};

/* Questions: the object comes first, the answers follow it. */
struct sl_pjrt_number {
	SL_PJRT_HEAD;
	const void *of;
	union {
		size_t bytes; /* OnDeviceSizeInBytes, NumOutputs */
		int number;   /* ElementType, LocalHardwareId */
		bool yes;     /* IsDeleted, IsOnCpu */
		void *object; /* Buffer_Device, GetExecutable */
	};
};

struct sl_pjrt_range {
	SL_PJRT_HEAD;
	const void *of;
	const void *items; /* Buffer_Dimensions: int64_t; Executable_Name: char */
	size_t count;
};

struct sl_pjrt_error {
	SL_PJRT_HEAD;
	void *error;
};

struct sl_pjrt_compiled {
	SL_PJRT_HEAD;
	const void *of;
	int64_t code, arguments, outputs, aliases, temporaries;
	int64_t host[5];
	int64_t peak; /* 0.72; 0 before */
};

struct sl_pjrt_memory {
	SL_PJRT_HEAD;
	const void *of;
	int64_t in_use;
	struct {
		int64_t bytes;
		bool set;
	} peak, allocations, largest, limit, reserved, peak_reserved, reservable, largest_free, pool, peak_pool;
};
