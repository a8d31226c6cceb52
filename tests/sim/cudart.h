/* SPDX-License-Identifier: MIT */
/* Interface between the runtime's functions (cudart_api.c) and the code that they share (cudart.c). */
#pragma once

#include "sim.h"

struct ipc_handle {
	char bytes[64];
};

struct driver {
#define DRIVER(name, version, params) int(*name) params;
#include "cudart_driver.def"
#undef DRIVER
};

const struct driver *sim_rt_driver(bool per_thread);
int sim_rt_begin(struct sim_call *call); /* nonzero: call->result is the answer */
int sim_rt_end(struct sim_call *call, int result);
int sim_rt_init(void);
int sim_rt_last_error(bool clear);
int sim_rt_device(void);
int sim_rt_set_device(int ordinal, bool make_context);
int sim_rt_reset(void);
/* Fills `size` bytes of cudaDeviceProp, whose layout is that of the runtime's major version. */
int sim_rt_properties(const struct driver *d, char *out, size_t size, int device);
void *sim_rt_ask(const char *name, int version, uint64_t flags);
