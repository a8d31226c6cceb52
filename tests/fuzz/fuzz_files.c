/* SPDX-License-Identifier: MIT */
/*
 * Any bytes in files that the analyzer reads besides whole traces must not crash or hang it.  FUZZ in the environment says which file:
 *
 *	redact		[kind, thread, size (4 bytes), content before compression]..., as fuzz_trace with -DFRAMES
 *	exports		a byte that says which of the formats, then the same: all of them on each input are nine times the reader
 *	reports		as redact: every analysis, and every file of the result
 *	rings		what another user may leave in /dev/shm: [bytes of the head (2), of the segment table (2)], head, table, header map and
 *			first segment, each 64 kB at most
 *	packs		members before compression
 *	bundles		files of an OOM bundle, a line "=" between them
 *	summaries	[1: what processes have in common, else a process; size (4 bytes), map before compression]..., or where the first
 *			byte is 255 the index before compression, and any bytes behind its frame
 *	settings, suppressions, baselines	the file
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "analyzer/base/ini.h"
#include "analyzer/exports/export.h"
#include "analyzer/gate/gate.h"
#include "analyzer/model/state/model.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/outputs/output.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/report/suppress.h"
#include "analyzer/trace/files.h"
#include "analyzer/upstream/files/files.h"
#include "analyzer/watch/watch.h"
#include "common/base.h"
#include "common/ringfile.h"
#include "common/tracefile.h"
#include "folder.h"
#include "frames.h"

/* ---- traces */

static void put_trace(const uint8_t *bytes, size_t size)
{
	size_t used;
	uint8_t *out = frames_of(bytes, size, &used);

	put("rank-00000-1.msgpack.zst", out, used);
	free(out);
}

static void fuzz_exports(const uint8_t *bytes, size_t size)
{
	char *paths[] = {folder, NULL};
	const struct sl_export *format;
	struct sl_merge merge;
	unsigned count = 0;

	while (sl_exports[count])
		count++;
	if (!size)
		return;
	format = sl_exports[bytes[0] % count];
	put_trace(bytes + 1, size - 1);

	struct sl_merge_options options = {.run = "all", .rank = -1, .models = format->models};

	if (sl_merge_open(&merge, paths, 1, &options) == SL_MERGE_FINE) {
		struct sl_export_job job = {.merge = &merge, .out = nowhere, .path = at("export")};

		format->run(&job);
	}
	sl_merge_close(&merge);
	unlink(at("export"));
}

static void fuzz_redact(const uint8_t *bytes, size_t size)
{
	static const uint8_t key[SL_REDACT_KEY] = {7};
	struct sl_images images = {0};
	struct sl_archived packed;

	put_trace(bytes, size);
	sl_images_add(&images, folder);
	sl_images_group(&images);
	sl_archive_write(nowhere, &images, -1, key, &packed);
	sl_images_free(&images);
}

static void report_folder(void)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1, .lives = true, .stretches = true};
	struct sl_face_style style = {.columns = 80};
	struct sl_report report = {0};
	char *paths[] = {folder, NULL};

	if (sl_pipeline_run(&report, paths, 1, &options) == SL_PIPELINE_FINE) {
		for (unsigned i = 0; sl_outputs[i]; i++)
			if (sl_outputs[i]->file)
				sl_outputs[i]->file(&report, nowhere);
		sl_screen_report(&report, nowhere, &style);
	}
	sl_report_free(&report);
}

static void fuzz_reports(const uint8_t *bytes, size_t size)
{
	put_trace(bytes, size);
	report_folder();
}

static size_t compressed(void **out, const void *bytes, size_t size)
{
	size_t room = ZSTD_compressBound(size);

	*out = malloc(room);
	if (!*out)
		abort();
	return ZSTD_compress(*out, room, bytes, size, 1);
}

/* Puts the processes' common part before a process, as sl_summaries_write does. */
static void put_summary(const uint8_t *bytes, size_t size)
{
	struct sl_header who = {.run_id = "r", .host = "h", .boot_id = "b", .pid = 1, .rank = 0, .started_ns = 1};
	struct sl_summary_frame frames[8] = {0};
	const void *common = NULL;
	size_t common_size = 0, count = 0;
	void *made[16];
	unsigned made_count = 0;
	FILE *out = fopen(at("x.summary"), "we");

	while (size >= 5 && count < SL_COUNT(frames) && made_count < SL_COUNT(made)) {
		size_t part = sl_load_le(bytes + 1, 4), packed;

		part = part < size - 5 ? part : size - 5;
		packed = compressed(&made[made_count], bytes + 5, part);
		if (bytes[0] == 1) {
			common = made[made_count];
			common_size = packed;
		} else {
			frames[count++] = (struct sl_summary_frame){"p", &who, made[made_count], packed, common, common_size};
		}
		made_count++;
		bytes += 5 + part;
		size -= 5 + part;
	}
	if (!out || !sl_summaries_write(out, frames, count) || fclose(out))
		abort();
	while (made_count)
		free(made[--made_count]);
}

static void fuzz_summaries(const uint8_t *bytes, size_t size)
{
	if (size && bytes[0] == 255) {
		void *index;
		size_t packed = compressed(&index, bytes + 1, size - 1);

		index = realloc(index, packed + size);
		if (!index)
			abort();
		memcpy((char *)index + packed, bytes, size);
		put("x.summary", index, packed + size);
		free(index);
	} else {
		put_summary(bytes, size);
	}
	report_folder();
}

/* Puts the input's parts where a ring has them; the rest is as in a valid ring. */
static void fuzz_rings(const uint8_t *bytes, size_t size)
{
	static uint8_t file[SL_RINGFILE_HEAD + SL_SEGMENT_BYTES];
	struct sl_ringfile *head = (struct sl_ringfile *)file;
	const size_t places[] = {0, offsetof(struct sl_ringfile, segment), SL_RINGFILE_HEADER_AT, SL_RINGFILE_HEAD};
	struct sl_images images = {0};
	size_t parts[4], used = 6;

	if (size < used)
		return;
	for (unsigned i = 0; i < 3; i++)
		parts[i] = sl_load_le(bytes + 2 * i, 2);
	parts[3] = size;
	memset(file, 0, sizeof(file));
	for (unsigned i = 0; i < 4; i++) {
		size_t most = i < 3 ? places[i + 1] - places[i] : sizeof(file) - places[i];
		size_t part = parts[i] < most ? parts[i] : most;

		part = part < size - used ? part : size - used;
		memcpy(file + places[i], bytes + used, part);
		used += part;
	}
	memcpy(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic));
	head->version = SL_RINGFILE_VERSION;
	head->segment_bytes = SL_SEGMENT_BYTES;
	put("rank-00000-1.ring", file, sizeof(file));
	sl_images_add(&images, folder);
	sl_images_group(&images);
	for (unsigned i = 0; i < images.image_count; i++) {
		struct sl_damage damage = {0};
		struct sl_trace *trace = sl_trace_open(&images.images[i], &damage);

		if (trace) {
			struct sl_order *order = sl_order_new(trace);
			struct sl_model *model = sl_replay_new(&trace->header, &trace->defs);

			for (const struct sl_item *item; (item = sl_order_next(order));)
				sl_replay_apply(model, item);
			sl_replay_end(model, false);
			sl_replay_free(model);
			sl_order_free(order);
		}
		sl_trace_close(trace);
		sl_damage_free(&damage);
	}
	sl_images_free(&images);
}

static void fuzz_packs(const uint8_t *bytes, size_t size)
{
	size_t room = ZSTD_compressBound(size) + sizeof(SL_PACK_MAGIC);
	uint8_t *pack = malloc(room);
	struct sl_images images = {0};
	char path[256];

	if (!pack)
		abort();
	memcpy(pack, SL_PACK_MAGIC, sizeof(SL_PACK_MAGIC));
	room = sizeof(SL_PACK_MAGIC) + ZSTD_compress(pack + sizeof(SL_PACK_MAGIC), room - sizeof(SL_PACK_MAGIC), bytes, size, 1);
	snprintf(path, sizeof(path), "%s", put("x.stormlog", pack, room));
	free(pack);
	sl_images_add(&images, path);
	sl_images_group(&images);
	sl_images_free(&images);
	sl_archive_close(path);
}

/* ---- files of text */

static void fuzz_bundles(const uint8_t *bytes, size_t size)
{
	static const char *const names[] = {"oom_dump_1/manifest.json", "oom_dump_1/events.json", "oom_dump_1/metadata.json",
					    "oom_dump_1/environment.json", "oom_dump_1/live_blocks.json"};
	struct sl_telemetry *telemetry = sl_telemetry_new();

	mkdir(at("oom_dump_1"), 0700);
	for (size_t i = 0; i < SL_COUNT(names); i++) {
		const uint8_t *end = memmem(bytes, size, "\n=\n", 3);
		size_t part = end ? (size_t)(end - bytes) : size;

		put(names[i], bytes, part);
		part += end ? 3 : 0;
		bytes += part;
		size -= part;
	}
	sl_telemetry_add_path(telemetry, folder, false);
	sl_telemetry_finish(telemetry, NULL);
	sl_telemetry_free(telemetry);
}

static const char *take_rule(void *context, const char *name, const char *value)
{
	struct sl_rule rule = {0};
	const char *wrong = sl_rule_parse(&rule, value);

	sl_rule_free(&rule);
	return wrong;
}

static void fuzz_settings(const uint8_t *bytes, size_t size)
{
	const char *path = put(".stormlog.ini", bytes, size);
	char why[5000], told[5000];
	struct sl_limits limits;

	sl_limits_init(&limits);
	if (sl_limits_read(&limits, path, why, sizeof(why)))
		sl_limits_describe(&limits, told, sizeof(told));
	sl_ini_read(path, "watch", take_rule, NULL, why, sizeof(why));
}

static void fuzz_suppressions(const uint8_t *bytes, size_t size)
{
	struct sl_suppressions list = {0};
	unsigned line;

	if (sl_suppressions_read(&list, put("supp", bytes, size), &line)) {
		sl_suppressions_match(&list, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
		sl_suppressions_match(&list, "train.py:12 forward");
		sl_suppressions_match(&list, "");
	}
	sl_suppressions_free(&list);
}

static void fuzz_baselines(const uint8_t *bytes, size_t size)
{
	struct sl_measures measures = {0};
	char why[5000];

	sl_baseline_read(&measures, put("baseline.json", bytes, size), why, sizeof(why));
	sl_measures_free(&measures);
}

const struct target targets[] = {
	{"exports", fuzz_exports},
	{"redact", fuzz_redact},
	{"reports", fuzz_reports},
	{"summaries", fuzz_summaries},
	{"rings", fuzz_rings},
	{"packs", fuzz_packs},
	{"bundles", fuzz_bundles},
	{"settings", fuzz_settings},
	{"suppressions", fuzz_suppressions},
	{"baselines", fuzz_baselines},
	{0},
};
