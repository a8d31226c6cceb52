/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/roles.h"

#define PART (1u << 20) /* bytes of maps passed on at once; a reader refuses frames above 64 MB */

struct names {
	struct sl_trace *trace;
	struct sl_symbols *symbols;
	const char *only;
	struct sl_idmap seen;
	msgpack_sbuffer maps;
	uint32_t count;
	sl_native_names_take *take;
	void *context;
	bool fine;
};

static void put_text(msgpack_packer *pk, const char *text)
{
	msgpack_pack_str(pk, strlen(text));
	msgpack_pack_str_body(pk, text, strlen(text));
}

static void put_symbol(msgpack_packer *pk, const struct sl_symbol *symbol)
{
	msgpack_pack_map(pk, (size_t) !!symbol->function + !!symbol->file + !!symbol->line);
	if (symbol->function) {
		put_text(pk, "function");
		put_text(pk, symbol->function);
	}
	if (symbol->file) {
		put_text(pk, "file");
		put_text(pk, symbol->file);
	}
	if (symbol->line) {
		put_text(pk, "line");
		msgpack_pack_uint32(pk, symbol->line);
	}
}

static void put_map(struct names *names, uint64_t pc, const struct sl_symbol *found, unsigned count)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, &names->maps, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 3);
	put_text(&pk, "def");
	put_text(&pk, "native_frame");
	put_text(&pk, "pc");
	msgpack_pack_uint64(&pk, pc);
	put_text(&pk, "functions");
	msgpack_pack_array(&pk, count);
	for (unsigned i = 0; i < count; i++)
		put_symbol(&pk, &found[i]);
	names->count++;
}

static void hand_over(struct names *names)
{
	if (names->count && names->fine)
		names->fine = names->take(names->context, names->maps.data, names->maps.size, names->count);
	msgpack_sbuffer_clear(&names->maps);
	names->count = 0;
}

static void name(struct names *names, uint64_t pc)
{
	const struct sl_defs *defs = &names->trace->defs;
	int module = sl_defs_module(defs, pc);
	struct sl_symbol found[SL_SYMBOL_DEPTH];
	unsigned count;

	if (module < 0 || sl_idmap_get(&names->seen, pc, 0) || sl_defs_named(defs, pc))
		return;
	sl_idmap_set(&names->seen, pc, 1);
	count = sl_symbols_find(names->symbols, defs, &defs->modules.item[module], pc, found, SL_SYMBOL_DEPTH);
	for (unsigned i = 0; names->only && i < count; i++)
		if (found[i].function && strstr(found[i].function, names->only)) {
			found[0] = (struct sl_symbol){.function = (char *)names->only};
			put_map(names, pc, found, 1);
			break;
		}
	if (count && !names->only)
		put_map(names, pc, found, count);
	if (names->maps.size >= PART)
		hand_over(names);
}

/*
 * Looks up on this machine what the trace does not say: the names of each address in its native stacks, and of each caller of
 * an event without a stack. Reads the trace to its end. only: those with this in their function's name, which become this;
 * NULL: all.  An address in a stack is where the call returns to; the call is before it.
 */
static bool native_names_each(struct sl_trace *trace, struct sl_symbols *symbols, const char *only, sl_native_names_take *take,
			      void *context)
{
	struct names names = {.trace = trace, .symbols = symbols, .only = only, .take = take, .context = context, .fine = true};
	struct sl_order *order = sl_order_new(trace);
	const struct sl_item *item;

	msgpack_sbuffer_init(&names.maps);
	for (size_t i = 0; i < trace->defs.natives.count; i++)
		for (uint32_t k = 0; k < trace->defs.natives.item[i].count; k++)
			name(&names, trace->defs.natives.item[i].pcs[k] - 1);
	while (names.fine && (item = sl_order_next(order)))
		if (item->kind == SL_ITEM_EVENT && item->event->caller && !item->event->native && !item->event->python)
			name(&names, item->event->caller - 1);
	hand_over(&names);
	sl_order_free(order);
	msgpack_sbuffer_destroy(&names.maps);
	sl_idmap_free(&names.seen);
	return names.fine;
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define LEVEL 1 /* level 9 takes 17 MB of memory for each input and gains nothing */
#else
#define LEVEL 9
#endif

struct packer {
	FILE *out;
	ZSTD_CCtx *zstd, *frames;      /* zstd: of the pack; frames: of frames put into a trace, made when first needed */
	struct sl_symbols *symbols;    /* to name native frames; with --redact those alone that tell a role */
	struct sl_redaction redaction; /* key NULL: no mask */
	struct sl_map stems;	       /* of images, and how often each was wanted */
	struct sl_archived *packed;
	uint8_t bytes[1 << 16];
};

static bool push(struct packer *p, const void *bytes, size_t size, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {bytes, size, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {p->bytes, sizeof(p->bytes), 0};

		left = ZSTD_compressStream2(p->zstd, &out, &in, how);
		if (ZSTD_isError(left) || fwrite(p->bytes, 1, out.pos, p->out) != out.pos)
			return false;
	} while (in.pos < in.size || (how == ZSTD_e_end && left));
	return true;
}

static bool push_head(struct packer *p, const char *name, uint64_t size)
{
	uint32_t length = (uint32_t)strlen(name);

	return push(p, &length, sizeof(length), ZSTD_e_continue) && push(p, name, length, ZSTD_e_continue) &&
	       push(p, &size, sizeof(size), ZSTD_e_continue);
}

/* Appends `left` bytes of a file from offset `from` on.  Bytes that the file no longer has are written as zeroes. */
static bool push_part(struct packer *p, int fd, uint64_t from, uint64_t left)
{
	uint8_t bytes[1 << 16];
	bool fine = true;

	while (left && fine) {
		size_t wanted = left < sizeof(bytes) ? left : sizeof(bytes), got = sl_frames_read_at(fd, bytes, wanted, from);

		memset(bytes + got, 0, wanted - got);
		fine = push(p, bytes, wanted, ZSTD_e_continue);
		from += wanted;
		left -= wanted;
	}
	return fine;
}

/* The offset behind the header's frame, the first of each trace; 0: the file is damaged there or is no trace. */
static uint64_t behind_header(int fd)
{
	struct sl_frame_index index;
	bool whole = sl_frames_read_at(fd, &index, sizeof(index), 0) == sizeof(index) &&
		     sl_frame_index_valid(&index, sizeof(index)) && index.kind == SL_FRAME_HEADER;

	return whole ? sizeof(index) + index.compressed : 0;
}

/* What is behind the last segment is nobody's: a stranger's ring may be as large as it likes. */
static uint64_t ring_size(const struct stat *st)
{
	return (uint64_t)st->st_size < SL_RINGFILE_MOST ? (uint64_t)st->st_size : SL_RINGFILE_MOST;
}

/* Adds a file as a member, with `more` behind its header.  What the file grew by since it was opened is left out. */
static bool push_file(struct packer *p, const char *path, const char *name, bool ring, const char *more, size_t more_size)
{
	struct stat st;
	int fd = sl_paths_open_regular(path, &st);
	uint64_t size = fd < 0 ? 0 : ring ? ring_size(&st) : (uint64_t)st.st_size, head = more_size ? behind_header(fd) : 0;
	bool fine = fd >= 0;

	if (head > size || !head)
		head = more_size = 0;
	fine = fine && push_head(p, name, size + more_size) && push_part(p, fd, 0, head) &&
	       push(p, more, more_size, ZSTD_e_continue) && push_part(p, fd, head, size - head);
	if (fd >= 0)
		close(fd);
	return fine;
}

/* A file or memory that frames are put into. */
struct target {
	struct packer *packer;
	FILE *to;
};

/* Compresses a frame and writes it behind its index. */
static bool put_frame(void *context, struct sl_frame_index index, const void *plain, size_t size)
{
	const struct target *target = context;
	struct packer *p = target->packer;
	size_t bound = ZSTD_compressBound(size), packed;
	uint8_t *again = sl_memory_must(malloc(bound));
	bool fine;

	if (!p->frames)
		p->frames = sl_memory_must(ZSTD_createCCtx());
	ZSTD_CCtx_setParameter(p->frames, ZSTD_c_checksumFlag, 1);
	packed = ZSTD_compress2(p->frames, again, bound, plain, size);
	fine = !ZSTD_isError(packed);
	index.compressed = (uint32_t)packed;
	index.check = sl_frame_index_check(&index);
	fine = fine && fwrite(&index, sizeof(index), 1, target->to) == 1 && fwrite(again, 1, packed, target->to) == packed;
	free(again);
	return fine;
}

/* ---- names of native frames, which are looked up while the libraries are here */

static bool put_names(void *context, const void *maps, size_t size, uint32_t count)
{
	struct sl_frame_index index = {.magic = SL_FRAME_MAGIC, .size = sizeof(index) - 8, .kind = SL_FRAME_DEFS, .count = count};

	return put_frame(context, index, maps, size);
}

/* The frames with the names, malloc'ed; *size is 0 where nothing has a name. */
static char *names_of(struct packer *p, struct sl_trace *trace, const char *only, size_t *size)
{
	char *frames = NULL;
	struct target to = {p, open_memstream(&frames, size)};

	if (to.to && trace && p->symbols)
		native_names_each(trace, p->symbols, only, put_names, &to);
	if (!to.to || fclose(to.to))
		*size = 0;
	return frames;
}

/* ---- redaction: a trace is written anew */

/* An unnamed file in TMPDIR: the size of a masked file must be known before its first byte is packed. */
static FILE *temporary(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? tmpfile() : fdopen(fd, "w+");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* trace: NULL where no header of the image can be read; the pack then has an empty file, which its readers name. */
static bool add_redacted(struct packer *p, struct sl_trace *trace, const char *stem, const char *names, size_t names_size)
{
	FILE *made = temporary();
	struct target to = {p, made};
	char *name = sl_memory_print("%s" SL_TRACE_SUFFIX, stem);
	bool fine = made && (!trace || sl_redact_trace(&p->redaction, trace, put_frame, &to)) &&
		    fwrite(names, 1, names_size, made) == names_size && !fflush(made);

	if (names_size)
		sl_redact_keep(&p->redaction, SL_ROLES_WORKSPACE, strlen(SL_ROLES_WORKSPACE));

	fine = fine && push_head(p, name, (uint64_t)ftello(made)) && push_part(p, fileno(made), 0, (uint64_t)ftello(made));
	free(name);
	if (made)
		fclose(made);
	if (fine && trace && trace->ring.path) {
		struct sl_ringfile ring;

		sl_redact_ring(&ring, trace);
		name = sl_memory_print("%s" SL_RING_SUFFIX, stem);
		fine = push_head(p, name, sizeof(ring)) && push(p, &ring, sizeof(ring), ZSTD_e_continue);
		free(name);
	}
	if (trace && trace->damage.damaged && !trace->damage.readable)
		sl_damage_print(&trace->damage);
	p->packed->left_out |= !trace || (trace->damage.damaged && !trace->damage.readable);
	return fine;
}

static bool add_file(struct packer *p, const char *path, const char *stem, const char *rest, bool ring, const char *more,
		     size_t more_size)
{
	char *name;
	bool fine;

	if (access(path, F_OK) && errno == ENOENT) {
		sl_escape_print(stderr, "stormlog-analyze: %s: it went while the run was read (--keep)\n", path);
		p->packed->left_out = true;
		return true;
	}
	name = sl_memory_print("%s%s", stem, rest);
	fine = push_file(p, path, name, ring, more, more_size);
	free(name);
	return fine;
}

/* rank-RRRRR-PID and rank-RRRRR-PID-N: numbers alone. */
static bool is_plain_stem(const char *stem)
{
	static const char begin[] = "rank";
	unsigned parts = 0;

	if (strncmp(stem, begin, strlen(begin)))
		return false;
	for (stem += strlen(begin); *stem == '-'; parts++) {
		size_t digits = strspn(++stem, "0123456789");

		if (!digits || digits > 10)
			return false;
		stem += digits;
	}
	return !*stem && (parts == 2 || parts == 3);
}

/* Images of two folders may have one name: the second one's ends with -2, as that of a second recording of one process does. */
static void tell_apart(struct packer *p, char *stem)
{
	unsigned long long number = ++*sl_map_at(&p->stems, stem);
	char wanted[NAME_MAX + 1];

	if (number == 1)
		return;
	strcpy(wanted, stem);
	do
		snprintf(stem, NAME_MAX + 1, "%.200s-%llu", wanted, number++);
	while ((*sl_map_at(&p->stems, stem))++);
}

/* With what names of an image's files begin in the pack.  A masked one is a number: masked letters might meet those of another. */
static void stem_of_members(struct packer *p, char *out, const char *stem, size_t size, unsigned image)
{
	bool stays;

	snprintf(out, NAME_MAX + 1, "%.*s", (int)size, stem);
	stays = is_plain_stem(out);
	if (p->redaction.key && !stays)
		snprintf(out, NAME_MAX + 1, "masked-%05u", image);
	tell_apart(p, out);
	if (p->redaction.key && stays)
		sl_redact_keep(&p->redaction, out, strlen(out));
}

static bool add_image(struct packer *p, const struct sl_images *images, unsigned number)
{
	const struct sl_image *image = &images->images[number];
	const char *base = sl_paths_name(image->name);
	size_t stem_size = strlen(base) - strlen(SL_TRACE_SUFFIX), names_size = 0;
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(image, &damage);
	/* The ring may be in another folder. */
	const char *ring = trace && trace->ring.path ? trace->ring.path : image->ring;
	char stem[NAME_MAX + 1], *names = names_of(p, trace, p->redaction.key ? SL_ROLES_WORKSPACE : NULL, &names_size);
	bool fine = true;

	stem_of_members(p, stem, base, stem_size, number);
	if (p->redaction.key)
		fine = add_redacted(p, trace, stem, names, names_size);
	else if (ring)
		fine = add_file(p, ring, stem, SL_RING_SUFFIX, true, NULL, 0);
	for (unsigned i = 0; !p->redaction.key && i < image->file_count && fine; i++)
		fine = add_file(p, image->files[i], stem, sl_paths_name(image->files[i]) + stem_size, false, names,
				i ? 0 : names_size);
	free(names);
	p->packed->read += trace != NULL;
	if (trace)
		sl_trace_close(trace);
	else
		sl_damage_print(&damage);
	sl_damage_free(&damage);
	return fine;
}

bool sl_archive_write(FILE *out, const struct sl_images *images, int run, const uint8_t *key, struct sl_archived *packed)
{
	struct packer p = {
		.out = out, .zstd = ZSTD_createCCtx(), .redaction = {.key = key}, .symbols = sl_symbols_new(), .packed = packed};
	uint32_t end = 0;
	bool fine = p.zstd && fwrite(SL_PACK_MAGIC, 1, sizeof(SL_PACK_MAGIC), out) == sizeof(SL_PACK_MAGIC);

	ZSTD_CCtx_setParameter(p.zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(p.zstd, ZSTD_c_checksumFlag, 1);
	*packed = (struct sl_archived){0};
	for (unsigned i = 0; i < images->image_count && fine; i++)
		if (sl_images_is_of(images, i, run))
			fine = add_image(&p, images, i);
	fine = fine && push(&p, &end, sizeof(end), ZSTD_e_end);
	packed->left_out |= sl_missing_say_names();
	ZSTD_freeCCtx(p.zstd);
	ZSTD_freeCCtx(p.frames);
	sl_symbols_free(p.symbols);
	if (key && fine)
		sl_redact_say(&p.redaction, stderr);
	fine = fine && !(key && (fflush(stderr) || ferror(stderr))); /* it could not be reviewed */
	sl_redact_free(&p.redaction);
	sl_map_free(&p.stems);
	return fine;
}
