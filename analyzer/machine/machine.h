/* SPDX-License-Identifier: MIT */
/*
 * This machine: its drivers, GPUs and their present use, from NVML (opened at run time; nothing is linked) and from the
 * kernel's amdgpu driver (/sys/class/drm).  It makes no context and does not touch a device.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

#define SL_MACHINE_UNKNOWN UINT64_MAX

struct sl_machine_device {
	const char *family;		  /* static: cuda, hip */
	unsigned index;			  /* as the driver numbers it */
	char uuid[96], pci[32];		  /* "": unknown; pci: of amdgpu */
	uint64_t total_bytes, used_bytes; /* SL_MACHINE_UNKNOWN */
	bool mig;			  /* divided into instances */
};

struct sl_machine {
	char nvidia_driver[96], cuda[16]; /* versions, "": none */
	SL_VECTOR(struct sl_machine_device) devices;
};

/* Call sl_machine_free in any case. */
void sl_machine_look(struct sl_machine *machine);
/* Reads the present use of the known devices again. */
void sl_machine_look_again(struct sl_machine *machine);
void sl_machine_free(struct sl_machine *machine);
