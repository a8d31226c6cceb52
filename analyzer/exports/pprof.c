/* SPDX-License-Identifier: MIT */
/* pprof: profile.proto, gzipped, for `go tool pprof`.  Field numbers: proto/profile.proto of google/pprof. */
#include <errno.h>
#include <zlib.h>

#include "analyzer/base/memory.h"
#include "analyzer/exports/export.h"
#include "analyzer/report/owners.h"

enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	MAPPING = 3,
	LOCATION = 4,
	FUNCTION = 5,
	STRING_TABLE = 6,
	TIME = 9,
	DURATION = 10,
	DEFAULT_TYPE = 14
};

/* Each text is stored once.  A location and its function have the same id. */
struct profile {
	struct sl_proto proto;
	struct sl_map strings;	       /* text -> number + 1 */
	struct sl_map locations;       /* "function\nfile\nline" -> id */
	SL_VECTOR(const char *) texts; /* texts of the map, by number */
};

static uint64_t text_id(struct profile *profile, const char *text)
{
	uintptr_t *at = sl_map_at(&profile->strings, text);
	uint64_t id = *at;

	if (id)
		return id - 1;
	id = *at = profile->texts.count + 1;
	*SL_PUSH(&profile->texts) = sl_map_intern(&profile->strings, text);
	return id - 1;
}

static uint64_t location_id(struct profile *profile, const char *function, const char *file, uint32_t line)
{
	char *key = sl_memory_print("%s\n%s\n%u", function, file ? file : "", line);
	uintptr_t *at = sl_map_at(&profile->locations, key);
	size_t message, inner;
	uint64_t id, name, path;

	free(key);
	if (*at)
		return *at;
	id = *at = profile->locations.count;
	name = text_id(profile, function);
	path = text_id(profile, file ? file : "");
	message = sl_proto_begin(&profile->proto, FUNCTION);
	sl_proto_uint(&profile->proto, 1, id);
	sl_proto_uint(&profile->proto, 2, name);
	sl_proto_uint(&profile->proto, 3, name);
	sl_proto_uint(&profile->proto, 4, path);
	sl_proto_end(&profile->proto, message);
	message = sl_proto_begin(&profile->proto, LOCATION);
	sl_proto_uint(&profile->proto, 1, id);
	inner = sl_proto_begin(&profile->proto, 4);
	sl_proto_uint(&profile->proto, 1, id);
	if (line)
		sl_proto_uint(&profile->proto, 2, line);
	sl_proto_end(&profile->proto, inner);
	sl_proto_end(&profile->proto, message);
	return id;
}

static void put_type(struct profile *profile, const char *type, const char *unit)
{
	uint64_t name = text_id(profile, type), of = text_id(profile, unit);
	size_t message = sl_proto_begin(&profile->proto, SAMPLE_TYPE);

	sl_proto_uint(&profile->proto, 1, name);
	sl_proto_uint(&profile->proto, 2, of);
	sl_proto_end(&profile->proto, message);
}

static void put_label(struct profile *profile, const char *key, const char *text, int64_t number)
{
	uint64_t name = text_id(profile, key), value = text ? text_id(profile, text) : 0;
	size_t message = sl_proto_begin(&profile->proto, 3);

	sl_proto_uint(&profile->proto, 1, name);
	if (text)
		sl_proto_uint(&profile->proto, 2, value);
	else
		sl_proto_uint(&profile->proto, 3, (uint64_t)number);
	sl_proto_end(&profile->proto, message);
}

static void put_site(struct profile *profile, struct sl_merge_process *p, const struct sl_site *site)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(&p->process, frames, site->stack);
	const char *library = sl_model_library(p->process.model, site);
	uint64_t ids[SL_STACK_MAX + 1];
	char place[SL_STACKS_NAME_BYTES];
	size_t message;

	for (unsigned i = 0; i < count; i++) {
		const struct sl_stack_frame *frame = &frames[i];

		if (!frame->function)
			sl_stacks_describe(place, sizeof(place), frame);
		ids[i] = location_id(profile, frame->function ? frame->function : place, frame->file ? frame->file : frame->module,
				     frame->line);
	}
	if (!count)
		ids[count++] = location_id(profile, library, NULL, 0);
	message = sl_proto_begin(&profile->proto, SAMPLE);
	for (unsigned i = 0; i < count; i++)
		sl_proto_uint(&profile->proto, 1, ids[i]);
	sl_proto_uint(&profile->proto, 2, site->total_blocks);
	sl_proto_uint(&profile->proto, 2, site->total_bytes);
	sl_proto_uint(&profile->proto, 2, site->live_blocks);
	sl_proto_uint(&profile->proto, 2, site->live_bytes);
	sl_proto_uint(&profile->proto, 2, sl_model_site_at_peak(p->process.model, site));
	put_label(profile, "library", library, 0);
	put_label(profile, "kind", sl_event_kinds[site->kind].name, 0);
	if (site->device >= 0)
		put_label(profile, "device", NULL, site->device);
	if (p->process.trace->header.rank >= 0)
		put_label(profile, "rank", NULL, p->process.trace->header.rank);
	put_label(profile, "pid", NULL, p->process.trace->header.pid);
	if (site->label && sl_defs_text(&p->process.trace->defs, site->label))
		put_label(profile, "label", sl_defs_text(&p->process.trace->defs, site->label), 0);
	sl_proto_end(&profile->proto, message);
}

static bool write_gzip(const struct sl_proto *proto, FILE *out)
{
	static Bytef comment[] = "stormlog " SL_VERSION;
	gz_header head = {.os = 3, .comment = comment}; /* 3: Unix */
	z_stream z = {.next_in = proto->bytes, .avail_in = (uInt)proto->size};
	uint8_t chunk[1 << 16];
	int state;

	if (proto->size > UINT32_MAX || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY)) {
		errno = EFBIG;
		return false;
	}
	deflateSetHeader(&z, &head);
	do {
		z.next_out = chunk;
		z.avail_out = sizeof(chunk);
		state = deflate(&z, Z_FINISH);
		fwrite(chunk, 1, sizeof(chunk) - z.avail_out, out);
	} while (state == Z_OK);
	deflateEnd(&z);
	return state == Z_STREAM_END && !ferror(out);
}

static bool run(struct sl_export_job *job)
{
	struct profile profile = {0};
	uint64_t ended = job->merge->begin_ns, bytes;
	bool fine;

	sl_export_replay(job->merge);
	text_id(&profile, "");
	put_type(&profile, "alloc_objects", "count");
	put_type(&profile, "alloc_space", "bytes");
	put_type(&profile, "inuse_objects", "count");
	put_type(&profile, "inuse_space", "bytes");
	put_type(&profile, "peak_space", "bytes");
	for (unsigned i = 0; i < job->merge->count; i++) {
		struct sl_merge_process *p = &job->merge->processes[i];
		uint64_t end = sl_process_unix(&p->process, p->process.model->now_ns);

		ended = end > ended ? end : ended;
		for (const struct sl_site *site = NULL;
		     (site = sl_owners_next(&p->process, SL_DEVICE_ANY, SL_WEIGH_ANY, site, &bytes));)
			put_site(&profile, p, site);
	}
	sl_proto_uint(&profile.proto, TIME, job->merge->begin_ns);
	sl_proto_uint(&profile.proto, DURATION, ended - job->merge->begin_ns);
	sl_proto_uint(&profile.proto, DEFAULT_TYPE, text_id(&profile, "peak_space"));
	for (size_t i = 0; i < profile.texts.count; i++)
		sl_proto_text(&profile.proto, STRING_TABLE, profile.texts.item[i]);
	fine = write_gzip(&profile.proto, job->out);
	sl_proto_free(&profile.proto);
	sl_map_free(&profile.strings);
	sl_map_free(&profile.locations);
	free(profile.texts.item);
	return fine;
}

const struct sl_export sl_export_pprof = {.name = "pprof", .summary = "for go tool pprof", .models = true, .run = run};
