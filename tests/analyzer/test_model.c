/* SPDX-License-Identifier: MIT */
/*
 * What each verb does to the model, by the numbers in the model after a replay.
 * Longer than other files: a test for each meaning of a verb.
 */
#include "analyzer/model/counts/ledger.h"
#include "analyzer/model/counts/sample_wait.h"
#include "replay.h"

#define MIB (1ull << 20)

static void a_freed_address_used_again_is_two_allocations(void **state)
{
	struct replay r;

	replay_begin(&r);
	for (int i = 0; i < 10; i++) {
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB * (i + 1));
		synth_call(r.synth, 1, "cudaFree", .address = 0x1000);
	}
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 10, 10, 0, 0);
	assert_int_equal(replay_row(&r, SL_KIND_device, 0)->peak_bytes, 10 * MIB);
	assert_int_equal(replay_row(&r, SL_KIND_device, 0)->allocated_bytes, 55 * MIB);
	assert_int_equal(r.model->unknown_frees, 0);
	replay_free(&r);
}

static void a_free_of_what_is_not_live_counts_as_unknown_and_free_null_as_nothing(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaFree", .address = 0x1000);
	synth_call(r.synth, 1, "cudaFree", .address = 0);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0, .bytes = 0);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->unknown_frees, 1);
	assert_false(replay_row(&r, SL_KIND_device, 0)->used);
	assert_int_equal(r.model->apis[synth_api("cudaFree")].calls, 2);
	assert_int_equal(r.model->apis[synth_api("cudaMalloc")].calls, 1);
	replay_free(&r);
}

/* A reader of a running process gets an event late if its thread was held up between its time stamp and the ring. */
static void a_free_that_is_told_late_leaves_what_has_its_address_now(void **state)
{
	struct sl_event late = {
		.api = synth_api("cudaFree"), .address = 0x1000, .time_ns = SYNTH_START_NS + 200, .kind = SL_KIND_device};
	struct sl_item item = {.kind = SL_ITEM_EVENT, .event = &late, .thread = 1};
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB, .time_ns = SYNTH_START_NS + 100);
	synth_call(r.synth, 2, "cudaMalloc", .address = 0x1000, .bytes = 2 * MIB, .time_ns = SYNTH_START_NS + 300);
	replay_end(&r, SYNTH_COMPLETED);
	item.hook = sl_header_hook(&r.trace->header, late.api);
	sl_replay_apply(r.model, &item);
	assert_int_equal(replay_row(&r, SL_KIND_device, 0)->live_bytes, 2 * MIB);
	assert_int_equal(r.model->unknown_frees, 1);
	replay_free(&r);
}

static void a_failed_allocation_counts_as_failed_and_a_failed_free_frees_nothing(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB);
	synth_call(r.synth, 1, "cudaMalloc", .bytes = 8 * MIB, .result = 2);
	synth_call(r.synth, 1, "cudaMalloc", .bytes = 9 * MIB, .result = 100);
	synth_call(r.synth, 1, "cudaFree", .address = 0x1000, .result = 700);
	synth_call(r.synth, 1, "cudaFree", .address = 0x5000, .result = 1);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 1, 0, 0, MIB);
	assert_int_equal(r.model->unknown_frees, 0);
	assert_int_equal(r.model->apis[synth_api("cudaFree")].failures, 2);
	assert_int_equal(replay_row(&r, SL_KIND_device, 0)->failed_allocations, 2);
	assert_int_equal(r.model->ooms.count, 1);
	assert_int_equal(r.model->ooms.item[0].requested_bytes, 8 * MIB);
	assert_int_equal(r.model->ooms.item[0].live_bytes, MIB);
	assert_int_equal(r.model->ooms.item[0].recovered, -1);
	replay_free(&r);
}

static void the_same_number_as_handle_pointer_and_array_is_three_blocks(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 1);
	synth_call(r.synth, 1, "cuMemCreate", .address = 0x1000, .bytes = 2);
	synth_call(r.synth, 1, "cudaMallocArray", .address = 0x1000, .bytes = 4);
	synth_call(r.synth, 1, "cudaHostRegister", .address = 0x1000, .bytes = 8, .device = -1);
	synth_call(r.synth, 1, "cudaFreeArray", .address = 0x1000);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 1, 0, 0, 1);
	expect_row(&r, SL_KIND_vmm, 0, 1, 0, 0, 2);
	expect_row(&r, SL_KIND_array, 0, 1, 1, 0, 0);
	expect_row(&r, SL_KIND_host_registered, -1, 1, 0, 0, 8);
	replay_free(&r);
}

/* Physical memory ends with its last release and last unmap, in whatever order they come. */
static void vmm_memory_lives_until_last_release_and_last_unmap(void **state)
{
	static const char *const orders[] = {"RU", "UR", "tRUR", "tRRU", "tURR", "mRUV", "mUVR", "mURV", "mtURRV"};

	for (size_t i = 0; i < SL_COUNT(orders); i++) {
		struct replay r;
		size_t length = strlen(orders[i]);

		replay_begin(&r);
		synth_call(r.synth, 1, "cuMemCreate", .address = 7, .bytes = 2 * MIB);
		synth_call(r.synth, 1, "cuMemMap", .address = 0x100000, .bytes = 2 * MIB, .object = 7);
		for (size_t k = 0; k < length; k++) {
			if (orders[i][k] == 'R')
				synth_call(r.synth, 1, "cuMemRelease", .address = 7);
			else if (orders[i][k] == 'U')
				synth_call(r.synth, 1, "cuMemUnmap", .address = 0x100000, .bytes = 2 * MIB);
			else if (orders[i][k] == 'V')
				synth_call(r.synth, 1, "cuMemUnmap", .address = 0x900000, .bytes = 2 * MIB);
			else if (orders[i][k] == 't')
				synth_call(r.synth, 1, "cuMemRetainAllocationHandle", .address = 7);
			else
				synth_call(r.synth, 1, "cuMemMap", .address = 0x900000, .bytes = 2 * MIB, .object = 7);
			if (k + 2 == length) { /* one step before the end the memory must still be there: a peak is made here */
				synth_call(r.synth, 1, "cudaMalloc", .address = 0x5000, .bytes = MIB);
				synth_call(r.synth, 1, "cudaFree", .address = 0x5000);
			}
		}
		replay_end(&r, SYNTH_COMPLETED);
		expect_row(&r, SL_KIND_vmm, 0, 1, 1, 0, 0);
		assert_int_equal(r.model->devices[1]->known_peak, 3 * MIB);
		assert_int_equal(r.model->unknown_frees, 0);
		replay_free(&r);
	}
}

static void a_handle_number_given_again_while_its_old_memory_is_mapped_is_another_block(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cuMemCreate", .address = 7, .bytes = 2 * MIB);
	synth_call(r.synth, 1, "cuMemMap", .address = 0x100000, .bytes = 2 * MIB, .object = 7);
	synth_call(r.synth, 1, "cuMemRelease", .address = 7);
	synth_call(r.synth, 1, "cuMemCreate", .address = 7, .bytes = 4 * MIB);
	synth_call(r.synth, 1, "cuMemRelease", .address = 7);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_vmm, 0, 2, 1, 0, 2 * MIB);
	replay_free(&r);
}

static void one_unmap_ends_all_mappings_in_its_range(void **state)
{
	struct replay r;

	replay_begin(&r);
	for (uint64_t i = 0; i < 8; i++) {
		synth_call(r.synth, 1, "cuMemCreate", .address = 10 + i, .bytes = MIB);
		synth_call(r.synth, 1, "cuMemMap", .address = 0x100000 * (i + 1), .bytes = MIB, .object = 10 + i);
		synth_call(r.synth, 1, "cuMemRelease", .address = 10 + i);
	}
	synth_call(r.synth, 1, "cuMemUnmap", .address = 0x100000, .bytes = 6 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_vmm, 0, 8, 6, 0, 2 * MIB);
	replay_free(&r);
}

static void a_context_takes_what_was_made_in_it_and_nothing_else(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x1000, .bytes = 1, .context = 0xc1);
	synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x2000, .bytes = 2, .context = 0xc2);
	synth_call(r.synth, 1, "cudaMallocArray", .address = 0x3000, .bytes = 4, .context = 0xc1);
	synth_call(r.synth, 1, "cudaMallocHost", .address = 0x4000, .bytes = 8, .device = -1, .context = 0xc1);
	synth_call(r.synth, 1, "cuMemCreate", .address = 0x5000, .bytes = 16, .context = 0xc1);
	synth_call(r.synth, 1, "cuCtxDestroy_v2", .context = 0xc1);
	synth_call(r.synth, 1, "cuMemFree_v2", .address = 0x1000, .result = 709);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 2, 0, 1, 2);
	expect_row(&r, SL_KIND_array, 0, 1, 0, 1, 0);
	expect_row(&r, SL_KIND_host_pinned, -1, 1, 0, 1, 0);
	expect_row(&r, SL_KIND_vmm, 0, 1, 0, 0, 16);
	replay_free(&r);
}

static void only_the_last_release_of_a_primary_context_ends_it(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cuDevicePrimaryCtxRetain", .context = 0xc1);
	synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x1000, .bytes = 1, .context = 0xc1);
	synth_call(r.synth, 1, "cuDevicePrimaryCtxRelease_v2", .context = 0xc1);
	synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x2000, .bytes = 2, .context = 0xc1);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 2, 0, 0, 3);
	replay_free(&r);
	replay_begin(&r);
	synth_call(r.synth, 1, "cuDevicePrimaryCtxRetain", .context = 0xc1);
	synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x1000, .bytes = 1, .context = 0xc1);
	synth_call(r.synth, 1, "cuDevicePrimaryCtxRelease_v2", .extra = 1);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 1, 0, 1, 0);
	replay_free(&r);
}

static void a_device_reset_takes_its_own_device_only(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 1, .device = 0);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = 2, .device = 1);
	synth_call(r.synth, 1, "cudaDeviceReset", .device = 0);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 1, 0, 1, 0);
	expect_row(&r, SL_KIND_device, 1, 1, 0, 0, 2);
	replay_free(&r);
}

static void a_device_reset_ends_the_primary_context_and_not_the_programs_own_that_is_current(void **state)
{
	for (int retained = 0; retained < 2; retained++) {
		struct replay r;

		replay_begin(&r);
		if (retained)
			synth_call(r.synth, 1, "cuDevicePrimaryCtxRetain", .context = 0xc1);
		synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x1000, .bytes = 1, .context = 0xc1);
		synth_call(r.synth, 1, "cuCtxCreate_v2", .context = 0xc2);
		synth_call(r.synth, 1, "cuMemAlloc_v2", .address = 0x2000, .bytes = 2, .context = 0xc2);
		synth_call(r.synth, 1, "cudaDeviceReset", .device = 0, .context = 0xc2);
		replay_end(&r, SYNTH_COMPLETED);
		expect_row(&r, SL_KIND_device, 0, 2, 0, retained, retained ? 2 : 3);
		replay_free(&r);
	}
}

static void at_equal_stamps_a_free_comes_before_an_allocation_of_another_thread(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 2, "cudaMalloc", .address = 0x1000, .bytes = MIB, .time_ns = SYNTH_START_NS + 100);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB, .time_ns = SYNTH_START_NS + 500);
	synth_call(r.synth, 2, "cudaFree", .address = 0x1000, .time_ns = SYNTH_START_NS + 500);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 2, 1, 0, MIB);
	assert_int_equal(replay_row(&r, SL_KIND_device, 0)->peak_bytes, MIB);
	replay_free(&r);
}

/* The outer call comes first in the ring and takes effect last. */
static void a_call_inside_another_takes_effect_before_it(void **state)
{
	struct replay r;
	uint64_t t = SYNTH_START_NS + 1000;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 1, .time_ns = t + 1000, .duration_ns = 1000);
	synth_call(r.synth, 1, "cuDevicePrimaryCtxRetain", .context = 0xc1, .time_ns = t + 500, .duration_ns = 100);
	synth_call(r.synth, 2, "cudaMalloc", .address = 0x2000, .bytes = 2, .time_ns = t + 700);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(replay_row(&r, SL_KIND_device, 0)->peak_at_ns, t + 1000);
	assert_int_equal(r.model->first_ns, t + 500);
	replay_free(&r);
}

static void ipc_memory_opened_twice_is_one_block_closed_by_the_second_close(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaIpcOpenMemHandle", .address = 0x1000, .bytes = MIB);
	synth_call(r.synth, 1, "cudaIpcOpenMemHandle", .address = 0x1000, .bytes = MIB);
	synth_call(r.synth, 1, "cudaIpcCloseMemHandle", .address = 0x1000);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_imported, 0, 1, 0, 0, MIB);
	assert_int_equal(r.model->devices[1] ? r.model->devices[1]->known_bytes : 0, 0);
	replay_free(&r);
}

static void a_graphics_resource_is_one_block_however_often_it_is_asked_for_and_one_call_unmaps_several(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cuGraphicsResourceGetMappedPointer_v2", .address = 0x1000, .bytes = MIB, .object = 7);
	synth_call(r.synth, 1, "cuGraphicsResourceGetMappedPointer_v2", .address = 0x1000, .bytes = MIB, .object = 7);
	synth_call(r.synth, 1, "cuGraphicsResourceGetMappedPointer_v2", .address = 0x2000, .bytes = MIB, .object = 8);
	synth_call(r.synth, 1, "cuGraphicsResourceGetMappedPointer_v2", .address = 0x3000, .bytes = MIB, .object = 9);
	synth_call(r.synth, 1, "cuGraphicsUnmapResources", .object = 7, .extra = 2);
	synth_call(r.synth, 1, "cuGraphicsUnmapResources_more", .object = 8);
	synth_call(r.synth, 1, "cuGraphicsUnmapResources", .object = 10, .extra = 1); /* nobody asked where it was */
	synth_call(r.synth, 1, "cuGraphicsUnmapResources", .object = 9, .extra = 1, .result = 4);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_imported, 0, 3, 2, 0, MIB);
	assert_int_equal(r.model->unknown_frees, 0);
	replay_free(&r);
}

static void graph_memory_goes_with_graph_and_executables_or_a_launched_free_node(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cuGraphAddMemAllocNode", .address = 0x1000, .bytes = 1, .object = 9);
	synth_call(r.synth, 1, "cuGraphAddMemAllocNode", .address = 0x2000, .bytes = 2, .object = 9);
	synth_call(r.synth, 1, "cuGraphAddMemFreeNode", .address = 0x1000, .object = 9);
	synth_call(r.synth, 1, "cuGraphInstantiate_v2", .address = 0xe, .object = 9);
	synth_call(r.synth, 1, "cuGraphDestroy", .address = 9);
	synth_call(r.synth, 1, "cuGraphLaunch", .address = 0xe);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_graph, 0, 2, 0, 1, 2);
	replay_free(&r);
	replay_begin(&r);
	synth_call(r.synth, 1, "cuGraphAddMemAllocNode", .address = 0x1000, .bytes = 1, .object = 9);
	synth_call(r.synth, 1, "cuGraphInstantiate_v2", .address = 0xe, .object = 9);
	synth_call(r.synth, 1, "cuGraphDestroy", .address = 9);
	synth_call(r.synth, 1, "cuGraphExecDestroy", .address = 0xe);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_graph, 0, 1, 0, 1, 0);
	replay_free(&r);
}

static void what_a_launch_left_outlives_the_graph_and_is_made_again_by_the_launch_after_its_free(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cuGraphAddMemAllocNode", .address = 0x1000, .bytes = 1, .object = 9);
	synth_call(r.synth, 1, "cuGraphAddMemAllocNode", .address = 0x2000, .bytes = 2, .object = 9);
	synth_call(r.synth, 1, "cuGraphAddMemFreeNode", .address = 0x1000, .object = 9);
	synth_call(r.synth, 1, "cuGraphInstantiate_v2", .address = 0xe, .object = 9);
	synth_call(r.synth, 1, "cuGraphLaunch", .address = 0xe);
	synth_call(r.synth, 1, "cuMemFree_v2", .address = 0x2000);
	synth_call(r.synth, 1, "cuGraphLaunch", .address = 0xe);
	synth_call(r.synth, 1, "cuGraphExecDestroy", .address = 0xe);
	synth_call(r.synth, 1, "cuGraphDestroy", .address = 9);
	replay_end(&r, SYNTH_COMPLETED);
	expect_row(&r, SL_KIND_graph, 0, 3, 1, 1, 2);
	assert_int_equal(r.model->unknown_frees, 0);
	replay_free(&r);
}

static void reserved_bytes_fall_when_the_driver_gets_a_segment_back(void **state)
{
	struct replay r;
	const struct sl_torch *torch;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x900000, .bytes = 3 * MIB); /* not PyTorch's */
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x10000000, .bytes = 20 * MIB);
	synth_call(r.synth, 1, "block_alloc", .address = 0x10000000, .bytes = MIB, .extra = MIB, .extra2 = 20 * MIB);
	synth_call(r.synth, 1, "block_alloc", .address = 0x10200000, .bytes = MIB, .extra = 2 * MIB, .extra2 = 20 * MIB);
	synth_call(r.synth, 1, "block_free", .address = 0x10000000, .bytes = MIB, .extra = MIB, .extra2 = 20 * MIB);
	synth_call(r.synth, 1, "block_free", .address = 0x10200000, .bytes = MIB, .extra = 0, .extra2 = 20 * MIB);
	synth_call(r.synth, 1, "cudaFree", .address = 0x10000000);
	synth_call(r.synth, 1, "cudaFree", .address = 0x900000);
	replay_end(&r, SYNTH_COMPLETED);
	torch = &r.model->devices[1]->torch;
	assert_int_equal(torch->events, 4);
	assert_int_equal(torch->reserved_bytes, 0);
	assert_int_equal(torch->peak_reserved_bytes, 20 * MIB);
	assert_int_equal(torch->peak_allocated_bytes, 2 * MIB);
	assert_int_equal(torch->live_blocks, 0);
	expect_row(&r, SL_KIND_device, 0, 2, 2, 0, 0);
	replay_free(&r);
}

static void a_retry_that_works_is_recovered_and_pytorchs_own_report_is_not(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .bytes = 8 * MIB, .result = 2);
	synth_call(r.synth, 2, "cudaMalloc", .address = 0x2000, .bytes = 8 * MIB);
	synth_call(r.synth, 1, "cudaFree", .address = 0x2000);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = 8 * MIB);
	synth_call(r.synth, 1, "cudaMalloc", .bytes = 9 * MIB, .result = 2);
	synth_call(r.synth, 1, "cudaMalloc", .bytes = 9 * MIB, .result = 2);
	synth_call(r.synth, 1, "block_oom", .bytes = 9 * MIB, .extra = 0, .extra2 = 0);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->ooms.count, 3);
	assert_int_equal(r.model->ooms.item[0].recovered, 1);
	assert_int_equal(r.model->ooms.item[1].recovered, 0);
	assert_int_equal(r.model->ooms.item[2].recovered, 0);
	assert_int_equal(r.model->ooms.item[1].group, r.model->ooms.item[2].group);
	assert_int_equal(r.model->devices[1]->torch.ooms, 1);
	replay_free(&r);
}

/* A program catches PyTorch's error and makes a smaller tensor at that line, or at another one. */
static void a_smaller_tensor_at_the_line_that_failed_is_a_recovery(void **state)
{
	static const char *const line[] = {"step"};

	for (int same = 0; same < 2; same++) {
		struct replay r;
		uint32_t failed, next;

		replay_begin(&r);
		failed = synth_python(r.synth, 1, line, "train.py", 10);
		next = same ? failed : synth_python(r.synth, 1, line, "save.py", 90);
		synth_call(r.synth, 1, "cudaMalloc", .bytes = 64 * MIB, .result = 2, .python = failed);
		synth_call(r.synth, 1, "cudaMalloc", .bytes = 64 * MIB, .result = 2, .python = failed);
		synth_call(r.synth, 1, "block_oom", .bytes = 64 * MIB, .extra = 0, .extra2 = 64 * MIB, .python = failed);
		synth_call(r.synth, 1, "block_alloc", .address = 0x1000, .bytes = 32 * MIB, .extra = 32 * MIB, .extra2 = 64 * MIB,
			   .python = next);
		replay_end(&r, SYNTH_COMPLETED);
		assert_int_equal(r.model->ooms.count, 2);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(r.model->ooms.item[i].less_bytes, same ? 32 * MIB : 0);
			assert_int_equal(sl_oom_got_over(&r.model->ooms.item[i]), same);
		}
		replay_free(&r);
	}
}

/* Expandable segments are asked for page by page: here the retry gets its first page and fails at the second. */
static void a_page_got_in_a_retry_that_failed_later_is_no_recovery(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "block_alloc", .address = 0x1000, .bytes = MIB, .extra = MIB, .extra2 = 2 * MIB);
	synth_call(r.synth, 1, "cuMemCreate", .bytes = 20 * MIB, .result = 2);
	synth_call(r.synth, 1, "cuMemCreate", .address = 7, .bytes = 20 * MIB);
	synth_call(r.synth, 1, "cuMemCreate", .bytes = 20 * MIB, .result = 2);
	synth_call(r.synth, 1, "cuMemRelease", .address = 7);
	synth_call(r.synth, 1, "block_oom", .bytes = 40 * MIB, .extra = MIB, .extra2 = 2 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->ooms.count, 2);
	assert_int_equal(r.model->ooms.item[0].recovered, 0);
	assert_int_equal(r.model->ooms.item[1].recovered, 0);
	assert_int_equal(r.model->ooms.item[0].group, r.model->ooms.item[1].group);
	assert_int_equal(r.model->ooms.item[0].requested_bytes, 20 * MIB);
	assert_int_equal(r.model->ooms.item[0].asked_bytes, 40 * MIB);
	replay_free(&r);
}

/* One place makes a pool's segment and a block that is no segment; PyTorch has memory on the device too. */
static void blocks_of_a_pool_and_the_rest_are_the_segment_beside_pytorch_s(void **state)
{
	struct replay r;
	const struct sl_torch *torch;
	uint64_t in_use = 0, rest;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x10000000, .bytes = 20 * MIB);
	synth_call(r.synth, 1, "block_alloc", .address = 0x10000000, .bytes = 6 * MIB, .extra = 6 * MIB, .extra2 = 20 * MIB);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x20000000, .bytes = 10 * MIB);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x30000000, .bytes = 3 * MIB);
	synth_call(r.synth, 1, "pool_alloc", .address = 0x20000000 + MIB, .bytes = 4 * MIB);
	synth_call(r.synth, 1, "pool_alloc", .address = 0x20000000 + 5 * MIB, .bytes = 2 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	torch = &r.model->devices[1]->torch;
	assert_int_equal(torch->pool_allocated_bytes, 6 * MIB);
	assert_int_equal(torch->pool_reserved_bytes, 10 * MIB);
	assert_int_equal(torch->allocated_bytes, 12 * MIB);
	assert_int_equal(torch->reserved_bytes, 30 * MIB);
	for (size_t i = 0; i < r.model->sites.count; i++)
		if (r.model->sites.item[i].kind == SL_KIND_block || !r.model->sites.item[i].pooled)
			in_use += r.model->sites.item[i].live_bytes;
	assert_string_equal(sl_model_unused(torch, &rest), "kept by PyTorch, or unnamed in pools");
	assert_int_equal(rest, 18 * MIB);
	assert_int_equal(in_use, 12 * MIB + 20 * MIB + 3 * MIB); /* PyTorch's segment is no site of a pool's */
	replay_free(&r);
}

static void the_end_of_a_segment_is_that_of_its_blocks_whatever_lies_across_it(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x10000000, .bytes = 64 * MIB);
	synth_call(r.synth, 1, "pool_alloc", .address = 0x10000000 + MIB, .bytes = MIB);
	/* a damaged trace may hold these, which no driver hands out: one inside the first, one around it to the end of all addresses */
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x10100000, .bytes = 2 * MIB);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x0f000000, .bytes = UINT64_MAX - MIB);
	synth_call(r.synth, 1, "pool_alloc", .address = 0x0f000000, .bytes = MIB);
	synth_call(r.synth, 1, "pool_alloc", .address = 0x20000000, .bytes = MIB);
	synth_call(r.synth, 1, "cudaFree", .address = 0x10000000);
	synth_call(r.synth, 1, "cudaFree", .address = 0x10100000);
	synth_call(r.synth, 1, "cudaFree", .address = 0x0f000000);
	synth_call(r.synth, 1, "pool_drop", .address = 0, .bytes = UINT64_MAX);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->devices[1]->torch.live_blocks, 0);
	assert_int_equal(r.model->devices[1]->torch.pool_allocated_bytes, 0);
	assert_int_equal(r.model->devices[1]->torch.pool_reserved_bytes, 0);
	replay_free(&r);
}

static void what_a_site_held_at_the_peak_is_exact(void **state)
{
	struct replay r;
	uint64_t at_peak = 0;

	replay_begin(&r);
	unsigned label = synth_text(r.synth, "a"), other = synth_text(r.synth, "b");
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 5 * MIB, .label = label);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = 7 * MIB, .label = other); /* 12: the peak */
	synth_call(r.synth, 1, "cudaFree", .address = 0x1000);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x3000, .bytes = 4 * MIB, .label = label);
	synth_call(r.synth, 1, "cudaFree", .address = 0x2000);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->devices[1]->known_peak, 12 * MIB);
	for (size_t i = 0; i < r.model->sites.count; i++) {
		const struct sl_site *site = &r.model->sites.item[i];

		assert_int_equal(sl_model_site_at_peak(r.model, site), site->label == label ? 5 * MIB : 7 * MIB);
		at_peak += sl_model_site_at_peak(r.model, site);
	}
	assert_int_equal(at_peak, 12 * MIB);
	replay_free(&r);
}

static void what_pytorch_held_at_the_peak_has_the_block_that_made_it(void **state)
{
	struct replay r;
	uint64_t at_peak = 0;

	replay_begin(&r);
	for (uint64_t i = 1; i <= 2; i++) {
		synth_call(r.synth, 1, "cudaMalloc", .address = i << 32, .bytes = 20 * MIB);
		synth_call(r.synth, 1, "block_alloc", .address = i << 32, .bytes = 8 * i * MIB, .extra = (i == 1 ? 8 : 24) * MIB,
			   .extra2 = 20 * i * MIB);
	}
	synth_call(r.synth, 1, "block_free", .address = 1ull << 32, .bytes = 8 * MIB, .extra = 16 * MIB, .extra2 = 40 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	for (uint32_t i = 0; i < r.model->sites.count; i++)
		if (r.model->sites.item[i].kind == SL_KIND_block)
			at_peak += sl_model_site_at_peak(r.model, &r.model->sites.item[i]);
	assert_int_equal(at_peak, 24 * MIB);
	assert_int_equal(r.model->devices[1]->torch_at_peak.allocated_bytes, 24 * MIB);
	assert_int_equal(r.model->devices[1]->torch_at_peak.reserved_bytes, 40 * MIB);
	replay_free(&r);
}

static void a_range_knows_memory_before_after_and_peak_inside(void **state)
{
	const struct sl_label *label;
	struct replay r;

	replay_begin(&r);
	unsigned text = synth_text(r.synth, "step_#");
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB);
	for (uint64_t i = 0; i < 10; i++) {
		synth_call(r.synth, 1, "range_push", .label = text, .extra = i);
		synth_call(r.synth, 2, "cudaMalloc", .address = 0x2000, .bytes = 8 * MIB);
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x10000 + i, .bytes = MIB);
		synth_call(r.synth, 2, "cudaFree", .address = 0x2000);
		synth_call(r.synth, 1, "range_pop");
	}
	synth_call(r.synth, 1, "range_pop"); /* one too many */
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->labels.count, 1);
	label = &r.model->labels.item[0];
	assert_int_equal(label->entries, 10);
	assert_int_equal(label->before_bytes, MIB);
	assert_int_equal(label->after_bytes, 11 * MIB);
	assert_int_equal(label->peak_bytes, 19 * MIB);
	assert_int_equal(label->blocks_created, 20);
	assert_int_equal(label->blocks_freed, 10);
	assert_int_equal(label->freed_bytes, 80 * MIB);
	replay_free(&r);
}

static uint64_t allocated_in(const struct sl_model *model, unsigned text)
{
	for (size_t i = 0; i < model->labels.count; i++)
		if (model->labels.item[i].text == text)
			return model->labels.item[i].allocated_bytes / MIB;
	return UINT64_MAX;
}

static void a_block_counts_for_the_ranges_of_its_thread_and_of_the_one_it_works_for(void **state)
{
	struct replay r;

	replay_begin(&r);
	unsigned step = synth_text(r.synth, "step_#"), load = synth_text(r.synth, "load"), op = synth_text(r.synth, "op"),
		 backward = synth_text(r.synth, "backward_#");
	synth_call(r.synth, 1, "range_push", .label = step);
	synth_call(r.synth, 3, "cudaMalloc", .address = 0x1000, .bytes = 64 * MIB); /* counts for thread 1's range, the only one */
	synth_call(r.synth, 2, "range_push", .label = load);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = MIB, .label = step);
	synth_call(r.synth, 2, "cudaMalloc", .address = 0x3000, .bytes = 2 * MIB, .label = load);
	synth_call(r.synth, 3, "cudaMalloc", .address = 0x4000, .bytes = 4 * MIB); /* two threads have ranges: counts for neither */
	synth_call(r.synth, 1, "range_push", .label = backward);
	synth_call(r.synth, 4, "cudaMalloc", .address = 0x5000, .bytes = 8 * MIB, .label = backward); /* autograd's, for thread 1 */
	synth_call(r.synth, 2, "range_pop");
	synth_call(r.synth, 4, "range_push", .label = op);
	synth_call(r.synth, 4, "cudaMalloc", .address = 0x6000, .bytes = 16 * MIB, .label = op, .flags = SL_FLAG_borrowed);
	synth_call(r.synth, 4, "cudaMalloc", .address = 0x7000, .bytes = 32 * MIB, .label = op);
	synth_call(r.synth, 4, "range_pop");
	synth_call(r.synth, 1, "range_pop");
	synth_call(r.synth, 1, "range_pop");
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(allocated_in(r.model, step), 64 + 1 + 8 + 16);
	assert_int_equal(allocated_in(r.model, load), 2);
	assert_int_equal(allocated_in(r.model, backward), 8 + 16);
	assert_int_equal(allocated_in(r.model, op), 16 + 32);
	replay_free(&r);
}

static void a_size_that_is_known_late_is_in_every_sum(void **state)
{
	const struct sl_row *row;
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaIpcOpenMemHandle", .address = 0x77);
	synth_call(r.synth, 1, "cuMemMap", .address = 0x10000, .bytes = 16 * MIB, .object = 0x77);
	replay_end(&r, SYNTH_COMPLETED);
	row = sl_model_row(r.model, SL_KIND_imported, 1);
	assert_int_equal(row->live_bytes, 16 * MIB);
	assert_int_equal(sl_timeline_max(&r.model->timeline, row->line, 0, UINT64_MAX), 16 * MIB);
	assert_int_equal(r.model->sites.item[0].total_bytes, 16 * MIB);
	assert_int_equal(r.model->tracks.item[r.model->sites.item[0].track].live_bytes, 16 * MIB);
	replay_free(&r);
}

static void ranges_of_nccl_say_what_each_communicator_moved_and_when(void **state)
{
	struct replay r;

	replay_begin(&r);
	unsigned reduce = synth_text(r.synth, "NCCL:ncclAllReduce"), group = synth_text(r.synth, "NCCL:ncclGroupStart");
	for (uint64_t i = 0; i < 1000; i++) {
		synth_call(r.synth, 1, "range_push", .label = group);
		synth_call(r.synth, 1, "range_pop", .label = group);
		synth_call(r.synth, 1, "range_push", .label = reduce, .address = 0xabc + i % 2, .bytes = 100);
		synth_call(r.synth, 1, "range_pop", .label = reduce);
	}
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->traffic.count, 2);
	assert_int_equal(r.model->traffic.item[1].communicator, 0xabd);
	assert_int_equal(r.model->traffic.item[1].collectives, 500);
	assert_int_equal(r.model->traffic.item[1].bytes, 50000);
	/* A bounded number of collectives is kept, evenly over the whole run. */
	assert_int_equal(r.model->collective_stride, 4);
	assert_int_equal(r.model->collectives.count, 250);
	assert_string_equal(r.model->collectives.item[249].name, "NCCL:ncclAllReduce");
	assert_true(r.model->collectives.item[249].begin_ns > r.model->collectives.item[248].end_ns);
	replay_free(&r);
}

static void an_entry_that_ran_out_of_memory_is_no_point_of_its_growth(void **state)
{
	struct replay r;

	replay_begin(&r);
	unsigned text = synth_text(r.synth, "step_#");
	for (uint64_t i = 0; i < 10; i++) {
		synth_call(r.synth, 1, "range_push", .label = text, .extra = i);
		synth_call(r.synth, 1, "cudaMalloc", .bytes = 8 * MIB, .result = i >= 8 ? 2 : 0,
			   .address = i >= 8 ? 0 : 0x10000 * i);
		if (i == 8) /* the program recovers */
			synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000000, .bytes = 8 * MIB);
		synth_call(r.synth, 1, "range_pop");
	}
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->labels.item[0].entries, 10);
	assert_int_equal(r.model->labels.item[0].points, 7); /* the first two of ten are no points either */
	replay_free(&r);
}

static void an_event_of_a_kind_that_the_header_does_not_name_is_a_call_without_memory(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 512, .device = 0, .kind = 119);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = 512, .device = 0, .kind = 255);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x3000, .bytes = 512, .device = 0);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(sl_model_row(r.model, SL_KIND_device, 1)->allocations, 1);
	assert_int_equal(r.model->apis[synth_api("cudaMalloc")].calls, 3);
	replay_free(&r);
}

static void of_ranges_that_nobody_closes_the_newest_are_kept(void **state)
{
	struct replay r;

	replay_begin(&r);
	unsigned leaky = synth_text(r.synth, "opened"), closed = synth_text(r.synth, "closed");
	for (uint64_t i = 0; i < 100000; i++) {
		synth_call(r.synth, 1, "range_push", .label = leaky);
		synth_call(r.synth, 1, "range_push", .label = closed);
		synth_call(r.synth, 1, "range_pop", .label = closed);
	}
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->labels.item[0].entries, 0);
	assert_int_equal(r.model->labels.item[1].entries, 100000);
	assert_true(r.model->threads.item[1]->ranges.count <= SL_OPEN_RANGES_MAX);
	replay_free(&r);
}

static void of_more_labels_than_single_ranges_the_first_ones_are_kept(void **state)
{
	struct replay r;
	char name[16];

	replay_begin(&r);
	for (unsigned i = 0; i < SL_PHASES_MAX + 200; i++) {
		snprintf(name, sizeof(name), "%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676);
		synth_call(r.synth, 1, "range_push", .label = synth_text(r.synth, name));
		synth_call(r.synth, 1, "range_pop");
	}
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->phases.count, SL_PHASES_MAX);
	assert_true(r.model->phases_level < 64); /* 1 << level must fit in 64 bits */
	replay_free(&r);
}

static void a_pop_closes_the_range_it_names_and_not_the_innermost(void **state)
{
	struct replay r;

	replay_begin(&r);
	unsigned outer = synth_text(r.synth, "step_#"), inner = synth_text(r.synth, "NCCL:ncclAllReduce");
	synth_call(r.synth, 1, "range_push", .label = outer, .extra = 1);
	synth_call(r.synth, 1, "range_push", .label = inner);
	synth_call(r.synth, 1, "range_pop", .label = outer, .extra = 1);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB);
	synth_call(r.synth, 1, "range_pop", .label = outer, .extra = 1); /* one too many */
	synth_call(r.synth, 1, "range_pop", .label = inner);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->labels.count, 2);
	assert_int_equal(r.model->labels.item[0].entries, 1);
	assert_int_equal(r.model->labels.item[0].blocks_created, 0);
	assert_int_equal(r.model->labels.item[1].entries, 1);
	assert_int_equal(r.model->labels.item[1].blocks_created, 1);
	replay_free(&r);
}

static void a_timeline_keeps_every_extreme_however_long_the_run(void **state)
{
	const struct sl_line *line;
	struct replay r;
	uint64_t max = 0;

	replay_begin(&r);
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t t = SYNTH_START_NS + (i + 1) * 1000000;

		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = i == 777 ? 5 * MIB : MIB, .time_ns = t);
		synth_call(r.synth, 1, "cudaFree", .address = 0x1000, .time_ns = t + 1000);
	}
	replay_end(&r, SYNTH_COMPLETED);
	line = sl_timeline_find(&r.model->timeline, SL_LINE_KNOWN, 0, 0);
	assert_non_null(line);
	assert_in_range(line->bin, SL_TIMELINE_BINS / 2 - 1, SL_TIMELINE_BINS - 1);
	for (uint32_t i = line->first; i <= line->bin; i++) {
		assert_int_equal(line->bins[i].min, 0);
		if (line->bins[i].max > max) {
			max = line->bins[i].max;
			assert_true(max == MIB || line->bins[i].max_ns == SYNTH_START_NS + 778 * 1000000ull);
		}
	}
	assert_int_equal(max, 5 * MIB);
	replay_free(&r);
}

/* The table against a plain array, over many adds and removes. */
static void a_table_holds_exactly_what_was_put_in_and_not_taken_out(void **state)
{
	static uint8_t truth[4096];
	struct sl_table table = {0};
	uint64_t random = 88172645463325252ull, count = 0;

	for (unsigned i = 0; i < 200000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		unsigned at = random % SL_COUNT(truth);
		uint64_t address = 0x7f0000000000ull + at * 512ull;
		struct sl_live *live = sl_table_find(&table, address);

		assert_int_equal(live != NULL, truth[at]);
		if (live)
			sl_table_remove(&table, live);
		else
			sl_table_add(&table, address);
		count += truth[at] ? -1 : 1;
		truth[at] = !truth[at];
		assert_int_equal(table.count, count);
	}
	sl_table_free(&table);
}

/* A sample taken during calls understates the context; the first one taken between calls corrects it, and later ones do not raise it. */
static void what_a_context_takes_is_known_once_nothing_moves(void **state)
{
	static const struct {
		uint64_t sampled, context; /* MiB */
	} steps[] = {{300, 200}, {400, 300}, {450, 300}, {390, 290}};

	for (unsigned count = 1; count <= sizeof(steps) / sizeof(*steps); count++) {
		const struct sl_device_state *device;
		struct replay r;

		replay_begin(&r);
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 100 * MIB, .time_ns = SYNTH_START_NS + 5000,
			   .duration_ns = 2000);
		for (unsigned i = 0; i < count; i++)
			synth_own_sample(r.synth, SYNTH_START_NS + 5000 + i * 10000, SYNTH_START_NS + 6000 + i * 10000, 0,
					 steps[i].sampled * MIB, 8192 * MIB);
		replay_end(&r, SYNTH_COMPLETED);
		device = r.model->devices[1];
		assert_non_null(device);
		assert_int_equal(device->context_bytes, steps[count - 1].context * MIB);
		assert_string_equal(sl_sample_wait_context_bound(device), count == 1 ? "about" : "at most");
		replay_free(&r);
	}
}

/* An out-of-memory error has the context that a sample taken during calls shows; the next sample corrects both. */
static void an_error_has_the_context_that_the_device_has(void **state)
{
	const struct sl_device_state *device;
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 100 * MIB, .time_ns = SYNTH_START_NS + 5000,
		   .duration_ns = 2000);
	synth_call(r.synth, 1, "cudaMalloc", .bytes = 9000 * MIB, .result = 2, .time_ns = SYNTH_START_NS + 8000,
		   .duration_ns = 100);
	synth_own_sample(r.synth, SYNTH_START_NS + 5000, SYNTH_START_NS + 6000, 0, 444 * MIB, 8192 * MIB);
	synth_own_sample(r.synth, SYNTH_START_NS + 15000, SYNTH_START_NS + 16000, 0, 400 * MIB, 8192 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	device = r.model->devices[1];
	assert_int_equal(r.model->ooms.count, 1);
	assert_int_equal(device->context_bytes, 300 * MIB);
	assert_int_equal(r.model->ooms.item[0].context_bytes, 300 * MIB);
	replay_free(&r);
}

static void a_context_that_a_reset_ended_was_there_at_the_peak(void **state)
{
	const struct sl_device_state *device;
	struct replay r;

	replay_begin(&r);
	for (unsigned life = 0; life < 3; life++) {
		uint64_t begin = SYNTH_START_NS + life * 100000;

		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 100 * MIB, .time_ns = begin + 1000,
			   .duration_ns = 500);
		synth_own_sample(r.synth, begin + 4000, begin + 5000, 0, (400 + life) * MIB, 8192 * MIB);
		synth_call(r.synth, 1, "cudaDeviceReset", .time_ns = begin + 9000, .duration_ns = 500);
	}
	replay_end(&r, SYNTH_COMPLETED);
	device = r.model->devices[1];
	assert_int_equal(device->hidden_peak_bytes, 302 * MIB);
	assert_int_equal(device->context_bytes, 0);
	assert_int_equal(device->parts.count, 1);
	assert_int_equal(device->parts.item[0].peak_bytes, 300 * MIB); /* a context made again after a reset takes no more */
	replay_free(&r);
}

/* A sample may or may not include the block that is asked for meanwhile, so the larger context is nearer to the truth. */
static void a_context_that_a_sample_understated_is_corrected_after_a_reset(void **state)
{
	struct replay r;

	replay_begin(&r);
	for (unsigned life = 0; life < 2; life++) {
		uint64_t begin = SYNTH_START_NS + life * 100000;

		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 100 * MIB, .time_ns = begin + 1000,
			   .duration_ns = 500);
		synth_own_sample(r.synth, begin + 4000, begin + 5000, 0, 400 * MIB, 8192 * MIB);
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x10000000, .bytes = (life ? 1 : 4) * MIB, .time_ns = begin + 4200,
			   .duration_ns = 1500);
		synth_call(r.synth, 1, "cudaDeviceReset", .time_ns = begin + 9000, .duration_ns = 500);
	}
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->devices[1]->parts.item[0].peak_bytes, 299 * MIB);
	replay_free(&r);
}

/* The driver may have loaded code before the sample although the call returned after it, and unload it after a sample that it began before. */
static void code_is_part_of_the_peak_that_a_sample_during_its_call_shows(void **state)
{
	static const struct {
		uint64_t from, to;
	} samples[] = {{1500, 1600}, {4500, 4600}};

	for (unsigned i = 0; i < SL_COUNT(samples); i++) {
		const struct sl_device_state *device;
		struct replay r;

		replay_begin(&r);
		synth_own_sample(r.synth, SYNTH_START_NS + 100, SYNTH_START_NS + 200, 0, 300 * MIB, 8192 * MIB);
		synth_call(r.synth, 1, "cuModuleLoadData", .address = 0x2000, .extra = 7000 * MIB, .extra2 = 6960 * MIB,
			   .time_ns = SYNTH_START_NS + 2000, .duration_ns = 1000);
		synth_call(r.synth, 1, "cuModuleUnload", .address = 0x2000, .time_ns = SYNTH_START_NS + 4000, .duration_ns = 1000);
		synth_own_sample(r.synth, SYNTH_START_NS + samples[i].from, SYNTH_START_NS + samples[i].to, 0, 340 * MIB,
				 8192 * MIB);
		synth_own_sample(r.synth, SYNTH_START_NS + 9000, SYNTH_START_NS + 9100, 0, 300 * MIB, 8192 * MIB);
		replay_end(&r, SYNTH_COMPLETED);
		device = r.model->devices[1];
		assert_int_equal(device->hidden_peak_bytes, 340 * MIB);
		assert_int_equal(device->parts.count, 2);
		assert_int_equal(device->parts.item[0].peak_bytes, 300 * MIB);
		assert_int_equal(device->parts.item[1].peak_bytes, 40 * MIB);
		assert_int_equal(device->parts.item[1].bytes, 0);
		assert_true(device->parts.item[1].first.time_ns <= device->hidden_peak_ns);
		replay_free(&r);
	}
}

/* 20 blocks of 1.5 MiB may take 2 MiB each, but not memory that was hidden before them. */
static void what_was_hidden_before_blocks_is_not_their_rounding(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x100000, .bytes = 2 * MIB, .time_ns = SYNTH_START_NS + 1000,
		   .duration_ns = 500);
	synth_sample(r.synth, SYNTH_START_NS + 5000, 0, 302 * MIB, 8192 * MIB);
	for (unsigned i = 0; i < 20; i++)
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000000 + 2 * i * MIB, .bytes = 1536 << 10,
			   .time_ns = SYNTH_START_NS + 10000 + i * 1000, .duration_ns = 500);
	synth_sample(r.synth, SYNTH_START_NS + 500000, 0, 334 * MIB, 8192 * MIB); /* 32 MiB of blocks, 2 of rounding */
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->devices[1]->hidden_peak_bytes, 302 * MIB);
	assert_int_equal(r.model->devices[1]->hidden_peak_rounded, 2 * MIB);
	replay_free(&r);
}

/* The sample includes a segment whose call returns only after the sample: the segment is not part of the context. */
static void what_a_call_under_way_took_is_no_context(void **state)
{
	const struct sl_device_state *device;
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 100 * MIB, .time_ns = SYNTH_START_NS + 1000,
		   .duration_ns = 500);
	synth_own_sample(r.synth, SYNTH_START_NS + 4000, SYNTH_START_NS + 5000, 0, 600 * MIB, 8192 * MIB);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = 200 * MIB, .time_ns = SYNTH_START_NS + 6000,
		   .duration_ns = 3000);
	replay_end(&r, SYNTH_COMPLETED);
	device = r.model->devices[1];
	assert_int_equal(device->context_bytes, 300 * MIB);
	assert_int_equal(device->parts.item[0].bytes, 300 * MIB);
	replay_free(&r);
}

/* The sample may be from before or after the segment was allocated, so hidden memory need not have fallen. */
static void a_sample_that_spans_a_segment_tells_of_no_fall_of_what_is_hidden(void **state)
{
	static const struct {
		uint64_t used, hidden; /* MiB */
	} spans[] = {{400, 300}, {500, 300}, {600, 300}, {650, 350}, {350, 250}};

	for (unsigned i = 0; i < SL_COUNT(spans); i++) {
		struct replay r;

		replay_begin(&r);
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 100 * MIB, .time_ns = SYNTH_START_NS + 1000,
			   .duration_ns = 500);
		synth_own_sample(r.synth, SYNTH_START_NS + 4000, SYNTH_START_NS + 5000, 0, 400 * MIB, 8192 * MIB);
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x2000, .bytes = 200 * MIB, .time_ns = SYNTH_START_NS + 9000,
			   .duration_ns = 500);
		synth_own_sample(r.synth, SYNTH_START_NS + 8000, SYNTH_START_NS + 10000, 0, spans[i].used * MIB, 8192 * MIB);
		replay_end(&r, SYNTH_COMPLETED);
		assert_int_equal(r.model->devices[1]->hidden_last_bytes, spans[i].hidden * MIB);
		assert_int_equal(r.model->devices[1]->hidden_peak_bytes, (spans[i].hidden > 300 ? spans[i].hidden : 300) * MIB);
		replay_free(&r);
	}
}

static void a_first_sample_that_spans_a_segment_leaves_what_is_hidden_unknown(void **state)
{
	struct sl_device_state *device;
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 200 * MIB, .time_ns = SYNTH_START_NS + 4500,
		   .duration_ns = 500);
	synth_own_sample(r.synth, SYNTH_START_NS + 4000, SYNTH_START_NS + 5000, 0, 400 * MIB, 8192 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	device = r.model->devices[1];
	assert_true(device->hidden_last_bytes == SL_UNKNOWN && device->hidden_peak_bytes == SL_UNKNOWN);
	replay_free(&r);

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = 200 * MIB, .time_ns = SYNTH_START_NS + 4500,
		   .duration_ns = 500);
	synth_own_sample(r.synth, SYNTH_START_NS + 4000, SYNTH_START_NS + 5000, 0, 400 * MIB, 8192 * MIB);
	synth_own_sample(r.synth, SYNTH_START_NS + 7000, SYNTH_START_NS + 8000, 0, 500 * MIB, 8192 * MIB);
	replay_end(&r, SYNTH_COMPLETED);
	device = r.model->devices[1];
	assert_int_equal(device->hidden_last_bytes, 300 * MIB);
	assert_int_equal(device->hidden_peak_bytes, 300 * MIB);
	replay_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_freed_address_used_again_is_two_allocations),
		cmocka_unit_test(a_free_of_what_is_not_live_counts_as_unknown_and_free_null_as_nothing),
		cmocka_unit_test(a_free_that_is_told_late_leaves_what_has_its_address_now),
		cmocka_unit_test(a_failed_allocation_counts_as_failed_and_a_failed_free_frees_nothing),
		cmocka_unit_test(the_same_number_as_handle_pointer_and_array_is_three_blocks),
		cmocka_unit_test(vmm_memory_lives_until_last_release_and_last_unmap),
		cmocka_unit_test(a_handle_number_given_again_while_its_old_memory_is_mapped_is_another_block),
		cmocka_unit_test(one_unmap_ends_all_mappings_in_its_range),
		cmocka_unit_test(a_context_takes_what_was_made_in_it_and_nothing_else),
		cmocka_unit_test(only_the_last_release_of_a_primary_context_ends_it),
		cmocka_unit_test(a_device_reset_takes_its_own_device_only),
		cmocka_unit_test(a_device_reset_ends_the_primary_context_and_not_the_programs_own_that_is_current),
		cmocka_unit_test(at_equal_stamps_a_free_comes_before_an_allocation_of_another_thread),
		cmocka_unit_test(a_call_inside_another_takes_effect_before_it),
		cmocka_unit_test(ipc_memory_opened_twice_is_one_block_closed_by_the_second_close),
		cmocka_unit_test(a_graphics_resource_is_one_block_however_often_it_is_asked_for_and_one_call_unmaps_several),
		cmocka_unit_test(graph_memory_goes_with_graph_and_executables_or_a_launched_free_node),
		cmocka_unit_test(what_a_launch_left_outlives_the_graph_and_is_made_again_by_the_launch_after_its_free),
		cmocka_unit_test(reserved_bytes_fall_when_the_driver_gets_a_segment_back),
		cmocka_unit_test(a_retry_that_works_is_recovered_and_pytorchs_own_report_is_not),
		cmocka_unit_test(a_smaller_tensor_at_the_line_that_failed_is_a_recovery),
		cmocka_unit_test(a_page_got_in_a_retry_that_failed_later_is_no_recovery),
		cmocka_unit_test(what_a_site_held_at_the_peak_is_exact),
		cmocka_unit_test(what_pytorch_held_at_the_peak_has_the_block_that_made_it),
		cmocka_unit_test(a_range_knows_memory_before_after_and_peak_inside),
		cmocka_unit_test(a_block_counts_for_the_ranges_of_its_thread_and_of_the_one_it_works_for),
		cmocka_unit_test(a_size_that_is_known_late_is_in_every_sum),
		cmocka_unit_test(ranges_of_nccl_say_what_each_communicator_moved_and_when),
		cmocka_unit_test(an_entry_that_ran_out_of_memory_is_no_point_of_its_growth),
		cmocka_unit_test(an_event_of_a_kind_that_the_header_does_not_name_is_a_call_without_memory),
		cmocka_unit_test(of_ranges_that_nobody_closes_the_newest_are_kept),
		cmocka_unit_test(of_more_labels_than_single_ranges_the_first_ones_are_kept),
		cmocka_unit_test(a_pop_closes_the_range_it_names_and_not_the_innermost),
		cmocka_unit_test(blocks_of_a_pool_and_the_rest_are_the_segment_beside_pytorch_s),
		cmocka_unit_test(the_end_of_a_segment_is_that_of_its_blocks_whatever_lies_across_it),
		cmocka_unit_test(what_a_context_takes_is_known_once_nothing_moves),
		cmocka_unit_test(an_error_has_the_context_that_the_device_has),
		cmocka_unit_test(a_context_that_a_reset_ended_was_there_at_the_peak),
		cmocka_unit_test(a_context_that_a_sample_understated_is_corrected_after_a_reset),
		cmocka_unit_test(code_is_part_of_the_peak_that_a_sample_during_its_call_shows),
		cmocka_unit_test(what_was_hidden_before_blocks_is_not_their_rounding),
		cmocka_unit_test(what_a_call_under_way_took_is_no_context),
		cmocka_unit_test(a_sample_that_spans_a_segment_tells_of_no_fall_of_what_is_hidden),
		cmocka_unit_test(a_first_sample_that_spans_a_segment_leaves_what_is_hidden_unknown),
		cmocka_unit_test(a_timeline_keeps_every_extreme_however_long_the_run),
		cmocka_unit_test(a_table_holds_exactly_what_was_put_in_and_not_taken_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
