/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <sys/utsname.h>

#include "common/text.h"

enum { KERNEL, ARCHITECTURE, DISTRIBUTION, CPUS, MEMORY, NVIDIA, AMDGPU, COUNT };

static const char *const names[COUNT] = {"kernel",	 "architecture",  "distribution", "cpus",
					 "memory_bytes", "nvidia_driver", "amdgpu"};

#define VALUE 128

static void put(char value[VALUE], const char *text)
{
	struct sl_text out = sl_text_begin(value, VALUE);

	sl_text_add(&out, text);
}

static void put_number(char value[VALUE], uint64_t number)
{
	struct sl_text out = sl_text_begin(value, VALUE);

	sl_text_add_number(&out, number);
}

static void put_first_line(char value[VALUE], const char *path)
{
	sl_procfile_read(path, value, VALUE);
	value[strcspn(value, "\n")] = 0;
}

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" */
static void put_distribution(char value[VALUE])
{
	char line[VALUE];
	size_t quote;

	sl_procfile_find("/etc/os-release", "PRETTY_NAME=", line, sizeof(line));
	quote = *line == '"';
	line[quote + strcspn(line + quote, "\"")] = 0;
	put(value, line + quote);
}

/* "0-3,8": five. */
static uint64_t listed(const char *list)
{
	uint64_t first, last, count = 0;

	while (sl_procfile_digits(list, &first)) {
		list += strspn(list, "0123456789");
		last = first;
		if (*list == '-' && sl_procfile_digits(list + 1, &last))
			list += 1 + strspn(list + 1, "0123456789");
		count += last >= first ? last - first + 1 : 0;
		list += *list == ',';
	}
	return count;
}

void sl_system_pack(struct sl_pack *pack)
{
	char value[COUNT][VALUE] = {{0}}, line[VALUE];
	struct utsname system;
	uint64_t number;
	size_t count = 0;

	if (!uname(&system)) {
		put(value[KERNEL], system.release);
		put(value[ARCHITECTURE], system.machine);
	}
	put_distribution(value[DISTRIBUTION]);
	sl_procfile_read("/sys/devices/system/cpu/online", line, sizeof(line));
	if (listed(line))
		put_number(value[CPUS], listed(line));
	if (sl_procfile_find("/proc/meminfo", "MemTotal:", line, sizeof(line)) && sl_procfile_digits(line, &number))
		put_number(value[MEMORY], number << 10);
	put_first_line(value[NVIDIA], "/sys/module/nvidia/version");
	put_first_line(value[AMDGPU], "/sys/module/amdgpu/version");
	for (unsigned i = 0; i < COUNT; i++)
		count += *value[i] != 0;
	sl_pack_map(pack, count);
	for (unsigned i = 0; i < COUNT; i++)
		if (*value[i]) {
			sl_pack_text(pack, names[i]);
			sl_pack_text(pack, value[i]);
		}
}
