/* SPDX-License-Identifier: MIT */
/* Longer than other files: one walk over a trace decides for each kind of text if it is a name, and all share one table. */
#include "analyzer/exports/export.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/hash.h"
#include "analyzer/base/memory.h"
#include "analyzer/exports/known.h"
#include "analyzer/report/roles.h"
#include "analyzer/trace/inner.h"
#include "common/maps.h"

#define LETTERS	  10	     /* of a replaced word */
#define PART	  (1u << 20) /* bytes of definitions in one frame; a reader refuses frames above 64 MB */
#define PAIRS_MAX 1024	     /* of a map; no agent writes more */

/* ---- words */

void sl_redact_keep(struct sl_redaction *redaction, const char *word, size_t size)
{
	char *copy = sl_memory_must(strndup(word, size));

	sl_map_intern(&redaction->public_names, copy);
	free(copy);
}

static void append(struct sl_redaction *redaction, const char *text, size_t size)
{
	msgpack_sbuffer_write(&redaction->text, text, size);
}

static void append_kept(struct sl_redaction *redaction, const char *text, size_t size)
{
	sl_redact_keep(redaction, text, size);
	append(redaction, text, size);
}

/*
 * Without the key a word cannot be found by trying all likely ones.  The letters make no hex number (symbols.c), and no English
 * word that would tell a role.
 */
static void replace_word(struct sl_redaction *redaction, const char *word, size_t size)
{
	struct sl_digest digest;
	char hex[LETTERS + 1];

	if (!size)
		return;
	sl_hash_sha256_begin(&digest);
	sl_hash_add(&digest, redaction->key, SL_REDACT_KEY);
	sl_hash_add(&digest, word, size);
	sl_hash_sha256_end(&digest, LETTERS, hex);
	for (unsigned i = 0; i < LETTERS; i++)
		hex[i] = "ghjklmnpqrstvwxz"[hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10];
	append(redaction, hex, LETTERS);
}

/* True: the word was appended as it is. */
static bool put_public(struct sl_redaction *redaction, const char *word, size_t size)
{
	bool public = sl_public_is(word, size);

	if (public)
		append_kept(redaction, word, size);
	return public;
}

static size_t until(const char *text, size_t size, const char *separators)
{
	size_t at = 0;

	while (at < size && !(text[at] && strchr(separators, text[at])))
		at++;
	return at;
}

/* roles: words by which roles are found stay, so SecretNet.forward becomes ghjklmnpqr.forward. */
static void put_part(struct sl_redaction *redaction, const char *part, size_t size, bool roles)
{
	size_t from = 0, word_size;

	if (put_public(redaction, part, size))
		return;
	word_size = roles ? sl_roles_word(part, size, &from) : 0;
	if (word_size) {
		replace_word(redaction, part, from);
		append_kept(redaction, part + from, word_size);
		part += from + word_size;
		size -= from + word_size;
	}
	replace_word(redaction, part, size);
}

/*
 * A public word may have dots: libcublas.so.13.  With tabs it is of what holds a block (analyzer/report/held_by.c): how it holds it
 * stays, and each name of its path is masked.
 */
static void put_words(struct sl_redaction *redaction, const char *text, size_t size, bool roles)
{
	static const char how[] = " global attribute local closure default cache graph cycle list tuple dict set frozenset deque ";
	bool holder = memchr(text, '\t', size);

	for (size_t at = 0, word; at < size; at += word + 1) {
		word = until(text + at, size - at, "/ =#\t");
		if (holder && sl_public_is_one_of(text + at, word, how))
			append_kept(redaction, text + at, word);
		else if (!put_public(redaction, text + at, word))
			for (size_t part, from = at; from < at + word; from += part + 1) {
				part = until(text + from, at + word - from, holder ? ".:[*]()" : ".:");
				put_part(redaction, text + from, part, roles);
				append(redaction, text + from + part, from + part < at + word);
			}
		append(redaction, text + at + word, at + word < size);
	}
}

/* The package and file of a public package stay: /ghjklmnpqr/site-packages/torch/nn/functional.py. */
static void put_path(struct sl_redaction *redaction, const char *path, size_t size)
{
	size_t public = sl_public_file(path, size);

	put_words(redaction, path, public, false);
	if (public < size)
		sl_redact_keep(redaction, path + public, until(path + public, size - public, "/"));
	append(redaction, path + public, size - public);
}

/* ---- texts, by their key */

/* True: it is the value of the key, and not of a second key of that name, which no reader reads. */
static bool is(const msgpack_object *map, const msgpack_object *key, const msgpack_object *value, const char *name)
{
	return map && sl_object_is_text(key, name) && sl_object_get(map, name) == value;
}

static bool is_public_file(struct sl_span file)
{
	return file.text && sl_public_file(file.text, file.size) < file.size;
}

/* The file's name is put in its own turn, and says what stayed. */
static bool is_of_public_file(const msgpack_object *map, const msgpack_object *key, const msgpack_object *value)
{
	struct sl_span text = {value->via.str.ptr, value->via.str.size}, path;
	const char *name;

	if (is(map, key, value, "function"))
		return is_public_file(sl_object_text(map, "file"));
	if (!is(map, key, value, "build_id") || text.size > 40 ||
	    sl_public_span(text.text, text.size, "0123456789abcdef") < text.size)
		return false;
	path = sl_object_text(map, "path");
	name = path.text ? memrchr(path.text, '/', path.size) : NULL;
	return is_public_file(path) || (name && sl_public_is(name + 1, (size_t)(path.text + path.size - name) - 1));
}

/* True: words of the recorder and at most one short number: "c10 2.13". */
static bool are_own_words(const char *text, size_t size)
{
	bool numbered = false;

	for (size_t at = 0, length; at < size; at += length + 1) {
		length = until(text + at, size - at, " ");
		if (!length || sl_public_is(text + at, length))
			continue;
		if (numbered || !sl_public_numbers(text + at, length, 3, 5))
			return false;
		numbered = true;
	}
	return true;
}

/* The header's description of the format: a trace whose names are replaced here cannot be read. */
static bool is_of_format(const msgpack_object *key, const msgpack_object *value)
{
	return sl_public_is_one_of(key->via.str.ptr, key->via.str.size, " format fields verbs kinds families flags hooks ") &&
	       sl_known_as(value->via.str.ptr, value->via.str.size);
}

/* What the recorder says of itself and of the machine: its version, the size of --limit, "NVIDIA H200", capabilities. */
static bool is_own(const msgpack_object *map, const msgpack_object *key, const msgpack_object *value)
{
	const char *text = value->via.str.ptr;
	size_t size = value->via.str.size, digits = sl_public_span(text, size, "0123456789.");
	struct sl_span name = {0};

	if (is(map, key, value, "agent"))
		return sl_public_version(text, size);
	if (is(map, key, value, "limit"))
		return digits && size <= 16 && digits + sl_public_span(text + digits, size - digits, "KMGTiB") == size;
	if (is(map, key, value, "name"))
		return size < 64 && ((size > 7 && !memcmp(text, "NVIDIA ", 7)) || (size > 4 && !memcmp(text, "AMD ", 4)));
	if (is(map, key, value, "value"))
		name = sl_object_text(map, "name");
	if (name.text && sl_public_is_one_of(name.text, name.size, " free_memory_asked ")) /* when, in ns */
		return size <= 20 && sl_public_span(text, size, "0123456789") == size;
	return name.text && sl_public_is_one_of(name.text, name.size, sl_public_capabilities) && are_own_words(text, size);
}

/* Sizes of a dry run's card. */
static const char card_keys[] = " context_high context_low kernels_high kernels_low measured memory ";

static bool is_of_card(const msgpack_object *key, const msgpack_object *value)
{
	size_t size = value->via.str.size;

	return sl_public_is_one_of(key->via.str.ptr, key->via.str.size, card_keys) && size <= 20 &&
	       sl_public_span(value->via.str.ptr, size, "0123456789") == size;
}

/*
 * What the recorder says of a dry run (dry/python, dry/unsure.h): names of what it says, numbers, and how a value was read. Paths
 * of the program's files are masked.  False: it is something else.
 */
static bool put_dry(struct sl_redaction *redaction, const msgpack_object *map, const msgpack_object *key,
		    const msgpack_object *value)
{
	static const char *const prefixes[] = {"dry.read.", "dry.unknown.", "dry.unsure.", "dry.steps", "dry.late"};
	struct sl_span name =
		map && sl_object_is_text(sl_object_get(map, "def"), "metadata") ? sl_object_text(map, "key") : (struct sl_span){0};
	const char *text = value->via.str.ptr, *own = NULL;
	size_t size = value->via.str.size, from = 0;

	for (size_t i = 0; i < SL_COUNT(prefixes) && !own && name.text; i++)
		if (name.size >= strlen(prefixes[i]) && !memcmp(name.text, prefixes[i], strlen(prefixes[i])))
			own = prefixes[i];
	if (!own)
		return false;
	if (is(map, key, value, "key"))
		from = strlen(own);
	else if (is(map, key, value, "value"))
		from = sl_public_span(text, size, own == prefixes[0] ? "abcdefghijklmnopqrstuvwxyz0123456789 ," : "0123456789");
	append(redaction, text, from);
	put_path(redaction, text + from, size - from);
	return true;
}

static void put_text(struct sl_redaction *redaction, msgpack_packer *pk, const msgpack_object *map, const msgpack_object *key,
		     const msgpack_object *value)
{
	const char *text = value->via.str.ptr;
	size_t size = value->via.str.size;

	msgpack_sbuffer_clear(&redaction->text);
	if (is_of_format(key, value) || is_of_public_file(map, key, value) || is_of_card(key, value))
		append(redaction, text, size);
	else if (is_own(map, key, value))
		append_kept(redaction, text, size);
	else if (is(map, key, value, "file") || is(map, key, value, "path"))
		put_path(redaction, text, size);
	else if (!put_dry(redaction, map, key, value))
		put_words(redaction, text, size, sl_object_is_text(key, "function") || sl_object_is_text(key, "text"));
	msgpack_pack_str(pk, redaction->text.size);
	msgpack_pack_str_body(pk, redaction->text.data, redaction->text.size);
}

/* ---- maps */

/* Keys of definition maps and of the header (doc/trace-format.md), and settings and variables that the agent records by name. */
static const char keys[] =
	" agent amdgpu architecture argv base begin begin_ns bias blocks boot_id build_id c_boundaries calls cgroup_bytes"
	" cgroup_id cgroup_limit_bytes cgroup_peak_bytes columns count cpus cwd def device distribution dry end end_ns"
	" environment events exe families family fields file first first_line flags follow format frames free_bytes function"
	" functions handle hooks host how id job_id kernel key kinds line local_rank log_next memory_bytes metadata monotonic_ns"
	" name next ns nvidia_driver oom_kills ordinal path pc pci pcs peaks pid pids ppid process_bytes process_start processes"
	" rank restart ring removed rss_bytes run_id seq settings source started_ns status system tag text thread threads"
	" through tid total_bytes truncated until_ns used_bytes uuid value verbs version vm_bytes vm_limit_bytes wakes watcher"
	" watcher_start why world_size"
#define OPTION(name, type, flag, letter, variable, ...) " " #name " " variable
#define INTERNAL(variable, help)			" " variable
#define ENVIRONMENT(variable)				" " variable
#include "agent/process/options.def"
	" ";

/* Keys under which an agent writes only texts.  A number there may be letters of a damaged text, or what a program told. */
static const char texts_only[] = " argv environment key metadata settings system value ";

static bool put(struct sl_redaction *redaction, msgpack_packer *pk, const msgpack_object *map, const msgpack_object *key,
		const msgpack_object *value, bool texts);

static bool is_key(const msgpack_object *text)
{
	return sl_public_is_one_of(text->via.str.ptr, text->via.str.size, keys) ||
	       sl_public_is_one_of(text->via.str.ptr, text->via.str.size, card_keys);
}

/* False: a key is no text.  In a damaged ring, letters of a text may have been read as numbers. */
static bool put_map(struct sl_redaction *redaction, msgpack_packer *pk, const msgpack_object *map, bool texts)
{
	const msgpack_object_kv *pairs = map->via.map.ptr;
	uint32_t count = 0;
	bool sound = map->via.map.size <= PAIRS_MAX;

	for (uint32_t i = 0; sound && i < map->via.map.size; i++) {
		sound = pairs[i].key.type == MSGPACK_OBJECT_STR;
		count += sound && is_key(&pairs[i].key);
	}
	msgpack_pack_map(pk, count);
	for (uint32_t i = 0; sound && i < map->via.map.size; i++)
		if (is_key(&pairs[i].key)) {
			msgpack_pack_object(pk, pairs[i].key);
			sound = put(redaction, pk, map, &pairs[i].key, &pairs[i].val, texts);
		}
	return sound;
}

static bool put(struct sl_redaction *redaction, msgpack_packer *pk, const msgpack_object *map, const msgpack_object *key,
		const msgpack_object *value, bool texts)
{
	bool sound = true, addresses = value->type == MSGPACK_OBJECT_BIN && is(map, key, value, "pcs") &&
				       sl_object_is_text(sl_object_get(map, "def"), "native_stack");

	texts |= sl_public_is_one_of(key->via.str.ptr, key->via.str.size, texts_only);
	if (value->type == MSGPACK_OBJECT_STR) {
		put_text(redaction, pk, map, key, value);
	} else if (addresses) {
		msgpack_pack_bin(pk, value->via.bin.size & ~7u);
		msgpack_pack_bin_body(pk, value->via.bin.ptr, value->via.bin.size & ~7u);
	} else if (value->type == MSGPACK_OBJECT_ARRAY) {
		msgpack_pack_array(pk, value->via.array.size);
		for (uint32_t i = 0; sound && i < value->via.array.size; i++)
			sound = put(redaction, pk, NULL, key, &value->via.array.ptr[i], texts);
	} else if (value->type == MSGPACK_OBJECT_MAP) {
		sound = put_map(redaction, pk, value, texts);
	} else if (texts || value->type == MSGPACK_OBJECT_BIN || value->type == MSGPACK_OBJECT_EXT) {
		msgpack_pack_nil(pk);
	} else {
		msgpack_pack_object(pk, *value);
	}
	return sound;
}

/* ---- frames */

struct writer {
	struct sl_redaction *redaction;
	struct sl_trace *trace;
	sl_redact_take *take;
	void *context;
	struct sl_frame_index index; /* of the frame in work */
	msgpack_sbuffer maps;	     /* its definitions */
	uint64_t end_ns;	     /* of the trace so far */
	bool fine;
};

static void begin_frame(struct writer *w, uint32_t kind, uint64_t begin_ns, uint64_t end_ns)
{
	w->index = (struct sl_frame_index){
		.magic = SL_FRAME_MAGIC, .size = sizeof(w->index) - 8, .kind = kind, .begin_ns = begin_ns, .end_ns = end_ns};
	w->end_ns = end_ns > w->end_ns ? end_ns : w->end_ns;
}

static void end_frame(struct writer *w)
{
	if (w->index.count && w->fine)
		w->fine = w->take(w->context, w->index, w->maps.data, w->maps.size);
	msgpack_sbuffer_clear(&w->maps);
	w->index.count = 0;
}

/* Adds the whole maps in `bytes` to the frame. */
static void put_maps(void *data, const uint8_t *bytes, size_t size)
{
	struct writer *w = data;
	msgpack_packer pk;
	msgpack_object object;
	size_t at = 0;

	msgpack_packer_init(&pk, &w->maps, msgpack_sbuffer_write);
	while (sl_object_parse(&object, &w->trace->zone, bytes, size, &at)) {
		size_t before = w->maps.size;

		if (object.type == MSGPACK_OBJECT_MAP && put_map(w->redaction, &pk, &object, false)) {
			w->index.count++;
		} else {
			w->maps.size = before;
			sl_damage_add(&w->trace->damage, w->trace->name, -1, "a definition that no agent wrote is left out");
		}
		msgpack_zone_clear(&w->trace->zone);
		if (w->maps.size >= PART)
			end_frame(w);
	}
}

static void put_block(struct writer *w, struct sl_block_columns *columns, uint32_t thread, uint64_t first, uint64_t next)
{
	uint32_t count = columns->count;
	size_t size = sl_block_end(columns, thread, first, next);

	begin_frame(w, SL_FRAME_BLOCK, columns->begin_ns, columns->end_ns);
	w->index.thread = thread;
	w->index.first = first;
	w->index.next = next;
	w->index.count = count;
	w->fine = w->fine && w->take(w->context, w->index, columns->bytes, size);
	w->index.count = columns->count = 0;
}

static void put_frame(struct writer *w, struct sl_block_columns *columns, const struct sl_frames *file,
		      const struct sl_zstd_frame *frame)
{
	struct sl_trace *trace = w->trace;
	const struct sl_event *event;
	struct sl_block block;
	const char *wrong;

	if (!sl_frame_read(&trace->inflate, file, frame, &trace->damage)) {
		trace->damage.lost_events += frame->kind == SL_FRAME_BLOCK ? frame->count : 0;
	} else if (frame->kind != SL_FRAME_BLOCK) {
		begin_frame(w, frame->kind, frame->begin_ns, frame->end_ns);
		put_maps(w, trace->inflate.out, trace->inflate.bytes);
		end_frame(w);
	} else if ((wrong = sl_block_decode(&block, trace->inflate.out, trace->inflate.bytes))) {
		sl_damage_add(&trace->damage, file->path, (int64_t)frame->offset, "block: %s", wrong);
		trace->damage.lost_events += frame->count;
	} else {
		while ((event = sl_block_next(&block)))
			sl_block_add(columns, event, 1);
		put_block(w, columns, block.thread, block.first, block.next);
	}
}

/* The events of a thread that the files lack. */
static void put_slots(struct writer *w, struct sl_block_columns *columns, uint32_t thread, uint64_t from)
{
	const struct sl_slot *slot, *second;
	struct sl_ring_walk walk;
	struct sl_event event;

	sl_ring_walk(&walk, &w->trace->ring, thread, from);
	while (w->fine && (slot = sl_ring_next(&walk, &second))) {
		const struct sl_hook *hook = sl_header_hook(&w->trace->header, sl_slot_api(slot));

		sl_slot_decode(&event, slot, second, hook ? hook->verb : SL_VERB_CALL);
		sl_block_add(columns, &event, 1);
		if (columns->count == SL_BLOCK_EVENTS) {
			put_block(w, columns, thread, from, walk.seq);
			from = walk.seq;
		}
	}
	if (columns->count)
		put_block(w, columns, thread, from, walk.seq);
}

static void put_ring(struct writer *w, struct sl_block_columns *columns)
{
	const struct sl_trace *trace = w->trace;

	begin_frame(w, SL_FRAME_DEFS, 0, 0);
	sl_ring_defs(&trace->ring, trace->log_next, put_maps, w);
	end_frame(w);
	for (unsigned i = 0; i < trace->ring.segments; i++) {
		uint32_t thread = sl_ring_thread(&trace->ring, i);
		bool done = false;

		for (unsigned k = 0; k < i; k++)
			done |= sl_ring_thread(&trace->ring, k) == thread;
		if (thread && !done)
			put_slots(w, columns, thread,
				  sl_incomplete_next(
					  &(struct sl_files){trace->files, trace->file_count, &trace->folded, trace->log_next},
					  thread));
	}
}

/* In the new trace nothing is damaged, so that it has to say what is missing. */
static void put_gap(struct writer *w)
{
	uint8_t bytes[256];
	struct sl_definition gap =
		sl_definition_gap(bytes, sizeof(bytes), w->trace->damage.lost_events, w->trace->header.monotonic_ns, w->end_ns,
				  "parts of the run could not be read when it was packed", true);

	w->fine &= sl_definition_end(&gap);
	begin_frame(w, SL_FRAME_DEFS, 0, 0);
	msgpack_sbuffer_write(&w->maps, (const char *)gap.pack.bytes, gap.pack.used);
	w->index.count = 1;
	end_frame(w);
}

static bool has_header(const struct sl_trace *trace)
{
	return trace->file_count && trace->files[0].count && trace->files[0].frame[0].kind == SL_FRAME_HEADER;
}

bool sl_redact_trace(struct sl_redaction *redaction, struct sl_trace *trace, sl_redact_take *take, void *context)
{
	struct writer w = {.redaction = redaction, .trace = trace, .take = take, .context = context, .fine = true};
	struct sl_block_columns columns;
	void *block = sl_memory_must(malloc(SL_BLOCK_BYTES(SL_BLOCK_EVENTS)));
	bool spent = false;

	sl_block_begin(&columns, block, SL_BLOCK_EVENTS);
	sl_budget_resume();
	sl_budget_begin(&trace->budget, trace->disk_bytes);
	if (!has_header(trace) && trace->ring.header_map) {
		begin_frame(&w, SL_FRAME_HEADER, 0, 0);
		put_maps(&w, trace->ring.header_map, trace->ring.head->header_bytes);
		end_frame(&w);
	}
	for (unsigned f = 0; f < trace->file_count; f++)
		for (size_t i = 0; w.fine && !spent && i < trace->files[f].count; i++) {
			const struct sl_zstd_frame *frame = &trace->files[f].frame[i];

			spent = sl_trace_spent(trace, frame);
			if (!spent && frame->compressed)
				put_frame(&w, &columns, &trace->files[f], frame);
		}
	if (trace->ring.path && w.fine)
		put_ring(&w, &columns);
	if (trace->damage.damaged && !trace->damage.readable)
		put_gap(&w);
	msgpack_sbuffer_destroy(&w.maps);
	free(block);
	return w.fine;
}

void sl_redact_ring(struct sl_ringfile *ring, const struct sl_trace *trace)
{
	const struct sl_ringfile *from = trace->ring.head;

	*ring = (struct sl_ringfile){
		.magic = SL_RINGFILE_MAGIC,
		.version = SL_RINGFILE_VERSION,
		.segment_bytes = SL_SEGMENT_BYTES,
		.state = atomic_load(&from->state),
		.stopped = atomic_load(&from->stopped),
		.gap_events =
			atomic_load(&from->gap_events) + trace->damage.lost_events, /* a gap of the new trace has the latter */
		.gap_begin_ns = atomic_load(&from->gap_begin_ns),
		.gap_end_ns = atomic_load(&from->gap_end_ns),
		.asleep = atomic_load(&from->asleep),
		.asleep_since_ns = atomic_load(&from->asleep_since_ns),
		.asleep_written = atomic_load(&from->asleep_written),
		.asleep_begun = atomic_load(&from->asleep_begun),
		.asleep_begun_bytes = atomic_load(&from->asleep_begun_bytes),
		.asleep_ended = atomic_load(&from->asleep_ended),
		.asleep_ended_bytes = atomic_load(&from->asleep_ended_bytes),
		.ended = atomic_load(&from->ended),
		.leaves_by_call = from->leaves_by_call,
	};
}

void sl_redact_say(const struct sl_redaction *redaction, FILE *out)
{
	const char **list = sl_map_sorted(&redaction->public_names);

	sl_escape_print(out, "not masked:");
	for (size_t i = 0; i < redaction->public_names.count; i++)
		sl_escape_print(out, " %s", list[i]);
	fputs(redaction->public_names.count ? "\n" : " no name\n", out);
	free(list);
}

void sl_redact_free(struct sl_redaction *redaction)
{
	sl_map_free(&redaction->public_names);
	msgpack_sbuffer_destroy(&redaction->text);
}
