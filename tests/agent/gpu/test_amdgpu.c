/* SPDX-License-Identifier: MIT */
/* agent/gpu/amdgpu.c over a sysfs of our own, in a folder of its own. */
#include "agent/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/agent/test.h"

/* A file and the folders it is in. */
static void put(const char *path, const char *content)
{
	char folder[256];
	FILE *file;

	for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		mkdir(folder, 0755);
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

#define NODE	  "fake_sys/class/kfd/kfd/topology/nodes/"
#define PROCESSES "fake_sys/class/kfd/kfd/proc/"

static int make(void **state)
{
	static char folder[] = "/tmp/stormlog-amdgpu-XXXXXX";
	char path[128];

	*state = mkdtemp(folder);
	if (!*state || chdir(*state))
		return -1;
	put("fake_sys/bus/pci/devices/0000:c1:00.0/mem_info_vram_used", "3221225472\n");
	put("fake_sys/bus/pci/devices/0000:c1:00.0/mem_info_vram_total", "68702699520\n");
	put("fake_sys/bus/pci/devices/0001:03:00.0/mem_info_vram_used", "1048576\n");
	put("fake_sys/bus/pci/devices/0001:03:00.0/mem_info_vram_total", "2097152\n");
	put(NODE "0/gpu_id", "0\n");
	put(NODE "0/properties", "cpu_cores_count 16\nlocation_id 0\ndomain 0\n");
	put(NODE "1/gpu_id", "41210\n");
	put(NODE "1/properties", "cpu_cores_count 0\nlocation_id 49408\ndomain 0\n");
	put(NODE "2/gpu_id", "777\n");
	put(NODE "2/properties", "location_id 768\ndomain 1\n");
	snprintf(path, sizeof(path), PROCESSES "%d/vram_41210", getpid());
	put(path, "2147483648\n");
	put(PROCESSES "1/vram_41210", "536870912\n");
	put(PROCESSES "1/vram_777", "4096\n");
	put(PROCESSES "2/pasid", "32769\n");
	return 0;
}

static int clean(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	return chdir("/") || system(command);
}

static void a_device_is_found_by_domain_and_place(void **state)
{
	assert_int_equal(sl_amdgpu_kfd("0000:c1:00.0"), 41210);
	assert_int_equal(sl_amdgpu_kfd("0000:C1:00.0"), 41210);
	assert_int_equal(sl_amdgpu_kfd("0001:03:00.0"), 777);
	assert_int_equal(sl_amdgpu_kfd("0000:03:00.0"), 0);
	assert_int_equal(sl_amdgpu_kfd(""), 0);
}

static void a_sample_lists_each_process_that_kfd_knows_on_that_device(void **state)
{
	struct sl_device_sample sample;
	uint64_t others = 0;

	assert_true(sl_amdgpu_sample("0000:c1:00.0", 41210, &sample));
	assert_true(sample.total_bytes == 68702699520 && sample.used_bytes == 3221225472);
	assert_int_equal(sample.free_bytes, sample.total_bytes - sample.used_bytes);
	assert_true(sample.has_processes);
	assert_int_equal(sample.count, 2);
	assert_int_equal(sample.own_bytes, 2147483648);
	for (unsigned i = 0; i < sample.count; i++)
		others += sample.processes[i].pid == 1 ? sample.processes[i].bytes : 0;
	assert_int_equal(others, 536870912);
}

static void without_kfd_there_is_the_device_alone_and_without_amdgpu_nothing(void **state)
{
	struct sl_device_sample sample;

	assert_true(sl_amdgpu_sample("0000:c1:00.0", 0, &sample));
	assert_false(sample.has_processes);
	assert_int_equal(sample.count, 0);
	assert_false(sl_amdgpu_sample("0000:99:00.0", 0, &sample));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_found_by_domain_and_place),
		cmocka_unit_test(a_sample_lists_each_process_that_kfd_knows_on_that_device),
		cmocka_unit_test(without_kfd_there_is_the_device_alone_and_without_amdgpu_nothing),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
