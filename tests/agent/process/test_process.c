/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/process/hook_rows.h"
#include "agent/process/process.h"

/* A hook table of this test's own. */
const struct sl_hooks_row sl_hooks[] = {{""}, {"cuMemAlloc_v2", SL_VERB_ALLOC, SL_KIND_device, SL_FAMILY_cuda_driver, true}};
const unsigned sl_hook_count = 2;

static const char *golden;

static void no_bad(const char *variable, const char *value)
{
	fail_msg("%s=%s", variable, value);
}

static struct sl_process_identity identify(struct sl_options *options)
{
	struct sl_process_identity process;

	sl_options_read(options, no_bad);
	sl_process_identify(&process, options);
	return process;
}

static struct sl_process_identity identify_with(const char *environment)
{
	struct sl_options options;
	char copy[512];

	clearenv();
	strcpy(copy, environment);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		putenv(strdup(word));
	return identify(&options);
}

static void set_environment(const json_t *environment)
{
	const char *name;
	json_t *value;

	clearenv();
	json_object_foreach((json_t *)environment, name, value) setenv(name, json_string_value(value), 1);
	if (getenv("SLURM_NTASKS")) /* srun sets both */
		setenv("SLURM_STEP_NUM_TASKS", getenv("SLURM_NTASKS"), 1);
}

/* Compared with Python Stormlog's answers; where it raises, or says 0, 0, 1 for want of any, ours is unknown. */
static void identity_is_python_stormlogs(void **state)
{
	FILE *file = fopen(golden, "r");
	char line[4096];
	unsigned checked = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		json_t *record = json_loads(line, 0, NULL), *output = json_object_get(record, "output");
		json_t *environment = json_object_get(record, "env");
		struct sl_options options;
		struct sl_process_identity process;
		const char *job;

		assert_non_null(record);
		if (json_object_size(json_object_get(record, "explicit"))) {
			json_decref(record);
			continue; /* arguments of a Python call: we have none */
		}
		set_environment(environment);
		process = identify(&options);
		if (!output) {
			assert_int_equal(process.rank, -1);
			json_decref(record);
			continue;
		}
		job = json_string_value(json_object_get(output, "job_id"));
		assert_string_equal(process.job_id, job ? job : "");
		assert_int_equal(process.rank < 0 ? 0 : process.rank, json_integer_value(json_object_get(output, "rank")));
		assert_int_equal(process.local_rank < 0 ? 0 : process.local_rank,
				 json_integer_value(json_object_get(output, "local_rank")));
		assert_int_equal(process.world_size < 0 ? 1 : process.world_size,
				 json_integer_value(json_object_get(output, "world_size")));
		checked++;
		json_decref(record);
	}
	fclose(file);
	assert_true(checked >= 10);
}

static void launchers_that_upstream_does_not_know_give_ranks_too(void **state)
{
	struct sl_process_identity process = identify_with("PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=1");

	assert_int_equal(process.rank, 3);
	assert_int_equal(process.local_rank, 1);
	assert_int_equal(process.world_size, 8);
	process = identify_with("FLUX_TASK_RANK=2 FLUX_JOB_SIZE=4");
	assert_int_equal(process.rank, 2);
	assert_int_equal(process.local_rank, -1);
	process = identify_with("PMIX_RANK=2");
	assert_int_equal(process.rank, 2);
	assert_int_equal(process.world_size, -1);
}

static void a_batch_script_of_slurm_is_no_rank_and_a_step_of_it_is(void **state)
{
	const char *batch = "SLURM_JOB_ID=9 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4";
	struct sl_process_identity process = identify_with(batch);
	char text[256];

	assert_int_equal(process.rank, -1);
	assert_int_equal(process.world_size, -1);
	assert_string_equal(process.job_id, "9");
	snprintf(text, sizeof(text), "%s PMI_RANK=3 PMI_SIZE=4", batch); /* mpirun in the script */
	assert_int_equal(identify_with(text).rank, 3);
	process = identify_with(
		"SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2");
	assert_int_equal(process.rank, 1);
	assert_int_equal(process.local_rank, 1);
	assert_int_equal(process.world_size, 2);
}

static void what_the_user_says_comes_before_the_environment(void **state)
{
	struct sl_process_identity process =
		identify_with("STORMLOG_RANK=5 STORMLOG_WORLD_SIZE=6 STORMLOG_JOB_ID=x RANK=1 WORLD_SIZE=2 "
			      "LOCAL_RANK=1 SLURM_JOB_ID=9");

	assert_int_equal(process.rank, 5);
	assert_int_equal(process.local_rank, 1);
	assert_int_equal(process.world_size, 6);
	assert_string_equal(process.job_id, "x");
	assert_string_equal(process.run_id, "job-x");
	process = identify_with("STORMLOG_RANK=5");
	assert_int_equal(process.rank, 5);
	assert_int_equal(process.local_rank, 5);
	assert_int_equal(process.world_size, -1);
}

static void a_run_is_named_by_launcher_then_scheduler_then_session(void **state)
{
	struct sl_process_identity process = identify_with("STORMLOG_RUN_ID=mine SLURM_JOB_ID=9");

	assert_string_equal(process.run_id, "mine");
	process = identify_with("SLURM_JOB_ID=9 SLURM_STEP_ID=2 SLURM_RESTART_COUNT=1");
	assert_string_equal(process.run_id, "slurm-9.2-restart1");
	process = identify_with("TORCHELASTIC_RUN_ID=abc TORCHELASTIC_RESTART_COUNT=2");
	assert_string_equal(process.run_id, "torchrun-abc-attempt2");
	process = identify_with("TORCHELASTIC_RUN_ID=none");
	assert_null(strstr(process.run_id, "none"));
	assert_string_equal(process.job_id, "");
	assert_true(strlen(process.run_id) > 10);
	process = identify_with("");
	assert_string_equal(process.run_id, identify_with("").run_id);
}

static void placeholders_are_replaced_and_the_folder_is_absolute(void **state)
{
	char expected[PATH_MAX + 512], cwd[PATH_MAX], host[256];
	struct sl_process_identity process =
		identify_with("STORMLOG_DIR=a/%h/%r-%p/%j/100%%/%x% RANK=3 WORLD_SIZE=4 SLURM_JOB_ID=7/8");

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	snprintf(expected, sizeof(expected), "%s/a/%s/3-%d/7_8/100%%/%%x%%", cwd, host, getpid());
	assert_string_equal(process.directory, expected);
	process = identify_with("STORMLOG_DIR=/abs/%r");
	assert_string_equal(process.directory, "/abs/0");
}

static void the_folder_is_made_with_its_parents_for_the_user_alone(void **state)
{
	char base[] = "/tmp/stormlog-XXXXXX", path[256];
	struct sl_process_identity process = {0};
	struct stat status;

	assert_non_null(mkdtemp(base));
	snprintf(process.directory, sizeof(process.directory), "%s/a/b//c", base);
	assert_int_equal(sl_process_make_directory(&process), 0);
	assert_int_equal(sl_process_make_directory(&process), 0);
	assert_int_equal(stat(process.directory, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/file", base);
	fclose(fopen(path, "w"));
	strcpy(process.directory, path);
	assert_int_equal(sl_process_make_directory(&process), ENOTDIR);
	strcat(process.directory, "/below");
	assert_int_equal(sl_process_make_directory(&process), ENOTDIR);
	snprintf(path, sizeof(path), "rm -r %s", base);
	setenv("PATH", "/bin:/usr/bin", 1);
	assert_int_equal(system(path), 0);
}

static bool wanted_with(const char *environment)
{
	struct sl_process_identity process = identify_with(environment);
	struct sl_options options;

	sl_options_read(&options, no_bad);
	return sl_process_wanted(&process, &options);
}

static void ranks_programs_and_the_switch_decide_who_records(void **state)
{
	assert_true(wanted_with(""));
	assert_false(wanted_with("STORMLOG_DISABLE=1"));
	assert_true(wanted_with("STORMLOG_RANKS=0,3 RANK=3 WORLD_SIZE=4"));
	assert_false(wanted_with("STORMLOG_RANKS=0,2 RANK=3 WORLD_SIZE=4"));
	assert_true(wanted_with("STORMLOG_RANKS=0"));
	assert_true(wanted_with("STORMLOG_ONLY=test_proces?"));
	assert_false(wanted_with("STORMLOG_ONLY=python"));
}

static const msgpack_object *find(const msgpack_object *map, const char *name)
{
	for (unsigned i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key;

		if (key->via.str.size == strlen(name) && !memcmp(key->via.str.ptr, name, key->via.str.size))
			return &map->via.map.ptr[i].val;
	}
	fail_msg("no %s", name);
	return NULL;
}

static void assert_text(const msgpack_object *object, const char *text)
{
	assert_int_equal(object->type, MSGPACK_OBJECT_STR);
	assert_int_equal(object->via.str.size, strlen(text));
	assert_memory_equal(object->via.str.ptr, text, strlen(text));
}

static void the_header_is_one_map_with_every_key_of_the_format(void **state)
{
	static const char *const keys[] = {"def",	  "format",   "version", "agent",      "started_ns",	"monotonic_ns",
					   "host",	  "pid",      "pids",	 "ppid",       "process_start", "boot_id",
					   "run_id",	  "job_id",   "rank",	 "local_rank", "world_size",	"restart",
					   "argv",	  "exe",      "cwd",	 "tag",	       "metadata",	"settings",
					   "environment", "ring",     "file",	 "fields",     "verbs",		"kinds",
					   "flags",	  "families", "hooks",	 "system"};
	static char buffer[64 << 10];
	struct sl_options options;
	struct sl_process_identity process;
	const msgpack_object *map;
	msgpack_unpacked unpacked;
	size_t size, at = 0;

	clearenv();
	setenv("STORMLOG_META", "model=gpt=2\n\nflag\n", 1);
	setenv("STORMLOG_KEEP", "1G", 1);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("MY_SECRET", "x", 1);
	process = identify(&options);
	size = sl_process_header(buffer, sizeof(buffer), &process, &options, "x.ring", 1);
	assert_true(size > 0);
	msgpack_unpacked_init(&unpacked);
	assert_int_equal(msgpack_unpack_next(&unpacked, buffer, size, &at), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, size);
	map = &unpacked.data;
	assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
	assert_int_equal(map->via.map.size, sizeof(keys) / sizeof(keys[0]));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		find(map, keys[i]);
	assert_text(&map->via.map.ptr[0].key, "def");
	assert_text(find(map, "def"), "header");
	assert_text(find(map, "ring"), "x.ring");
	assert_int_equal(find(map, "rank")->type, MSGPACK_OBJECT_NIL);
	assert_int_equal(find(map, "pid")->via.u64, getpid());
	assert_true(find(map, "process_start")->via.u64 > 0);
	assert_int_equal(find(map, "metadata")->via.map.size, 2);
	assert_text(find(find(map, "metadata"), "model"), "gpt=2");
	assert_text(find(find(map, "metadata"), "flag"), "");
	assert_text(find(find(map, "settings"), "keep"), "1073741824");
	assert_text(find(find(map, "settings"), "stacks"), "both");
	assert_int_equal(find(map, "environment")->via.map.size, 3);
	assert_text(find(find(map, "environment"), "NCCL_DEBUG"), "INFO");
	assert_int_equal(find(map, "fields")->via.array.size, SL_FIELD_COUNT);
	assert_int_equal(find(map, "hooks")->via.array.size, 1);
	assert_text(&find(map, "hooks")->via.array.ptr[0].via.array.ptr[0], "cuMemAlloc_v2");
	assert_int_equal(find(map, "flags")->via.array.size, 9);
	msgpack_unpacked_destroy(&unpacked);

	/* Where the whole header does not fit, nothing is written. */
	for (size_t room = 0; room < size; room += 97)
		assert_int_equal(sl_process_header(buffer, room, &process, &options, "x.ring", 1), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_python_stormlogs),
		cmocka_unit_test(launchers_that_upstream_does_not_know_give_ranks_too),
		cmocka_unit_test(a_batch_script_of_slurm_is_no_rank_and_a_step_of_it_is),
		cmocka_unit_test(what_the_user_says_comes_before_the_environment),
		cmocka_unit_test(a_run_is_named_by_launcher_then_scheduler_then_session),
		cmocka_unit_test(placeholders_are_replaced_and_the_folder_is_absolute),
		cmocka_unit_test(the_folder_is_made_with_its_parents_for_the_user_alone),
		cmocka_unit_test(ranks_programs_and_the_switch_decide_who_records),
		cmocka_unit_test(the_header_is_one_map_with_every_key_of_the_format),
	};

	assert_int_equal(argc, 2);
	golden = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
