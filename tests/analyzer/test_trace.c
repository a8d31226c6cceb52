/* SPDX-License-Identifier: MIT */
/* What a reader makes of whole, unfinished and damaged traces. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "replay.h"
#include "analyzer/base/pool.h"
#include "common/maps.h"
#include "common/tracefile.h"

#define MIB (1ull << 20)

/* Two threads, blocks of a few events, all kinds of frames. */
static void fill(struct sl_synth *s, unsigned events)
{
	synth_block_events(s, 5);
	for (unsigned i = 0; i < events; i++) {
		if (i == 3)
			synth_note(s, "a note in between");
		synth_call(s, 1 + i % 2, "cudaMalloc", .address = 0x1000 * (i + 1), .bytes = MIB);
	}
}

static void a_finished_trace_gives_every_event_and_no_damage(void **state)
{
	struct replay r;

	replay_begin(&r);
	fill(r.synth, 101);
	replay_end(&r, SYNTH_COMPLETED);
	assert_int_equal(r.model->events, 101);
	assert_int_equal(r.trace->status, SL_STATUS_COMPLETED);
	assert_false(r.trace->damage.damaged);
	assert_int_equal(r.trace->damage.count, 0);
	assert_int_equal(r.trace->defs.notes.count, 1);
	replay_free(&r);
}

static void a_killed_process_loses_nothing_and_its_call_in_flight_is_named(void **state)
{
	for (unsigned events = 1; events < 24; events++) {
		struct replay r;

		replay_begin(&r);
		fill(r.synth, events);
		synth_in_flight(r.synth, 1, "cudaMalloc", (struct sl_event){.bytes = 8 * MIB});
		synth_call(r.synth, 1, "cuDevicePrimaryCtxRetain", .context = 0xc1); /* made inside it */
		replay_end(&r, SYNTH_KILLED);
		assert_int_equal(r.model->events, events + 1);
		assert_int_equal(replay_row(&r, SL_KIND_device, 0)->allocations, events);
		assert_int_equal(r.trace->status, SL_STATUS_INTERRUPTED);
		assert_false(r.trace->damage.damaged);
		assert_int_equal(r.model->in_flight.count, 1);
		assert_int_equal(r.model->in_flight.item[0].bytes, 8 * MIB);
		assert_int_equal(r.trace->defs.notes.count, events > 3);
		replay_free(&r);
	}
}

static void frees_after_the_footer_are_in_the_ring_and_counted_once(void **state)
{
	struct replay r;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB);
	synth_flush(r.synth);
	synth_call(r.synth, 1, "cudaFree", .address = 0x1000, .flags = SL_FLAG_late);
	replay_end(&r, SYNTH_LATE);
	assert_int_equal(r.trace->status, SL_STATUS_COMPLETED);
	expect_row(&r, SL_KIND_device, 0, 1, 1, 0, 0);
	replay_free(&r);
}

static void without_footer_and_ring_the_status_is_unknown(void **state)
{
	struct replay r;

	replay_begin(&r);
	fill(r.synth, 20);
	replay_end(&r, SYNTH_NO_RING);
	assert_int_equal(r.trace->status, SL_STATUS_UNKNOWN);
	replay_free(&r);
}

static void a_ring_alone_is_a_trace(void **state)
{
	struct replay r;
	char path[256];

	replay_begin(&r);
	synth_note(r.synth, "from the ring");
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB);
	snprintf(path, sizeof(path), "%s", synth_path(r.synth));
	synth_close(r.synth, SYNTH_KILLED);
	assert_int_equal(unlink(path), 0);
	replay_open(&r);
	assert_int_equal(r.model->events, 1);
	assert_int_equal(r.trace->status, SL_STATUS_INTERRUPTED);
	assert_int_equal(r.trace->defs.notes.count, 1);
	replay_free(&r);
}

static void a_ring_whose_lock_is_held_belongs_to_a_living_process(void **state)
{
	struct replay r;
	char path[256];
	int fds[2], fd;
	char byte;

	replay_begin(&r);
	synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000, .bytes = MIB);
	snprintf(path, sizeof(path), "%s/rank-00000-4242.ring", r.folder);
	synth_close(r.synth, SYNTH_KILLED);
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	if (!child) { /* fcntl's locks are per process: another process must hold the lock */
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

		fd = open(path, O_RDWR);
		(void)!write(fds[1], fcntl(fd, F_SETLK, &lock) ? "n" : "y", 1);
		pause();
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	replay_open(&r);
	assert_int_equal(r.trace->status, SL_STATUS_RUNNING);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	replay_free(&r);
}

static uint8_t *slurp(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	uint8_t *bytes = malloc(1 << 20);

	assert_non_null(file);
	*size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	return bytes;
}

static void spill(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

/* The number of events that can be read; -1 if the trace is refused as a whole. */
static long count_events(const char *folder, bool *damaged)
{
	struct sl_damage damage = {0};
	struct sl_images images = {0};
	const struct sl_item *item;
	struct sl_trace *trace;
	struct sl_order *order;
	long events = 0;

	sl_images_add(&images, folder);
	sl_images_group(&images);
	trace = sl_trace_open(&images.images[0], &damage);
	if (!trace) {
		*damaged = damage.damaged;
		sl_damage_free(&damage);
		sl_images_free(&images);
		return -1;
	}
	order = sl_order_new(trace);
	while ((item = sl_order_next(order)))
		events += item->kind == SL_ITEM_EVENT;
	sl_order_free(order);
	*damaged = trace->damage.damaged || trace->status != SL_STATUS_COMPLETED;
	sl_trace_close(trace);
	sl_images_free(&images);
	return events;
}

static void a_trace_cut_at_any_byte_gives_all_events_of_its_whole_frames(void **state)
{
	struct replay r;
	char path[256];
	uint8_t *bytes;
	size_t size;
	long before = -1;
	bool damaged;

	replay_begin(&r);
	fill(r.synth, 40);
	snprintf(path, sizeof(path), "%s", synth_path(r.synth));
	synth_close(r.synth, SYNTH_COMPLETED);
	bytes = slurp(path, &size);
	for (size_t cut = 0; cut < size; cut++) {
		long events;

		spill(path, bytes, cut);
		events = count_events(r.folder, &damaged);
		assert_true(events >= before);
		assert_true(damaged);
		before = events;
	}
	assert_int_equal(before, 40);
	free(bytes);
	replay_free(&r);
}

static void a_trace_with_any_bit_flipped_loses_one_frame_at_most(void **state)
{
	struct replay r;
	char path[256];
	uint8_t *bytes;
	size_t size, header;
	bool damaged;

	replay_begin(&r);
	fill(r.synth, 15);
	snprintf(path, sizeof(path), "%s", synth_path(r.synth));
	synth_close(r.synth, SYNTH_COMPLETED);
	bytes = slurp(path, &size);
	header = 64 + sl_load_le(bytes + offsetof(struct sl_frame_index, compressed), 4);
	for (size_t bit = 0; bit < size * 8; bit += bit < header * 8 ? 17 : 1) {
		long events;

		bytes[bit / 8] ^= 1u << bit % 8;
		spill(path, bytes, size);
		events = count_events(r.folder, &damaged);
		bytes[bit / 8] ^= 1u << bit % 8;
		if (bit / 8 >= header)
			assert_in_range(events, 10, 15);
		else
			assert_true(events == 15 || (events == -1 && damaged));
		assert_true(damaged || events == 15);
	}
	free(bytes);
	replay_free(&r);
}

static void a_ring_with_any_byte_changed_opens(void **state)
{
	struct replay r;
	char path[256];
	int fd;

	replay_begin(&r);
	fill(r.synth, 12);
	snprintf(path, sizeof(path), "%s/rank-00000-4242.ring", r.folder);
	synth_close(r.synth, SYNTH_KILLED);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	/* the head, the segments' table, the first slots and definitions */
	static const struct {
		off_t begin, end;
	} parts[] = {{0, 1600},
		     {SL_RINGFILE_HEAD, SL_RINGFILE_HEAD + 512},
		     {SL_RINGFILE_HEAD + 2 * (off_t)SL_SEGMENT_BYTES, SL_RINGFILE_HEAD + 2 * (off_t)SL_SEGMENT_BYTES + 64}};
	for (size_t p = 0; p < SL_COUNT(parts); p++)
		for (off_t at = parts[p].begin; at < parts[p].end; at += 3) {
			uint8_t byte = 0, other;
			bool damaged;

			if (pread(fd, &byte, 1, at) != 1)
				break;
			other = byte ^ 0xff;
			assert_int_equal(pwrite(fd, &other, 1, at), 1);
			assert_in_range(count_events(r.folder, &damaged), 8, 14);
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
	close(fd);
	replay_free(&r);
}

/* The process was killed while it wrote a frame; its thread (where `logs`: its definitions) had gone on in another segment. */
static void open_unfinished(struct replay *r, bool logs)
{
	struct sl_ringfile *head = malloc(SL_RINGFILE_HEAD);
	char path[256], trace[256];
	struct sl_segment *old, *more;
	FILE *file;

	replay_begin(r);
	fill(r->synth, 12);
	synth_call(r->synth, 3, "cudaMalloc", .address = 0x1000000, .bytes = MIB); /* the file has nothing of this thread */
	synth_note(r->synth, "in the ring");
	snprintf(path, sizeof(path), "%s/rank-00000-4242.ring", r->folder);
	snprintf(trace, sizeof(trace), "%s", synth_path(r->synth));
	synth_close(r->synth, SYNTH_KILLED);
	file = fopen(path, "r+");
	assert_non_null(head);
	assert_int_equal(fread(head, SL_RINGFILE_HEAD, 1, file), 1);
	old = head->segment;
	while ((atomic_load(&old->use) == SL_SEGMENT_DEFS) != logs)
		old++;
	more = &head->segment[atomic_fetch_add(&head->segments, 1)];
	atomic_store(&more->use, atomic_load(&old->use));
	atomic_store(&more->thread, atomic_load(&old->thread));
	more->first = old->first + (logs ? SL_SEGMENT_BYTES : SL_SEGMENT_SLOTS);
	atomic_store(&old->end, more->first);
	atomic_store(&more->tail, more->first);
	rewind(file);
	assert_int_equal(fwrite(head, SL_RINGFILE_HEAD, 1, file), 1);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(truncate(path, SL_RINGFILE_HEAD + (off_t)atomic_load(&head->segments) * SL_SEGMENT_BYTES), 0);
	free(head);
	file = fopen(trace, "a");
	assert_int_equal(fwrite(&(uint32_t){SL_FRAME_MAGIC}, 4, 1, file), 1);
	assert_int_equal(fclose(file), 0);
	replay_open(r);
}

static void what_was_being_written_is_in_an_older_segment(void **state)
{
	struct replay r;

	for (unsigned logs = 0; logs < 2; logs++) {
		open_unfinished(&r, logs);
		assert_false(r.trace->damage.damaged);
		assert_int_equal(r.trace->damage.count, 1);
		assert_non_null(strstr(r.trace->damage.line[0], "the ring has what is in it"));
		assert_int_equal(r.model->events, 13);
		replay_free(&r);
	}
}

static void images_are_grouped_by_run_and_the_newest_comes_first(void **state)
{
	struct sl_images folder = {0};
	struct replay r;

	replay_begin(&r);
	synth_close(r.synth, SYNTH_COMPLETED);
	synth_close(synth_new_run(r.folder, 1, 4243, "synth-run", NULL), SYNTH_COMPLETED);
	synth_close(synth_new_run(r.folder, 0, 99, "other", NULL), SYNTH_KILLED);
	assert_true(sl_images_add(&folder, r.folder));
	sl_images_group(&folder);
	assert_int_equal(folder.image_count, 3);
	assert_int_equal(folder.run_count, 2);
	assert_int_equal(folder.runs[0].images + folder.runs[1].images, 3);
	assert_false(sl_images_add(&folder, "/nowhere/at/all"));
	sl_images_free(&folder);
	replay_free(&r);
}

static void define_frame(struct sl_defs *defs, unsigned id)
{
	char bytes[256], name[16];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "frame");
	msgpack_unpacked unpacked;
	size_t at = 0;

	snprintf(name, sizeof(name), "f%u", id);
	sl_definition_uint(&map, "id", id);
	sl_definition_text(&map, "function", name);
	sl_definition_uint(&map, "line", id);
	assert_true(sl_definition_end(&map));
	msgpack_unpacked_init(&unpacked);
	assert_int_equal(msgpack_unpack_next(&unpacked, bytes, map.pack.used, &at), MSGPACK_UNPACK_SUCCESS);
	assert_true(sl_defs_add(defs, &unpacked.data));
	msgpack_unpacked_destroy(&unpacked);
}

static void assert_frames(const struct sl_defs *defs, unsigned step, unsigned count)
{
	char name[16];

	for (unsigned id = 1; id <= count; id++) {
		const struct sl_python_frame *frame = sl_defs_frame(defs, id * step);

		snprintf(name, sizeof(name), "f%u", id * step);
		assert_non_null(frame);
		assert_string_equal(frame->function, name);
		assert_int_equal(frame->line, id * step);
	}
	assert_null(sl_defs_frame(defs, count * step + 1));
}

/* Ranks of a run share tables of equal definitions; a rank that is followed goes on to define.  step 1: ids without gaps. */
static void what_is_defined_after_tables_were_shared_is_this_processs_alone(void **state)
{
	for (unsigned step = 1; step <= 2; step++) {
		struct sl_defs one = {0}, other = {0};

		sl_pool_enter();
		for (unsigned id = 1; id <= 5; id++) {
			define_frame(&one, id * step);
			define_frame(&other, id * step);
		}
		sl_defs_share(&one);
		sl_defs_share(&other);
		assert_ptr_equal(one.frames.item, other.frames.item);
		for (unsigned id = 6; id <= 90; id++)
			define_frame(&one, id * step);
		assert_frames(&one, step, 90);
		assert_frames(&other, step, 5);
		sl_defs_free(&one);
		sl_defs_free(&other);
		sl_pool_leave();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_finished_trace_gives_every_event_and_no_damage),
		cmocka_unit_test(a_killed_process_loses_nothing_and_its_call_in_flight_is_named),
		cmocka_unit_test(frees_after_the_footer_are_in_the_ring_and_counted_once),
		cmocka_unit_test(without_footer_and_ring_the_status_is_unknown),
		cmocka_unit_test(a_ring_alone_is_a_trace),
		cmocka_unit_test(a_ring_whose_lock_is_held_belongs_to_a_living_process),
		cmocka_unit_test(a_trace_cut_at_any_byte_gives_all_events_of_its_whole_frames),
		cmocka_unit_test(a_trace_with_any_bit_flipped_loses_one_frame_at_most),
		cmocka_unit_test(a_ring_with_any_byte_changed_opens),
		cmocka_unit_test(what_was_being_written_is_in_an_older_segment),
		cmocka_unit_test(images_are_grouped_by_run_and_the_newest_comes_first),
		cmocka_unit_test(what_is_defined_after_tables_were_shared_is_this_processs_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
