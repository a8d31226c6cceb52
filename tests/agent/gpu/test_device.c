/* SPDX-License-Identifier: MIT */
/* device.c over a driver and an NVML of this test's own. */
#include "tests/agent/test.h"

#include <stdlib.h>

#include "agent/file/file.h"
#include "agent/process/process.h"
#include "agent/symbols/symbols.h"
#include "agent/gpu/gpu.h"

/* --- what the test can set --------------------------------------------------------------------------- */

static struct {
	void *context;
	int device, capture_mode, hip_error, hip_version, hip_device;
	size_t free_bytes, total_bytes;
	bool mig, has_nvml, nvml_knows;
	unsigned nvml_processes;
	uint64_t nvml_pid;
	unsigned memory_asked, hip_asked;
	int mode_when_asked;
} fake;

static msgpack_unpacked maps[64];
static unsigned map_count, note_count;

/* --- the agent's core -------------------------------------------------------------------------------- */

bool sl_limit_active;

bool sl_define_publish(struct sl_definition *definition)
{
	static char copies[64][4096]; /* what is unpacked points into them */
	const struct sl_pack *pack = &definition->pack;
	const void *map = copies[map_count];
	size_t at = 0;

	assert_true(sl_definition_end(definition) && map_count < 64 && pack->used <= sizeof(copies[0]));
	memcpy(copies[map_count], pack->bytes, pack->used);
	msgpack_unpacked_init(&maps[map_count]);
	assert_int_equal(msgpack_unpack_next(&maps[map_count], map, pack->used, &at), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, pack->used);
	map_count++;
	return true;
}

void sl_asleep_rouse(const char *why)
{
}

void sl_define_note(const char *text)
{
	note_count++;
}

static struct sl_agent agent;
struct sl_agent *_Atomic sl_agent = &agent;

void sl_agent_ask(void)
{
}

uint64_t sl_agent_now(void)
{
	return 77;
}

bool sl_limit_live(int device, uint64_t *bytes)
{
	*bytes = 0;
	return true;
}

void sl_limit_overhead(int device, uint64_t process_bytes, uint64_t live_bytes)
{
}

void sl_limit_clamp(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
}

/* --- the driver, HIP and NVML ------------------------------------------------------------------------ */

static int get_context(void **context)
{
	*context = fake.context;
	return 0;
}

static int get_device(int *device)
{
	*device = fake.device;
	return fake.context ? 0 : 201;
}

static int get_name(char *name, int size, int device)
{
	strcpy(name, device ? "Second" : "First");
	return 0;
}

static int get_uuid(unsigned char *uuid, int device)
{
	memset(uuid, 0xab, 16);
	return 0;
}

static int get_uuid_v2(unsigned char *uuid, int device)
{
	memset(uuid, fake.mig ? 0x12 : 0xab, 16);
	return 0;
}

static int get_pci(char *text, int size, int device)
{
	strcpy(text, "0000:03:00.0");
	return 0;
}

static int get_total(size_t *bytes, int device)
{
	*bytes = fake.total_bytes;
	return 0;
}

static int get_memory(size_t *free_bytes, size_t *total)
{
	fake.memory_asked++;
	fake.mode_when_asked = fake.capture_mode;
	*free_bytes = fake.free_bytes;
	*total = fake.total_bytes;
	return fake.context ? 0 : 201;
}

static int exchange_mode(int *mode)
{
	int before = fake.capture_mode;

	fake.capture_mode = *mode;
	*mode = before;
	return 0;
}

static int get_attribute(void *value, int attribute, uint64_t address)
{
	*(int *)value = (int)(address >> 40);
	return attribute == 9 ? 0 : 1;
}

static int hip_peek(void)
{
	return fake.hip_error;
}

static int hip_version(int *version)
{
	*version = fake.hip_version;
	return 0;
}

static int hip_get_device(int *device)
{
	fake.hip_asked++;
	*device = fake.hip_device;
	return 0;
}

static int nvml_init(void)
{
	return 0;
}

static int nvml_by_uuid(const char *uuid, void **device)
{
	*device = &fake;
	return fake.nvml_knows && !strncmp(uuid, "GPU-abababab-abab-", 18) ? 0 : 6;
}

static int nvml_memory(void *device, unsigned long long *memory)
{
	memory[0] = fake.total_bytes;
	memory[1] = fake.free_bytes;
	memory[2] = fake.total_bytes - fake.free_bytes;
	return 0;
}

struct nvml_process {
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

static int nvml_running(void *device, unsigned *count, struct nvml_process *list)
{
	*count = fake.nvml_processes;
	for (unsigned i = 0; i < *count; i++) {
		list[i].pid = i && fake.nvml_processes == 2 ? 1 : (unsigned)fake.nvml_pid;
		list[i].bytes = i && fake.nvml_processes == 2 ? UINT64_MAX : 4096;
	}
	return 0;
}

static void *fake_dlopen(const char *name, int flags)
{
	assert_string_equal(name, "libnvidia-ml.so.1");
	return fake.has_nvml ? &fake : NULL;
}

static void *fake_dlsym(void *library, const char *name)
{
	if (!strcmp(name, "nvmlInit_v2"))
		return nvml_init;
	if (!strcmp(name, "nvmlDeviceGetHandleByUUID"))
		return nvml_by_uuid;
	if (!strcmp(name, "nvmlDeviceGetMemoryInfo"))
		return nvml_memory;
	if (!strcmp(name, "nvmlDeviceGetComputeRunningProcesses_v3"))
		return nvml_running;
	return NULL;
}

_Atomic uint64_t sl_objects_unloads, sl_objects_loads;

bool sl_objects_trusted(void)
{
	return true;
}

void sl_objects_use_begin(bool opens)
{
}

void sl_objects_use_end(void)
{
}

bool sl_sanitizers_present(void)
{
	return false;
}

void *sl_resolve_symbol(const char *name)
{
	return strcmp(name, "dlopen") ? NULL : fake_dlopen;
}

void *sl_resolve_dlsym(void)
{
	return fake_dlsym;
}

static bool range_is_loaded;
static unsigned range_lookups;

static int hip_range(uint64_t *base, size_t *bytes, uint64_t address)
{
	*base = address;
	*bytes = 4096;
	return 0;
}

void *sl_resolve_in(const char *library, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {{"cuCtxGetCurrent", get_context},
			 {"cuCtxGetDevice", get_device},
			 {"cuDeviceGetName", get_name},
			 {"cuDeviceGetUuid", get_uuid},
			 {"cuDeviceGetUuid_v2", get_uuid_v2},
			 {"cuDeviceGetPCIBusId", get_pci},
			 {"cuDeviceTotalMem_v2", get_total},
			 {"cuMemGetInfo_v2", get_memory},
			 {"cuThreadExchangeStreamCaptureMode", exchange_mode},
			 {"cuPointerGetAttribute", get_attribute},
			 {"hipPeekAtLastError", hip_peek},
			 {"hipRuntimeGetVersion", hip_version},
			 {"hipGetDevice", hip_get_device},
			 {"hipMemGetInfo", get_memory}};

	if (!strcmp(name, "hipMemGetAddressRange")) {
		range_lookups++;
		return range_is_loaded ? hip_range : NULL;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			return functions[i].function;
	return NULL;
}

/* --- reading maps ------------------------------------------------------------------------------------ */

static const msgpack_object *find(unsigned index, const char *name)
{
	const msgpack_object *map = &maps[index].data;

	for (unsigned i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key;

		if (key->via.str.size == strlen(name) && !memcmp(key->via.str.ptr, name, strlen(name)))
			return &map->via.map.ptr[i].val;
	}
	return NULL;
}

static void assert_text(unsigned index, const char *name, const char *value)
{
	const msgpack_object *found = find(index, name);

	if (!found)
		fail_msg("map %u has no %s", index, name);
	assert_int_equal(found->via.str.size, strlen(value));
	assert_memory_equal(found->via.str.ptr, value, strlen(value));
}

static void assert_number(unsigned index, const char *name, uint64_t value)
{
	assert_non_null(find(index, name));
	assert_int_equal(find(index, name)->via.u64, value);
}

static int fresh(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.context = &fake;
	fake.total_bytes = 1000;
	fake.free_bytes = 400;
	map_count = note_count = 0;
	sl_vendor_forget(); /* the context is one more device's */
	sl_device_child();
	return 0;
}

/* --- the tests, in this order: NVML is opened once a process ----------------------------------------- */

static void the_current_device_is_unknown_without_a_context(void **state)
{
	struct sl_vendor_context place;

	fake.context = NULL;
	place = sl_device_current(SL_FAMILY_cuda_driver);
	assert_int_equal(place.device, -1);
	assert_int_equal(place.context, 0);
	assert_int_equal(sl_device_free_bytes(SL_FAMILY_cuda_driver), 0);
	fake.context = &fake;
	fake.device = 2;
	place = sl_device_current(SL_FAMILY_cuda_runtime);
	assert_int_equal(place.device, 2);
	assert_int_equal(place.context, (uintptr_t)&fake);
	assert_int_equal(sl_device_of_pointer(SL_FAMILY_cuda_driver, 3ull << 40), 3);
}

static void memory_is_asked_without_disturbing_a_capture(void **state)
{
	assert_int_equal(sl_device_free_bytes(SL_FAMILY_cuda_driver), 400);
	assert_int_equal(fake.mode_when_asked, 2);
	assert_int_equal(fake.capture_mode, 0);
}

static void a_device_is_described_once_by_name_uuid_and_total(void **state)
{
	sl_device_used(0, SL_FAMILY_cuda_runtime);
	sl_device_used(0, SL_FAMILY_cuda_driver);
	sl_device_used(-1, SL_FAMILY_cuda_driver);
	assert_int_equal(map_count, 1);
	assert_text(0, "def", "device");
	assert_text(0, "name", "First");
	assert_text(0, "uuid", "GPU-abababab-abab-abab-abab-abababababab");
	assert_text(0, "pci", "0000:03:00.0");
	assert_number(0, "total_bytes", 1000);
	fake.mig = true;
	sl_device_used(1, SL_FAMILY_cuda_driver);
	assert_text(1, "uuid", "MIG-12121212-1212-1212-1212-121212121212");
}

static void an_oom_says_what_was_free_and_what_the_process_may_use(void **state)
{
	sl_device_oom(3, 9, 0, SL_FAMILY_cuda_driver, SL_KIND_device, 55);
	assert_text(0, "def", "device"); /* the number of the device says which other processes are there */
	assert_text(1, "def", "oom");
	assert_number(1, "thread", 3);
	assert_number(1, "seq", 9);
	assert_number(1, "device", 0);
	assert_number(1, "free_bytes", 400);
	assert_number(1, "total_bytes", 1000);
	assert_true(find(1, "rss_bytes")->via.u64 > 100000);
	assert_null(find(1, "vm_limit_bytes"));
	/* Nothing is known of a device that is not the thread's; host memory has no device. */
	sl_device_oom(3, 9, 1, SL_FAMILY_cuda_driver, SL_KIND_device, 55);
	assert_text(3, "def", "oom");
	assert_null(find(3, "free_bytes"));
	sl_device_oom(3, 9, 0, SL_FAMILY_cuda_driver, SL_KIND_host_pinned, 55);
	assert_null(find(4, "free_bytes"));
	assert_null(find(4, "device"));
}

static void hip_with_a_pending_error_is_not_asked(void **state)
{
	fake.hip_version = 50221153;
	fake.hip_device = 1;
	assert_int_equal(sl_device_current(SL_FAMILY_hip).device, 1);
	fake.hip_error = 2;
	fake.hip_asked = fake.memory_asked = 0;
	assert_int_equal(sl_device_current(SL_FAMILY_hip).device, 1); /* the device of the last answer */
	sl_device_oom(1, 1, 1, SL_FAMILY_hip, SL_KIND_device, 1);
	assert_int_equal(fake.hip_asked + fake.memory_asked, 0);
	assert_null(find(0, "free_bytes"));
}

static void nothing_is_sampled_of_a_device_before_it_is_used(void **state)
{
	fake.has_nvml = true;
	sl_device_sample(10);
	assert_int_equal(map_count, 1);
	assert_text(0, "def", "sample");
	assert_null(find(0, "device"));
	assert_true(find(0, "rss_bytes")->via.u64 > 0);
}

static void nvml_gives_the_device_and_this_process_and_more_than_there_is_room_for_are_said_once(void **state)
{
	fake.has_nvml = fake.nvml_knows = true;
	fake.nvml_processes = 2;
	fake.nvml_pid = (uint64_t)getpid();
	sl_device_used(0, SL_FAMILY_cuda_driver);
	sl_device_sample(10);
	assert_text(1, "def", "capability");
	assert_text(1, "value", "nvml");
	assert_text(2, "def", "sample");
	assert_text(2, "source", "nvml");
	assert_number(2, "ns", 77);
	assert_number(2, "device", 0);
	assert_number(2, "used_bytes", 600);
	assert_number(2, "process_bytes", 4096);
	assert_int_equal(find(2, "processes")->via.array.size, 1); /* without the process whose bytes are not known */
	assert_int_equal(fake.memory_asked, 0);
	map_count = 0;
	fake.nvml_processes = 65;
	sl_device_sample(20);
	assert_int_equal(find(0, "processes")->via.array.size, 64);
	sl_device_sample(30);
	assert_int_equal(note_count, 1);
}

static void the_last_sample_opens_nothing(void **state)
{
	fake.has_nvml = fake.nvml_knows = true;
	sl_device_used(0, SL_FAMILY_cuda_driver);
	assert_true(sl_device_news());
	assert_false(sl_device_news());
	map_count = 0;
	sl_device_sample_last(10);
	assert_int_equal(map_count, 1);
	assert_null(find(0, "device"));
}

static void a_device_nvml_does_not_know_is_sampled_by_the_programs_next_call(void **state)
{
	fake.has_nvml = true;
	sl_device_used(0, SL_FAMILY_cuda_driver);
	sl_device_sample(10);
	assert_int_equal(note_count, 1);
	assert_int_equal(fake.memory_asked, 0);
	map_count = 0;
	sl_device_used(0, SL_FAMILY_cuda_driver);
	sl_device_used(0, SL_FAMILY_cuda_driver);
	assert_int_equal(fake.memory_asked, 1);
	assert_int_equal(map_count, 1);
	assert_text(0, "source", "cuMemGetInfo");
	assert_number(0, "used_bytes", 600);
}

static void what_is_not_there_is_not_looked_for_at_every_call(void **state)
{
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(sl_vendor_size_of(SL_VENDOR_HIP, 4096), 0);
	assert_int_equal(range_lookups, 1);
	range_is_loaded = true;
	atomic_fetch_add(&sl_objects_loads, 1); /* by dlopen */
	assert_int_equal(sl_vendor_size_of(SL_VENDOR_HIP, 4096), 4096);
	assert_int_equal(sl_vendor_size_of(SL_VENDOR_HIP, 4096), 4096);
	assert_int_equal(range_lookups, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_current_device_is_unknown_without_a_context, fresh),
		cmocka_unit_test_setup(memory_is_asked_without_disturbing_a_capture, fresh),
		cmocka_unit_test_setup(a_device_is_described_once_by_name_uuid_and_total, fresh),
		cmocka_unit_test_setup(an_oom_says_what_was_free_and_what_the_process_may_use, fresh),
		cmocka_unit_test_setup(hip_with_a_pending_error_is_not_asked, fresh),
		cmocka_unit_test_setup(what_is_not_there_is_not_looked_for_at_every_call, fresh),
		cmocka_unit_test_setup(nothing_is_sampled_of_a_device_before_it_is_used, fresh),
		cmocka_unit_test_setup(nvml_gives_the_device_and_this_process_and_more_than_there_is_room_for_are_said_once, fresh),
		cmocka_unit_test_setup(the_last_sample_opens_nothing, fresh),
		cmocka_unit_test_setup(a_device_nvml_does_not_know_is_sampled_by_the_programs_next_call, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
