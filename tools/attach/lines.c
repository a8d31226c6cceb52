/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <stdio.h>

#include "agent/stacks/python_layout.h"

#define TABLE_WORDS    128	  /* of struct _Py_DebugOffsets: those that the layouts use */
#define TABLE_BYTES    (1u << 20) /* a line table larger than that is not read */
#define NAMED	       (1u << 14) /* frames whose id is kept */
#define HIDDEN	       UINT32_MAX /* in place of an id */
#define DEAD	       512
#define COPIES	       4096 /* of a code object's instructions, in free-threaded Python */
#define FUNCTION_BYTES 1024
#define FILE_BYTES     4096

struct named_line {
	struct sl_seen_line line;
	uint32_t id;
};

struct sl_lines {
	long pid;
	struct sl_probes *probes;
	struct sl_python_layout layout;
	uint64_t code_type, str_type, bytes_type;
	uint64_t loop, loop_bytes; /* 3.9: the evaluation loop, of which native stacks have no anchors */
	bool refused;
	const struct sl_seen_death *dead; /* memory is read from what was kept of this one; NULL: from the process */
	struct sl_seen_death *died[DEAD]; /* those that died last, perhaps before their stacks were named */
	unsigned deaths;
	struct named_line named[NAMED]; /* names that were given, by a hash of their lines */
};

/* --- the interpreter ------------------------------------------------------------------------------------ */

enum { RUNTIME, VERSION, CODE_TYPE, STR_TYPE, BYTES_TYPE, LOOP, SYMBOLS };
static const char *const names[SYMBOLS] = {"_PyRuntime",     "Py_Version",   "PyCode_Type",
					   "PyUnicode_Type", "PyBytes_Type", "_PyEval_EvalFrameDefault"};

struct interpreter {
	uint64_t bias, address[SYMBOLS], loop_bytes;
	unsigned minor; /* as the file of _PyRuntime is called: 3.9 and 3.10 have no Py_Version */
};

/* From the process's memory, or from what was kept of it when a code object died. */
static bool read_memory(const struct sl_lines *lines, void *out, uint64_t address, size_t bytes)
{
	struct iovec to = {out, bytes}, from = {(void *)(uintptr_t)address, bytes};
	const struct sl_seen_death *dead = lines->dead;

	for (unsigned i = 0; dead && i < SL_SEEN_PIECES; i++) {
		uint64_t at = address - dead->piece[i].address;

		if (at < dead->piece[i].bytes && bytes <= dead->piece[i].bytes - at) {
			memcpy(out, dead->data + i * SL_SEEN_PIECE + at, bytes);
			return true;
		}
	}
	return !dead && process_vm_readv((pid_t)lines->pid, &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

static void find_symbol(void *data, const char *name, const Elf64_Sym *symbol)
{
	struct interpreter *found = data;

	for (unsigned i = 0; i < SYMBOLS; i++)
		if (!found->address[i] && !strcmp(name, names[i])) {
			found->address[i] = found->bias + symbol->st_value;
			found->loop_bytes = i == LOOP ? symbol->st_size : found->loop_bytes;
		}
}

struct search {
	struct interpreter *found;
	char program[4096];
};

/* The program comes first, so that variables that were copied from libraries into it are found in it. */
static bool look_into(void *data, const struct sl_mapping *mapping)
{
	struct search *search = data;
	const char *name = mapping->name ? strrchr(mapping->name, '/') + 1 : "", *version = strstr(name, "python3.");
	bool had = search->found->address[RUNTIME];
	char path[SL_MAPPINGS_PATH];
	struct sl_exports image;

	sl_mappings_path(mapping, path);
	if (!*name || mapping->offset || (!version && strcmp(mapping->name, search->program)) || !sl_exports_open(&image, path))
		return false;
	search->found->bias = mapping->begin - sl_exports_base(&image);
	sl_exports_each(&image, find_symbol, search->found);
	sl_exports_close(&image);
	if (!had && search->found->address[RUNTIME] && version)
		search->found->minor = (unsigned)atoi(version + strlen("python3."));
	return false;
}

static bool find_interpreter(const struct sl_lines *lines, struct interpreter *found)
{
	struct search search = {.found = found};
	unsigned long version;
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%ld/exe", lines->pid);
	length = readlink(path, search.program, sizeof(search.program) - 1);
	search.program[length > 0 ? length : 0] = 0;
	sl_mappings_each(lines->pid, look_into, &search);
	if (found->address[VERSION] && read_memory(lines, &version, found->address[VERSION], sizeof(version)))
		found->minor = version >> 24 == 3 ? version >> 16 & 0xff : 0;
	return found->address[RUNTIME];
}

struct place {
	uint64_t address, offset;
	char path[SL_MAPPINGS_PATH];
};

static bool has_place(void *data, const struct sl_mapping *mapping)
{
	struct place *place = data;

	if (!mapping->name || place->address < mapping->begin || place->address >= mapping->end)
		return false;
	place->offset = place->address - mapping->begin + mapping->offset;
	sl_mappings_path(mapping, place->path);
	return true;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Where a code object has its name. */
static uint32_t function_of(const struct sl_python_layout *layout)
{
	return layout->qualname ? layout->qualname : layout->name;
}

/* NULL, or why not. */
static const char *begin(struct sl_lines *lines, const struct interpreter *found, uint64_t main)
{
	const struct sl_python_layout *layout = &lines->layout;
	struct place dealloc = {0};
	struct sl_seen_python python = {
		.threads = main + layout->threads,
		.finalizing = found->address[RUNTIME] + layout->finalizing,
		.thread_id = layout->thread_id,
		.tstate = layout->tstate,
		.current = layout->current,
		.through_cframe = layout->through_cframe,
		.previous = layout->previous,
		.code = layout->code,
		.instr = layout->instr,
		.entry = layout->entry,
		.style = layout->style,
		.cframe = layout->cframe,
		.cframe_previous = layout->cframe_previous,
		.function = function_of(layout),
		.file = layout->filename,
		.table = layout->linetable,
	};

	python.frame_bytes = larger(larger(python.previous, python.code), larger(python.instr, python.entry)) + 8;
	if (python.frame_bytes >= SL_SEEN_FRAME_BYTES)
		return "its frames are larger than expected";
	if (!read_memory(lines, &dealloc.address, lines->code_type + layout->dealloc, 8))
		return "its memory cannot be read";
	sl_mappings_each(lines->pid, has_place, &dealloc);
	if (!dealloc.offset)
		return "where its code objects end was not found";
	return sl_probes_walk(lines->probes, (int)lines->pid, python, dealloc.path, dealloc.offset);
}

struct sl_lines *sl_lines_new(long pid, struct sl_probes *probes, const char **why)
{
	struct interpreter found = {0};
	uint64_t table[TABLE_WORDS], main = 0;
	struct sl_lines *lines;

	*why = NULL;
	lines = sl_attach_must(calloc(1, sizeof(*lines)));
	lines->pid = pid;
	lines->probes = probes;
	if (!find_interpreter(lines, &found)) {
		free(lines);
		return NULL;
	}
	lines->code_type = found.address[CODE_TYPE];
	lines->str_type = found.address[STR_TYPE];
	lines->bytes_type = found.address[BYTES_TYPE];
	if (!read_memory(lines, table, found.address[RUNTIME], sizeof(table)))
		*why = "its memory cannot be read";
	else if (!lines->code_type || !lines->str_type || !lines->bytes_type ||
		 !sl_python_layout_find(&lines->layout, found.minor, table))
		*why = "its version is not known: they are known for CPython 3.9 to 3.15";
	else if (!read_memory(lines, &main, found.address[RUNTIME] + lines->layout.main, 8) || !main)
		*why = NULL; /* the interpreter has not started yet */
	else if (!(*why = begin(lines, &found, main))) {
		if (!lines->layout.cframe && lines->layout.style == SL_FRAME_OBJECTS) {
			lines->loop = found.address[LOOP];
			lines->loop_bytes = found.loop_bytes;
		}
		return lines;
	}
	free(lines);
	return NULL;
}

void sl_lines_free(struct sl_lines *lines)
{
	for (unsigned i = 0; lines && i < DEAD; i++)
		free(lines->died[i]);
	free(lines);
}

/* --- names ---------------------------------------------------------------------------------------------- */

static bool word_of(const struct sl_lines *lines, uint64_t object, uint32_t offset, uint64_t *value)
{
	return read_memory(lines, value, object + offset, 8);
}

static bool has_type(const struct sl_lines *lines, uint64_t object, uint64_t type)
{
	uint64_t seen;

	return word_of(lines, object, lines->layout.ob_type, &seen) && seen == type;
}

/* Bytes written; 0: it is no string. */
static size_t text_of(const struct sl_lines *lines, uint64_t code, uint32_t field, char *out, size_t max)
{
	const struct sl_python_layout *layout = &lines->layout;
	uint8_t object[128 + 4 * 4096] = {0};
	uint64_t str, length;

	if (!word_of(lines, code, field, &str) || !has_type(lines, str, lines->str_type) ||
	    !read_memory(lines, object, str, layout->str_ascii))
		return 0;
	length = sl_load_le(object + layout->str_length, 8);
	length = length < max ? length : max;
	/* tries 4, 2 and 1 bytes a character, behind either kind of head */
	for (unsigned width = 4; width; width /= 2)
		if (read_memory(lines, object, str, layout->str_compact + width * length))
			return sl_python_utf8(layout, object, out, max);
	return read_memory(lines, object, str, layout->str_ascii + length) ? sl_python_utf8(layout, object, out, max) : 0;
}

/* Free-threaded Python: each thread may run its own copy of the instructions.  The copy that holds `instr`, or 0. */
static uint64_t copy_with(const struct sl_lines *lines, uint64_t code, uint64_t instr, uint64_t bytes)
{
	uint64_t copies, count, copy;

	if (!lines->layout.tlbc || !word_of(lines, code, lines->layout.tlbc, &copies) || !copies ||
	    !word_of(lines, copies, 0, &count))
		return 0;
	for (uint64_t i = 1; i < count && i < COPIES; i++)
		if (word_of(lines, copies, (uint32_t)(8 + 8 * i), &copy) && copy && instr + 8 >= copy && instr < copy + bytes)
			return copy;
	return 0;
}

/* Offset of the instruction in its bytecode; -1: not begun.  False: it is not in the code object's. */
static bool offset_of(const struct sl_lines *lines, uint64_t code, uint64_t instr, int *offset)
{
	uint64_t units, base = code + lines->layout.bytecode;

	if (lines->layout.style == SL_FRAME_OBJECTS) {
		*offset = (int)(int64_t)instr * (lines->layout.lines == SL_LINETABLE ? 2 : 1);
		return (int64_t)instr >= -1 && (int64_t)instr < 100000000;
	}
	if (!word_of(lines, code, lines->layout.code_size, &units) || units > INT32_MAX / 2)
		return false;
	if (instr + 8 < base || instr >= base + 2 * units)
		base = copy_with(lines, code, instr, 2 * units);
	*offset = instr < base ? -1 : (int)(instr - base);
	return base;
}

static int line_of(const struct sl_lines *lines, uint64_t code, int first_line, int offset)
{
	const struct sl_python_layout *layout = &lines->layout;
	uint64_t table, bytes;
	uint8_t *copy;
	int line = -1;

	if (!word_of(lines, code, layout->linetable, &table) || !has_type(lines, table, lines->bytes_type) ||
	    !word_of(lines, table, layout->bytes_size, &bytes) || bytes > TABLE_BYTES)
		return -1;
	copy = sl_attach_must(malloc(bytes + 1));
	if (read_memory(lines, copy, table + layout->bytes_data, bytes))
		line = sl_python_line(layout->lines, copy, bytes, first_line, offset);
	free(copy);
	return line;
}

/* False: this is no code object, or the instruction is not in it. */
static bool read_code(const struct sl_lines *lines, uint64_t code, uint64_t instr, struct sl_python_text *text, char *function,
		      char *file)
{
	const struct sl_python_layout *layout = &lines->layout;
	int offset;

	if (!has_type(lines, code, lines->code_type) || !offset_of(lines, code, instr, &offset) ||
	    !read_memory(lines, &text->first_line, code + layout->firstlineno, 4))
		return false;
	text->function = function;
	text->file = file;
	text->function_bytes = text_of(lines, code, function_of(layout), function, FUNCTION_BYTES);
	text->file_bytes = text_of(lines, code, layout->filename, file, FILE_BYTES);
	text->line = line_of(lines, code, text->first_line, offset);
	return text->function_bytes && text->file_bytes;
}

/* A code object that lives does not look like one: the tables do not fit. */
static void refuse(struct sl_lines *lines, struct sl_recording *output)
{
	uint64_t still;

	if (!word_of(lines, lines->code_type, 0, &still)) /* the process has ended */
		return;
	lines->refused = true;
	sl_probes_walk_no_more(lines->probes, (int)lines->pid);
	sl_recording_note(output, "no Python stacks: the tables of its version do not fit this interpreter");
}

void sl_lines_died(struct sl_lines *lines, const struct sl_seen_death *death)
{
	struct sl_seen_death **slot = &lines->died[lines->deaths++ % DEAD];

	if (!*slot)
		*slot = sl_attach_must(malloc(sizeof(**slot)));
	**slot = *death;
}

/* The death with this number in the slot; NULL: it was not kept. */
static const struct sl_seen_death *death_of(const struct sl_lines *lines, uint32_t slot, uint64_t count)
{
	for (unsigned i = 0; i < DEAD && lines->died[i]; i++)
		if (lines->died[i]->code == SL_SEEN_LINE(SL_SEEN_LINE_CODE(lines->died[i]->code), count) &&
		    SL_SEEN_SLOT(SL_SEEN_LINE_CODE(lines->died[i]->code), lines->pid) == slot)
			return lines->died[i];
	return NULL;
}

/* Whether the code object of a line has outlived those of its slot that died since.  If not, *death is its own; NULL: not known. */
static bool outlived(const struct sl_lines *lines, const struct sl_seen_line *line, uint64_t deaths,
		     const struct sl_seen_death **death)
{
	uint64_t code = SL_SEEN_LINE_CODE(line->code);

	for (uint64_t count = SL_SEEN_LINE_DEATHS(line->code); SL_SEEN_LINE(code, count) != SL_SEEN_LINE(code, deaths); count++) {
		*death = death_of(lines, SL_SEEN_SLOT(code, lines->pid), count);
		if (!*death || SL_SEEN_LINE_CODE((*death)->code) == code)
			return false;
	}
	*death = NULL;
	return true;
}

/* HIDDEN: no traceback shows this frame. */
static uint32_t define(struct sl_recording *output, const struct sl_python_text *text)
{
	return sl_definition_is_hidden(text) ? HIDDEN : sl_recording_frame(output, text);
}

/* As define; 0: the tables do not fit. */
static uint32_t name(struct sl_lines *lines, struct sl_recording *output, const struct sl_seen_line *line)
{
	static const struct sl_python_text unknown = {.function = "", .file = "", .line = -1};
	uint64_t code = SL_SEEN_LINE_CODE(line->code), deaths;
	char function[FUNCTION_BYTES], file[FILE_BYTES];
	struct sl_python_text text = unknown;
	bool good = read_code(lines, code, line->instr, &text, function, file);

	deaths = sl_probes_deaths(lines->probes, lines->pid, code);
	if (SL_SEEN_LINE(code, deaths) != line->code)
		sl_probes_read_deaths(lines->probes);
	if (!outlived(lines, line, deaths, &lines->dead)) {
		good = lines->dead && read_code(lines, code, line->instr, &text, function, file);
		lines->dead = NULL;
		return define(output, good ? &text : &unknown);
	}
	if (good)
		return define(output, &text);
	refuse(lines, output);
	return 0;
}

uint32_t sl_lines_stack(struct sl_lines *lines, struct sl_recording *output, const struct sl_seen_lines *seen)
{
	uint32_t ids[SL_SEEN_LINES], count = 0;

	if (lines->refused || seen->count > SL_SEEN_LINES)
		return 0;
	if (lines->loop)
		sl_recording_loop(output, lines->loop, lines->loop + lines->loop_bytes);
	lines->loop = 0;
	for (uint32_t i = 0; i < seen->count; i++) {
		struct sl_seen_line line = {seen->line[i].code & ~SL_SEEN_LINE_ENTERED, seen->line[i].instr};
		struct named_line *named = &lines->named[((line.code ^ line.instr * 31) * 0x9e3779b97f4a7c15ull >> 40) % NAMED];

		if (!named->id || memcmp(&named->line, &line, sizeof(line))) {
			named->id = name(lines, output, &line);
			named->line = line;
		}
		if (!named->id)
			return 0;
		if (named->id != HIDDEN)
			ids[count++] = named->id | (seen->line[i].code & SL_SEEN_LINE_ENTERED ? SL_PYTHON_ENTERED : 0);
	}
	return sl_recording_python(output, ids, count, seen->truncated);
}
