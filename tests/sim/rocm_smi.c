/* SPDX-License-Identifier: MIT */
/* The simulated librocm_smi64.so: only the functions for device and process memory. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

enum { RSMI_INVALID_ARGS = 1, RSMI_NOT_FOUND = 8, RSMI_INSUFFICIENT_SIZE = 13, VRAM = 0 };

struct process_info { /* rsmi_process_info_t */
	uint32_t process_id, pasid;
	uint64_t vram_usage, sdma_usage;
	uint32_t cu_occupancy;
};

int rsmi_init(uint64_t flags)
{
	sim_process_check();
	return 0;
}

int rsmi_shut_down(void)
{
	return 0;
}

int rsmi_num_monitor_devices(uint32_t *count)
{
	uint64_t f, t = 1;
	for (*count = 0; *count < SIM_MAX_DEVICES; ++*count) {
		sim_device_info(*count, &f, &t);
		if (!t)
			break;
	}
	return 0;
}

static int memory(uint32_t device, int type, uint64_t *out, bool used)
{
	uint64_t f, t;
	if (!out || type < 0 || type > 2)
		return RSMI_INVALID_ARGS;
	sim_device_stir(device);
	sim_device_info(device, &f, &t);
	if (!t)
		return RSMI_INVALID_ARGS;
	*out = type != VRAM ? 0 : used ? t - f : t;
	return 0;
}

int rsmi_dev_memory_total_get(uint32_t device, int type, uint64_t *out)
{
	return memory(device, type, out, false);
}

int rsmi_dev_memory_usage_get(uint32_t device, int type, uint64_t *out)
{
	return memory(device, type, out, true);
}

int rsmi_dev_pci_id_get(uint32_t device, uint64_t *out)
{
	*out = (uint64_t)(device + 1) << 8;
	return 0;
}

int rsmi_dev_unique_id_get(uint32_t device, uint64_t *out)
{
	unsigned char uuid[16];
	sim_device_uuid(device, uuid);
	memcpy(out, uuid + 8, sizeof *out);
	return 0;
}

int rsmi_dev_name_get(uint32_t device, char *name, size_t size)
{
	snprintf(name, size, "Simulated GPU %u", device);
	return 0;
}

/* One process over all devices. */
int rsmi_compute_process_info_by_pid_get(uint32_t pid, struct process_info *out)
{
	int pids[512];
	uint64_t bytes[512];
	uint32_t devices;
	bool found = false;
	*out = (struct process_info){.process_id = pid};
	rsmi_num_monitor_devices(&devices);
	for (uint32_t d = 0; d < devices; d++) {
		int n = sim_device_processes(d, pids, bytes, 512);
		for (int i = 0; i < n && i < 512; i++)
			if (pids[i] == (int)pid) {
				out->vram_usage += bytes[i];
				found = true;
			}
	}
	return found ? 0 : RSMI_NOT_FOUND;
}

/* AMD SMI uses handles; a handle here is the device's number plus 1. */
int amdsmi_init(uint64_t flags)
{
	return rsmi_init(flags);
}

int amdsmi_get_gpu_bdf_id(void *handle, uint64_t *out)
{
	return rsmi_dev_pci_id_get((uint32_t)(uintptr_t)handle - 1, out);
}

int amdsmi_get_gpu_memory_total(void *handle, int type, uint64_t *out)
{
	return memory((uint32_t)(uintptr_t)handle - 1, type, out, false);
}

int amdsmi_get_gpu_memory_usage(void *handle, int type, uint64_t *out)
{
	return memory((uint32_t)(uintptr_t)handle - 1, type, out, true);
}

int amdsmi_get_gpu_vram_usage(void *handle, uint32_t *out)
{
	uint64_t total, used;
	int code = amdsmi_get_gpu_memory_total(handle, VRAM, &total);

	if (!code && !(code = amdsmi_get_gpu_memory_usage(handle, VRAM, &used))) {
		out[0] = (uint32_t)(total >> 20);
		out[1] = (uint32_t)(used >> 20);
	}
	return code;
}
