/* SPDX-License-Identifier: MIT */
/* What is written is read back the same: sinks, OOM bundles, the run envelope; alerts of a series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/upstream/answers/answers.h"
#include "analyzer/outputs/output.h"
#include "analyzer/upstream/files/files.h"

enum { EVENTS = 25 };

static char folder[64];
static struct sl_arena arena;

static int set_up(void **state)
{
	strcpy(folder, "/tmp/sl-write-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	sl_arena_free(&arena);
	return system(command);
}

static const char *path(const char *name)
{
	return sl_arena_printf(&arena, "%s/%s", folder, name);
}

static struct sl_session session(const char *id, int32_t rank, enum sl_session_status status)
{
	struct sl_value *metadata = sl_value_object(&arena, 2);
	struct sl_session s = {.summary = {.session_id = id,
					   .host = "node\xc3\xa9",
					   .source = "test",
					   .job_id = "job",
					   .status = status,
					   .started_at_ns = 1700000000000000001,
					   .ended_at_ns = 1700000009000000000,
					   .has_end = status != SL_SESSION_RUNNING,
					   .pid = 41,
					   .rank = rank,
					   .local_rank = rank,
					   .world_size = 2}};

	sl_value_set(metadata, "backend", sl_value_of_text("cuda"));
	sl_value_set(metadata, "x", sl_value_of_double(0.1));
	for (int i = 0; i < EVENTS; i++) {
		struct sl_v3_event event = {.timestamp_ns = 1700000000000000001 + i * INT64_C(100000007),
					    .allocated_bytes = i * 1000,
					    .reserved_bytes = i * 2000,
					    .change_bytes = -i,
					    .used_bytes = i * 3000,
					    .active_bytes = i % 2 ? i : SL_EVENT_UNKNOWN,
					    .inactive_bytes = SL_EVENT_UNKNOWN,
					    .free_bytes = SL_EVENT_UNKNOWN,
					    .total_bytes = INT64_C(80) << 30,
					    .device_id = 1,
					    .pid = 41,
					    .interval_ms = 100,
					    .rank = rank,
					    .local_rank = rank,
					    .world_size = 2,
					    .session_id = id,
					    .event_type = i ? "sample" : "start",
					    .collector = "stormlog.cuda_preload",
					    .host = "node\xc3\xa9",
					    .job_id = "job",
					    .context = i % 3 ? NULL : "step",
					    .metadata = i % 5 ? metadata : NULL};

		sl_session_add_event(&s, &event);
	}
	return s;
}

static const char *line_of(const struct sl_v3_event *event)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_PYTHON);

	sl_event_write(j, event);
	const char *line = sl_arena_strdup(&arena, sl_json_text(j, NULL));

	sl_json_close(j);
	return line;
}

static struct sl_telemetry *read_back(const char *where)
{
	struct sl_telemetry *t = sl_telemetry_new();

	assert_int_equal(sl_telemetry_add_path(t, where, false), 1);
	if (t->problems.count)
		fail_msg("%s:%u: %s", t->problems.item[0].file, t->problems.item[0].line, t->problems.item[0].reason);
	assert_true(sl_telemetry_finish(t, NULL));
	return t;
}

static void assert_same(const struct sl_session *got, const struct sl_session *want)
{
	assert_int_equal(got->count, want->count);
	for (size_t i = 0; i < want->count; i++)
		assert_string_equal(line_of(&got->events[i]), line_of(&want->events[i]));
}

static void a_sink_is_read_back_event_by_event(void **state)
{
	struct sl_session a = session("s-a", 0, SL_SESSION_COMPLETED), b = session("s-b", 1, SL_SESSION_RUNNING);
	const struct sl_session *both[] = {&a, &b};
	struct sl_sink_options options = sl_sink_defaults;

	options.segment_events = 10;
	assert_true(sl_sink_write(path("deep/sink"), both, 2, &options));
	struct sl_telemetry *t = read_back(path("deep/sink"));

	assert_int_equal(t->loaded.count, 2);
	assert_string_equal(t->loaded.item[0].summary.session_id, "s-a");
	assert_int_equal(t->loaded.item[0].source_count, 3);
	assert_int_equal(t->loaded.item[1].summary.status, SL_SESSION_RUNNING);
	assert_same(&t->loaded.item[0], &a);
	assert_same(&t->loaded.item[1], &b);
	assert_int_equal(sl_sink_rollups_state(path("deep/sink")), SL_ROLLUPS_FRESH);
	sl_telemetry_free(t);
	free(a.events);
	free(b.events);
}

static void a_sink_never_replaces_what_is_there(void **state)
{
	struct sl_session a = session("s-a", 0, SL_SESSION_COMPLETED);
	const struct sl_session *one[] = {&a};
	struct stat before, after;

	assert_true(sl_sink_write(path("sink"), one, 1, NULL));
	assert_int_equal(stat(path("sink/manifest.json"), &before), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	assert_false(sl_sink_write(path("sink"), one, 1, NULL));
	assert_true(errno == ENOTEMPTY || errno == EEXIST);
	assert_int_equal(stat(path("sink/manifest.json"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	DIR *dir = opendir(folder);
	int names = 0;

	while (readdir(dir))
		names++;
	closedir(dir);
	assert_int_equal(names, 3); /* . .. sink: no leftovers */
	free(a.events);
}

static void ranks_in_their_own_sinks_get_a_session_together(void **state)
{
	struct sl_session a = session("s-a", 0, SL_SESSION_COMPLETED), b = session("s-b", 1, SL_SESSION_COMPLETED);
	const struct sl_session *one[] = {&a}, *two[] = {&b};
	struct sl_telemetry *t = sl_telemetry_new();

	assert_true(sl_sink_write(path("rank-0"), one, 1, NULL));
	assert_true(sl_sink_write(path("rank-1"), two, 1, NULL));
	assert_int_equal(sl_telemetry_add_path(t, folder, false), 2);
	assert_true(sl_telemetry_finish(t, NULL));
	assert_int_equal(t->sessions.count, 3);
	assert_string_equal(t->selected->summary.source, "stormlog.diagnostics.distributed");
	assert_int_equal(t->selected->count, 2 * EVENTS);
	assert_int_equal(t->problems.count, 0);
	sl_telemetry_free(t);
	free(a.events);
	free(b.events);
}

static void custom(struct sl_json *j, void *context)
{
	sl_json_int(j, "requested_bytes", 7);
}

static void blocks(struct sl_json *j, void *context)
{
	sl_json_array(j, NULL);
	sl_json_end(j);
}

static struct sl_bundle bundle_of(const struct sl_session *s)
{
	static const struct sl_bundle_file file = {"live_blocks.json", blocks, NULL};

	return (struct sl_bundle){.created_at_ns = 1700000000000000000,
				  .pid = 41,
				  .backend = "cuda/node #1",
				  .reason = "message_pattern:out of memory",
				  .exception_type = "cudaError_t",
				  .session = &s->summary,
				  .events = s->events,
				  .event_count = s->count,
				  .custom = custom,
				  .files = &file,
				  .file_count = 1};
}

static void an_oom_bundle_loses_nothing(void **state)
{
	struct sl_session a = session("s-a", 0, SL_SESSION_RUNNING);
	struct sl_bundle bundle = bundle_of(&a);
	const char *name, *second;

	assert_true(sl_bundle_write(&arena, path("oom"), &bundle, &name));
	assert_string_equal(name, "oom_dump_20231114T221320Z_41_cuda_node_1_1");
	assert_true(sl_bundle_write(&arena, path("oom"), &bundle, &second));
	assert_string_equal(second, "oom_dump_20231114T221320Z_41_cuda_node_1_2");
	struct sl_telemetry *t = read_back(path(sl_arena_printf(&arena, "oom/%s", name)));

	assert_int_equal(t->bundles.count, 1);
	assert_string_equal(t->bundles.item[0].exception_type, "cudaError_t");
	assert_int_equal(t->bundles.item[0].event_count, EVENTS);
	assert_same(&t->sessions.item[0], &a);
	sl_telemetry_free(t);
	free(a.events);
}

static int64_t bytes_of(const char *bundle)
{
	static const char *const names[] = {"manifest.json", "events.json", "metadata.json", "environment.json",
					    "live_blocks.json"};
	int64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(stat(path(sl_arena_printf(&arena, "oom/%s/%s", bundle, names[i])), &st), 0);
		bytes += st.st_size;
	}
	return bytes;
}

static void the_oldest_bundles_go_first(void **state)
{
	struct sl_session a = session("s-a", 0, SL_SESSION_RUNNING);
	struct sl_bundle bundle = bundle_of(&a);
	const char *names[4];

	for (int i = 0; i < 4; i++) {
		struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

		assert_true(sl_bundle_write(&arena, path("oom"), &bundle, &names[i]));
		assert_int_equal(utimensat(AT_FDCWD, path(sl_arena_printf(&arena, "oom/%s", names[i])), times, 0), 0);
	}
	assert_int_equal(sl_bundle_prune(path("oom"), 4 * bytes_of(names[0]) - 1), 1);
	assert_int_not_equal(access(path(sl_arena_printf(&arena, "oom/%s", names[0])), F_OK), 0);
	assert_int_equal(access(path(sl_arena_printf(&arena, "oom/%s", names[1])), F_OK), 0);
	assert_int_equal(sl_bundle_prune(path("oom"), 1), 3);
	free(a.events);
}

static void an_envelope_has_no_repeated_tags_and_no_end_before_its_start(void **state)
{
	static const char *const tags[] = {"a", " ", "a", "b"};
	struct sl_session a = session("s-a", 0, SL_SESSION_COMPLETED);
	const struct sl_session_summary *sessions[] = {&a.summary};
	struct sl_run_envelope run = {.run_id = "run-1",
				      .title = " ",
				      .started_at_ns = 5,
				      .ended_at_ns = 4,
				      .tags = tags,
				      .tag_count = 4,
				      .sessions = sessions,
				      .session_count = 1};
	struct sl_value_error error;

	FILE *file = fopen(path("stormlog_run.json"), "w");
	struct sl_json *j = sl_json_new(file, SL_JSON_INDENT);

	sl_run_envelope_write(j, &run);
	assert_true(sl_json_close(j));
	fclose(file);
	const struct sl_value *read = sl_value_read(&arena, path("stormlog_run.json"), &error);

	assert_non_null(read);
	assert_int_equal(sl_value_get(read, "tags")->count, 2);
	assert_int_equal(sl_value_get(read, "ended_at_ns")->kind, SL_VALUE_NULL);
	assert_int_equal(sl_value_get(read, "title")->kind, SL_VALUE_NULL);
	free(a.events);
}

static void put_text(const char *file_path, const char *text)
{
	FILE *file = fopen(file_path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void what_came_into_the_place_meanwhile_stays(void **state)
{
	char *const inputs[] = {NULL};
	struct sl_destination place;

	assert_true(sl_destination_choose(&place, path("analysis"), inputs));
	assert_true(sl_destination_begin(&place));
	put_text(sl_arena_printf(&arena, "%s/report.json", place.made), "{\n  \"schema\": \"stormlog.report\"}\n");
	assert_int_equal(mkdir(path("analysis"), 0700), 0);
	put_text(path("analysis/thesis.tex"), "x");
	assert_false(sl_destination_end(&place));
	assert_non_null(strstr(place.why, "no report.json of stormlog's"));
	assert_int_equal(access(path("analysis/thesis.tex"), F_OK), 0);
	assert_int_not_equal(access(path("analysis/report.json"), F_OK), 0);
	assert_int_not_equal(access(place.made, F_OK), 0);
}

static int warnings, criticals, jumps, fragmented;

static void count_alert(void *context, const struct sl_v3_event *event)
{
	warnings += strncmp(event->context, "WARNING: Memory usage at 8", 26) == 0;
	criticals += strcmp(event->event_type, "critical") == 0;
	jumps += strcmp(event->context, "Large allocation detected: 450.00 MB") == 0;
	fragmented += strncmp(event->context, "High fragmentation: ", 20) == 0;
}

static void alerts_are_raised_when_a_line_is_crossed(void **state)
{
	static const int64_t percent[] = {10, 85, 86, 50, 96, 97, 82};
	struct sl_v3_event events[7];
	const struct sl_v3_event *list[7];
	struct sl_series series = {list, 7};

	for (int i = 0; i < 7; i++) {
		events[i] = (struct sl_v3_event){
			.event_type = "sample", .total_bytes = 1000 << 20, .allocated_bytes = percent[i] * (10 << 20)};
		events[i].reserved_bytes = i == 3 ? events[i].allocated_bytes * 2 : events[i].allocated_bytes;
		list[i] = &events[i];
	}
	sl_alerts_derive(&series, &sl_alert_defaults, &arena, count_alert, NULL);
	assert_int_equal(warnings, 1);
	assert_int_equal(criticals, 1);
	assert_int_equal(fragmented, 1);
	assert_int_equal(jumps, 0);
	events[4].allocated_bytes = events[3].allocated_bytes + (450 << 20);
	sl_alerts_derive(&series, &sl_alert_defaults, &arena, count_alert, NULL);
	assert_int_equal(jumps, 1);
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path(name), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void expect_text(const char *name, const char *text)
{
	char found[64] = "";
	FILE *file = fopen(path(name), "r");

	assert_non_null(file);
	found[fread(found, 1, sizeof(found) - 1, file)] = 0;
	fclose(file);
	assert_string_equal(found, text);
}

static void of_two_live_sinks_in_one_folder_the_first_has_it(void **state)
{
	struct sl_session s = session("one", 0, SL_SESSION_RUNNING);
	struct sl_live_sink *first = sl_live_sink_open(folder);
	struct stat st;
	uint64_t events;

	assert_non_null(first);
	for (int i = 0; i < 2; i++) { /* before it has written anything, and after */
		errno = 0;
		assert_null(sl_live_sink_open(folder));
		assert_int_equal(errno, ENOTEMPTY);
		if (!i)
			sl_live_sink_add(first, sl_live_sink_session(first, &s.summary), &s.events[0]);
		assert_true(sl_live_sink_flush(first));
	}
	sl_live_sink_add(first, 0, &s.events[1]);
	assert_true(sl_live_sink_close(first, 1700000009000000000, &events));
	assert_int_equal(events, 2);
	assert_int_equal(stat(path("manifest.json"), &st), 0);
	assert_int_equal(stat(path("manifest.tmp"), &st), -1);
	free(s.events);
}

static void a_live_sink_writes_to_no_file_that_it_did_not_make(void **state)
{
	static const char *const names[] = {"segment-000001.jsonl", "manifest.tmp"};

	for (size_t i = 0; i < 2; i++) {
		struct sl_session s = session("one", 0, SL_SESSION_RUNNING);
		struct sl_live_sink *sink = sl_live_sink_open(folder);
		uint64_t events;

		assert_non_null(sink);
		assert_true(sl_live_sink_flush(sink));
		put(names[i], "another's\n");
		sl_live_sink_add(sink, sl_live_sink_session(sink, &s.summary), &s.events[0]);
		assert_false(sl_live_sink_flush(sink));
		assert_int_equal(errno, EEXIST);
		assert_false(sl_live_sink_close(sink, 1700000009000000000, &events));
		expect_text(names[i], "another's\n");
		free(s.events);
		tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

int main(void)
{
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(a_sink_is_read_back_event_by_event),
		WITH_FOLDER(a_sink_never_replaces_what_is_there),
		WITH_FOLDER(ranks_in_their_own_sinks_get_a_session_together),
		WITH_FOLDER(an_oom_bundle_loses_nothing),
		WITH_FOLDER(the_oldest_bundles_go_first),
		WITH_FOLDER(an_envelope_has_no_repeated_tags_and_no_end_before_its_start),
		WITH_FOLDER(what_came_into_the_place_meanwhile_stays),
		WITH_FOLDER(of_two_live_sinks_in_one_folder_the_first_has_it),
		WITH_FOLDER(a_live_sink_writes_to_no_file_that_it_did_not_make),
		WITH_FOLDER(alerts_are_raised_when_a_line_is_crossed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
