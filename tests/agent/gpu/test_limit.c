/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"
#include "tests/agent/test.h"

#include <pthread.h>
#include <stdlib.h>

#include "agent/file/file.h"
#include "agent/process/hook_rows.h"
#include "agent/gpu/gpu.h"

const struct sl_hooks_row sl_hooks[] = {{""}, {"cudaMalloc"}, {"cuMemAlloc_v2"}, {"cudaMallocAsync_ptsz"}, {"cudaMallocHost"}};
const unsigned sl_hook_count = 5;

static unsigned notes;

void sl_define_note(const char *text)
{
	notes++;
}

void *sl_pages_map(size_t bytes)
{
	return calloc(1, bytes);
}

#define MIB (1ull << 20)

static uint64_t live(int device)
{
	uint64_t bytes;

	sl_limit_live(device, &bytes);
	return bytes;
}

/* Whether the limit would refuse this allocation; none is made. */
static bool refuses(int device, enum sl_kind kind, uint64_t bytes)
{
	struct sl_limit_claim claim = {0};
	bool refused = sl_limit_refuses(device, kind, bytes, &claim);

	sl_limit_release(&claim);
	return refused;
}

static void allocated(int device, enum sl_kind kind, uint64_t address, uint64_t bytes)
{
	sl_limit_allocated((struct sl_vendor_context){.device = device}, kind, address, bytes, &(struct sl_limit_claim){0});
}

static void freed(enum sl_kind kind, uint64_t address)
{
	struct sl_limit_claim claim = {0};

	sl_limit_freed(kind, address, &claim);
	sl_limit_release(&claim);
}

/* The devices have 1000 MiB, of which a context takes `context_bytes`. */
static uint64_t context_bytes;
static int current = -1;

struct sl_vendor_context sl_vendor_current(enum sl_vendor vendor)
{
	return (struct sl_vendor_context){vendor == SL_VENDOR_CUDA ? current : -1, 0};
}

bool sl_vendor_memory(enum sl_vendor vendor, uint64_t *free_bytes, uint64_t *total_bytes)
{
	*total_bytes = 1000 * MIB;
	*free_bytes = *total_bytes - context_bytes - live(current);
	return true;
}

bool sl_vendor_integrated(enum sl_vendor vendor, int ordinal)
{
	return false;
}

static void start(uint64_t limit, const char *inject)
{
	struct sl_options options = {.limit = limit, .inject_oom = inject};

	notes = 0;
	current = -1;
	sl_limit_start(&options);
}

static void neither_limit_nor_injection_is_off(void **state)
{
	start(0, NULL);
	assert_false(sl_limit_active);
	assert_false(sl_limit_injects(1, SL_KIND_device, 1));
	assert_false(refuses(0, SL_KIND_device, UINT64_MAX));
}

static void the_nth_allocation_alone_fails(void **state)
{
	start(0, "3");
	assert_true(sl_limit_active);
	assert_false(sl_limit_injects(1, SL_KIND_device, 1));
	assert_false(sl_limit_injects(2, SL_KIND_device, 1));
	assert_true(sl_limit_injects(4, SL_KIND_host_pinned, 1));
	assert_false(sl_limit_injects(1, SL_KIND_device, 1));
}

static void a_named_call_is_counted_alone_and_by_the_name_of_reports(void **state)
{
	start(0, "2:cuMemAlloc");
	assert_false(sl_limit_injects(1, SL_KIND_device, 1));
	assert_false(sl_limit_injects(2, SL_KIND_device, 1));
	assert_false(sl_limit_injects(1, SL_KIND_device, 1));
	assert_true(sl_limit_injects(2, SL_KIND_device, 1));
	start(0, "1:cudaMalloc");
	assert_false(sl_limit_injects(4, SL_KIND_device, 1));
	assert_false(sl_limit_injects(3, SL_KIND_device, 1));
	assert_true(sl_limit_injects(1, SL_KIND_device, 1));
	start(0, "1:cudaMallocAsync_ptsz");
	assert_true(sl_limit_injects(3, SL_KIND_pool, 1));
}

static void an_injection_that_cannot_be_read_is_off_and_noted(void **state)
{
	static const char *const broken[] = {"x", "3x", "0", ":cudaMalloc"};

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		start(0, broken[i]);
		assert_false(sl_limit_active);
		assert_int_equal(notes, 1);
	}
}

static void live_bytes_of_each_device_are_limited_apart(void **state)
{
	start(100 * MIB, NULL);
	assert_false(refuses(0, SL_KIND_device, 100 * MIB));
	assert_true(refuses(0, SL_KIND_device, 100 * MIB + 1));
	allocated(0, SL_KIND_device, 0x1000, 60 * MIB);
	allocated(0, SL_KIND_vmm, 0x1000, 30 * MIB);
	assert_int_equal(live(0), 90 * MIB);
	assert_true(refuses(0, SL_KIND_pool, 11 * MIB));
	assert_false(refuses(1, SL_KIND_pool, 11 * MIB));
	assert_false(refuses(0, SL_KIND_host_pinned, 11 * MIB));
	assert_false(refuses(0, SL_KIND_managed, 11 * MIB));
	assert_false(refuses(-1, SL_KIND_device, 1000 * MIB));
	freed(SL_KIND_unknown, 0x1000);
	assert_int_equal(live(0), 30 * MIB);
	freed(SL_KIND_unknown, 0x1000);
	freed(SL_KIND_unknown, 0x2000);
	assert_int_equal(live(0), 30 * MIB);
	freed(SL_KIND_vmm, 0x1000);
	assert_int_equal(live(0), 0);
}

static void an_address_seen_again_replaces_the_block_whose_free_was_missed(void **state)
{
	start(100 * MIB, NULL);
	allocated(0, SL_KIND_device, 0x1000, 60 * MIB);
	allocated(0, SL_KIND_device, 0x1000, 10 * MIB);
	assert_int_equal(live(0), 10 * MIB);
}

static void what_the_program_asks_agrees_with_what_it_gets(void **state)
{
	uint64_t free_bytes = 900 * MIB, total = 1000 * MIB;

	start(100 * MIB, NULL);
	allocated(0, SL_KIND_device, 0x1000, 60 * MIB);
	sl_limit_overhead(0, 70 * MIB, 60 * MIB);
	sl_limit_clamp(0, &free_bytes, &total);
	assert_int_equal(free_bytes, 30 * MIB);
	assert_int_equal(total, 100 * MIB);
	assert_false(refuses(0, SL_KIND_device, free_bytes));
	assert_true(refuses(0, SL_KIND_device, free_bytes + 1));
	free_bytes = 5 * MIB;
	sl_limit_clamp(0, &free_bytes, NULL);
	assert_int_equal(free_bytes, 5 * MIB);
	sl_limit_clamp(0, NULL, NULL);
}

static void the_cost_of_the_context_counts_from_the_first_allocation_on(void **state)
{
	uint64_t free_bytes = 900 * MIB;

	start(100 * MIB, NULL);
	current = 1;
	context_bytes = 30 * MIB;
	allocated(1, SL_KIND_device, 0x1000, 10 * MIB);
	assert_true(refuses(1, SL_KIND_device, 60 * MIB + 1));
	assert_false(refuses(1, SL_KIND_device, 60 * MIB));
	sl_limit_clamp(-1, &free_bytes, NULL); /* the thread's device */
	assert_int_equal(free_bytes, 60 * MIB);
	sl_limit_overhead(1, 35 * MIB, 10 * MIB); /* NVML's figure replaces it */
	sl_limit_clamp(-1, &free_bytes, NULL);
	assert_int_equal(free_bytes, 60 * MIB);
	free_bytes = 900 * MIB;
	sl_limit_clamp(-1, &free_bytes, NULL);
	assert_int_equal(free_bytes, 65 * MIB);
}

static void a_context_takes_its_blocks_and_its_cost_with_it(void **state)
{
	start(100 * MIB, NULL);
	allocated(0, SL_KIND_device, 0x1000, MIB);
	allocated(1, SL_KIND_device, 0x2000, MIB);
	sl_limit_overhead(0, 3 * MIB, MIB);
	sl_limit_context_gone((struct sl_vendor_context){.device = 0});
	assert_int_equal(live(0), 0);
	assert_int_equal(live(1), MIB);
	assert_false(refuses(0, SL_KIND_device, 100 * MIB));
}

static void made_in(int device, uint64_t context, enum sl_kind kind, uint64_t address)
{
	sl_limit_allocated((struct sl_vendor_context){device, context}, kind, address, MIB, &(struct sl_limit_claim){0});
}

static void a_context_of_the_programs_own_takes_its_blocks_alone_and_a_reset_leaves_them(void **state)
{
	start(100 * MIB, NULL);
	sl_limit_primary((struct sl_vendor_context){0, 0xc0});
	made_in(0, 0xc0, SL_KIND_device, 0x1000);
	made_in(0, 0xc1, SL_KIND_device, 0x2000);
	made_in(0, 0xc2, SL_KIND_array, 0x3000);
	made_in(0, 0xc1, SL_KIND_vmm, 0x4000);
	made_in(0, 0, SL_KIND_pool, 0x5000); /* of another device's stream: the context is not known */
	sl_limit_context_gone((struct sl_vendor_context){-1, 0xc1});
	assert_int_equal(live(0), 4 * MIB);
	sl_limit_context_gone((struct sl_vendor_context){.device = 0});
	assert_int_equal(live(0), 2 * MIB); /* in 0xc2, and what no context holds */
}

static void a_full_table_is_noted_once_and_never_fails_a_call(void **state)
{
	start(1ull << 40, NULL);
	for (uint64_t i = 1; i <= 200000; i++)
		allocated(0, SL_KIND_device, i << 9, 1);
	assert_int_equal(notes, 1);
	assert_true(live(0) > 100000);
	for (uint64_t i = 1; i <= 200000; i++)
		freed(SL_KIND_device, i << 9);
	assert_int_equal(live(0), 0);
}

static void *churn(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;

	for (unsigned round = 0; round < 200; round++) {
		for (uint64_t i = 1; i <= 300; i++)
			allocated((int)(i & 3), SL_KIND_device, base + (i << 9), i);
		for (uint64_t i = 1; i <= 300; i++)
			freed(SL_KIND_device, base + (i << 9));
	}
	return NULL;
}

static void threads_leave_no_byte_behind(void **state)
{
	pthread_t threads[4];

	start(1ull << 40, NULL);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int device = 0; device < 4; device++)
		assert_int_equal(live(device), 0);
}

/* Threads take blocks of 3 bytes under a limit of 3001, and free one whenever the limit refuses another. */
#define EXACT 3001ull
static _Atomic uint64_t held, held_most;

static void *crowd(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;
	unsigned mine = 0;

	for (unsigned round = 0; round < 200000; round++) {
		struct sl_limit_claim claim = {0};

		if (!sl_limit_refuses(0, SL_KIND_device, 3, &claim)) {
			uint64_t now = atomic_fetch_add(&held, 3) + 3, most = atomic_load(&held_most);

			while (now > most && !atomic_compare_exchange_weak(&held_most, &most, now))
				;
			if (round % 5 == 0) { /* as if the driver refused the allocation */
				atomic_fetch_sub(&held, 3);
				sl_limit_release(&claim);
				continue;
			}
			sl_limit_allocated((struct sl_vendor_context){0}, SL_KIND_device, base + (++mine << 9), 3, &claim);
		} else if (mine) {
			sl_limit_freed(SL_KIND_device, base + (mine << 9), &claim);
			atomic_fetch_sub(&held, claim.bytes);
			if (round % 7 == 0) { /* as if the driver refused the free */
				atomic_fetch_add(&held, claim.bytes);
				sl_limit_allocated((struct sl_vendor_context){0}, SL_KIND_device, base + (mine << 9), claim.bytes,
						   &claim);
				continue;
			}
			sl_limit_release(&claim);
			mine--;
		}
	}
	return NULL;
}

static void eight_threads_together_reach_the_limit_and_never_pass_it(void **state)
{
	pthread_t threads[8];
	uint64_t bytes;

	start(EXACT, NULL);
	atomic_store(&held, 0);
	atomic_store(&held_most, 0);
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&held_most), EXACT / 3 * 3);
	assert_true(sl_limit_live(0, &bytes));
	assert_int_equal(bytes, atomic_load(&held));
}

static void a_free_that_fails_leaves_the_block_and_one_under_way_still_counts(void **state)
{
	struct sl_limit_claim claim = {0};
	uint64_t bytes;

	start(100 * MIB, NULL);
	allocated(0, SL_KIND_device, 0x1000, 60 * MIB);
	sl_limit_freed(SL_KIND_device, 0x1000, &claim);
	assert_true(refuses(0, SL_KIND_device, 41 * MIB));
	assert_false(sl_limit_live(0, &bytes));
	sl_limit_allocated((struct sl_vendor_context){claim.device, 0}, SL_KIND_device, 0x1000, claim.bytes, &claim);
	assert_true(sl_limit_live(0, &bytes));
	assert_int_equal(bytes, 60 * MIB);
	freed(SL_KIND_device, 0x1000);
	assert_int_equal(live(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neither_limit_nor_injection_is_off),
		cmocka_unit_test(the_nth_allocation_alone_fails),
		cmocka_unit_test(a_named_call_is_counted_alone_and_by_the_name_of_reports),
		cmocka_unit_test(an_injection_that_cannot_be_read_is_off_and_noted),
		cmocka_unit_test(live_bytes_of_each_device_are_limited_apart),
		cmocka_unit_test(an_address_seen_again_replaces_the_block_whose_free_was_missed),
		cmocka_unit_test(what_the_program_asks_agrees_with_what_it_gets),
		cmocka_unit_test(the_cost_of_the_context_counts_from_the_first_allocation_on),
		cmocka_unit_test(a_context_takes_its_blocks_and_its_cost_with_it),
		cmocka_unit_test(a_context_of_the_programs_own_takes_its_blocks_alone_and_a_reset_leaves_them),
		cmocka_unit_test(a_full_table_is_noted_once_and_never_fails_a_call),
		cmocka_unit_test(threads_leave_no_byte_behind),
		cmocka_unit_test(eight_threads_together_reach_the_limit_and_never_pass_it),
		cmocka_unit_test(a_free_that_fails_leaves_the_block_and_one_under_way_still_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
