/* SPDX-License-Identifier: MIT */
#include "agent/amdgpu.h"

#include "agent/procfile.h"
#include "agent/text.h"

static bool read_value(const char *pci, const char *name, uint64_t *bytes)
{
	char path[128];
	struct sl_text text = sl_text_begin(path, sizeof(path));

	sl_text_add(&text, "/sys/bus/pci/devices/");
	for (; *pci; pci++) {
		char lower = *pci >= 'A' && *pci <= 'F' ? (char)(*pci | 0x20) : *pci;

		sl_text_add_bytes(&text, &lower, 1);
	}
	sl_text_add(&text, name);
	return sl_procfile_number(path, bytes);
}

bool sl_amdgpu_memory(const char *pci, uint64_t *used_bytes, uint64_t *total_bytes)
{
	return *pci && read_value(pci, "/mem_info_vram_used", used_bytes) &&
	       read_value(pci, "/mem_info_vram_total", total_bytes);
}
