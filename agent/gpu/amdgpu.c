/* SPDX-License-Identifier: MIT */
#include "agent/gpu/gpu.h"

#include <fcntl.h>

#include "common/text.h"

#ifndef SL_SYSFS
#define SL_SYSFS "/sys" /* tests define their own */
#endif
#define KFD SL_SYSFS "/class/kfd/kfd/"

static bool read_value(const char *pci, const char *name, uint64_t *bytes)
{
	char path[128];
	struct sl_text text = sl_text_begin(path, sizeof(path));

	sl_text_add(&text, SL_SYSFS "/bus/pci/devices/");
	for (; *pci; pci++) {
		char lower = *pci >= 'A' && *pci <= 'F' ? (char)(*pci | 0x20) : *pci;

		sl_text_add_bytes(&text, &lower, 1);
	}
	sl_text_add(&text, name);
	return sl_procfile_number(path, bytes);
}

bool sl_amdgpu_memory(const char *pci, uint64_t *used_bytes, uint64_t *total_bytes)
{
	return *pci && read_value(pci, "/mem_info_vram_used", used_bytes) && read_value(pci, "/mem_info_vram_total", total_bytes);
}

/* --- KFD -------------------------------------------------------------------------------------------- */

static uint64_t hexadecimal(const char **text)
{
	uint64_t value = 0;

	for (; **text && **text != ':' && **text != '.'; (*text)++)
		value = value << 4 | (uint64_t)(**text >= 'A' ? (**text | 0x20) - 'a' + 10 : **text - '0');
	*text += **text != 0;
	return value;
}

static bool has_number(const char *content, const char *name, uint64_t wanted)
{
	const char *line = sl_procfile_line(content, name);
	uint64_t number;

	return line && sl_procfile_digits(line, &number) && number == wanted;
}

uint64_t sl_amdgpu_kfd(const char *pci)
{
	/* 0000:c1:00.0 is domain 0, location c1 << 8 | device << 3 | function */
	uint64_t domain = hexadecimal(&pci), bus = hexadecimal(&pci), device = hexadecimal(&pci);
	uint64_t location = bus << 8 | device << 3 | hexadecimal(&pci), id;
	char path[160], content[4096];

	for (unsigned node = 0; node < 256; node++) {
		struct sl_text text = sl_text_begin(path, sizeof(path));
		size_t folder;

		sl_text_add(&text, KFD "topology/nodes/");
		sl_text_add_number(&text, node);
		folder = text.used;
		sl_text_add(&text, "/gpu_id");
		if (!sl_procfile_number(path, &id))
			return 0;
		text = sl_text_begin(path + folder, sizeof(path) - folder);
		sl_text_add(&text, "/properties");
		if (id && sl_procfile_read(path, content, sizeof(content)) > 0 && has_number(content, "location_id", location) &&
		    has_number(content, "domain", domain))
			return id;
	}
	return 0;
}

/* struct linux_dirent64 */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static void take_process(struct sl_device_sample *sample, const char *name, uint64_t kfd)
{
	char path[160];
	struct sl_text text = sl_text_begin(path, sizeof(path));
	uint64_t pid, bytes;

	if (!sl_procfile_digits(name, &pid))
		return;
	sl_text_add(&text, KFD "proc/");
	sl_text_add_number(&text, pid);
	sl_text_add(&text, "/vram_");
	sl_text_add_number(&text, kfd);
	if (sl_procfile_number(path, &bytes))
		sl_sample_add(sample, pid, bytes);
}

static void read_processes(struct sl_device_sample *sample, uint64_t kfd)
{
	_Alignas(8) static char list[16384];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, KFD "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long bytes;

	if (fd < 0)
		return;
	while ((bytes = syscall(SYS_getdents64, fd, list, sizeof(list))) > 0)
		for (long at = 0; at < bytes; at += ((struct entry *)(list + at))->bytes)
			take_process(sample, ((struct entry *)(list + at))->name, kfd);
	syscall(SYS_close, fd);
	sl_sample_listed(sample);
}

bool sl_amdgpu_sample(const char *pci, uint64_t kfd, struct sl_device_sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	if (!sl_amdgpu_memory(pci, &sample->used_bytes, &sample->total_bytes))
		return false;
	sample->free_bytes = sample->total_bytes - sample->used_bytes;
	if (kfd)
		read_processes(sample, kfd);
	return true;
}
