/* SPDX-License-Identifier: MIT */
#include "analyzer/symbols/symbols.h"

#include "analyzer/base/text_join.h"
#include "analyzer/base/paths.h"

/* True: an object that only passes a request on: CUDA, HIP, libc, libffi. */
static bool is_bridge(const char *path)
{
	static const char *const names[] = {
		"libcudart",	"libcuda.so",	 "libcuda-", "libamdhip64", "libhsa-runtime64",
		"libhiprtc",	"libstormlog",	 "libffi",   "_ctypes",	    "ld-linux",
		"libnvidia-ml", "librocm_smi64", "libc.so",  "libc-",	    "libpthread",
	};
	const char *name = sl_paths_name(path);

	for (size_t i = 0; name && i < SL_COUNT(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* True: the interpreter itself, its own modules included.  Memory that a script asks for through ctypes belongs to the script. */
static bool is_interpreter(const char *path)
{
	const char *name = sl_paths_name(path);

	if (!name)
		return false;
	if (!strncmp(name, "libpython", 9) || !strncmp(name, "libpypy", 7) || strstr(path, "/lib-dynload/"))
		return true;
	return !strncmp(name, "python", 6) && strspn(name + 6, "0123456789.dt") == strlen(name + 6); /* python3.13t */
}

bool sl_stacks_passes_on(const char *module)
{
	return is_bridge(module) || is_interpreter(module);
}

const char *sl_stacks_program(const struct sl_header *header)
{
	for (unsigned i = 0; i < header->argc; i++) {
		const char *base = sl_paths_name(header->argv[i]);
		size_t size = strlen(base);

		if (size > 3 && !strcmp(base + size - 3, ".py"))
			return base;
		if (!strcmp(header->argv[i], "-m") && i + 1 < header->argc)
			return header->argv[i + 1];
	}
	if (header->exe)
		return sl_paths_name(header->exe);
	return header->argc ? sl_paths_name(header->argv[0]) : "the program";
}

/* The libraries of a dry run that allocate have the names of those whose place they take (dry/). */
static const char *name_of(const struct sl_module *module)
{
	const char *name = sl_paths_name(module->path);

	return !strncmp(name, "dry-cublas-", 11) ? "libcublas.so" : !strncmp(name, "dry-nccl-", 9) ? "libnccl.so" : name;
}

const char *sl_stacks_library(const struct sl_defs *defs, const struct sl_header *header, struct sl_stack stack)
{
	const struct sl_native_stack *native = sl_defs_native(defs, stack.native);
	const struct sl_module *module = sl_defs_module_at(defs, stack.caller);

	if (module && !sl_stacks_passes_on(module->path))
		return name_of(module);
	if (!native && stack.caller >> SL_MAPPED_BITS == SL_MAPPED_MOVED)
		return "a library that is gone"; /* or it was loaded a moment later */
	for (uint32_t i = 0; native && i < native->count; i++) {
		module = sl_defs_module_at(defs, native->pcs[i] - 1);
		if (!module || is_bridge(module->path))
			continue;
		/* frames beyond the interpreter started the script */
		return is_interpreter(module->path) ? sl_stacks_program(header) : name_of(module);
	}
	return sl_stacks_program(header);
}

/* ---- mixed stacks */

struct out {
	struct sl_stack_frame *frames;
	unsigned count;
	bool entered[SL_STACK_MAX]; /* Python frames that were entered from C; there is no room for later ones */
};

static struct sl_stack_frame *add(struct out *out)
{
	if (out->count == SL_STACK_MAX)
		return NULL;
	out->frames[out->count] = (struct sl_stack_frame){0};
	return &out->frames[out->count++];
}

/* Python frames from *at up to the next C boundary; with `rest` all that are left. */
static void add_python(struct out *out, const struct sl_defs *defs, const struct sl_python_stack *stack, uint32_t *at, bool rest)
{
	while (stack && *at < stack->count) {
		const struct sl_python_frame *frame = sl_defs_frame(defs, stack->frames[*at]);
		struct sl_stack_frame *now = add(out);

		if (!now)
			return;
		now->python = !frame || frame->file != UINT32_MAX || !frame->function; /* those of a snapshot may be C++ */
		now->function = frame ? frame->function : NULL;
		now->file = frame ? sl_defs_file(defs, frame) : NULL;
		now->line = frame ? frame->line : 0;
		now->passes_on = now->file && !strncmp(now->file, "<frozen ", 8); /* frames of importlib */
		/* neighbouring frames are often in one file */
		now->own = now > out->frames && now[-1].python && now[-1].file == now->file ? now[-1].own
											    : !sl_stacks_is_installed(now->file);
		if (now->file && strstr(now->file, "/stormlog_dry")) /* a dry run's own, which the job does not have */
			out->count--;
		if (out->entered[(*at)++] && !rest)
			return;
	}
}

static bool is_eval(const struct sl_defs *defs, uint64_t pc)
{
	for (size_t i = 0; i < defs->evals.count; i++)
		if (pc >= defs->evals.item[i].begin && pc < defs->evals.item[i].end)
			return true;
	return false;
}

/* True: an object or header of the system, of Rust, of an installed package, or of PyTorch wherever it was built. */
static bool is_systems(const char *path)
{
	const char *name = sl_paths_name(path);

	return !path || !strncmp(name, "libc10", 6) || !strncmp(name, "libtorch", 8) || !strncmp(path, "/usr/", 5) ||
	       !strncmp(path, "/rustc/", 7) || !strncmp(path, "/lib", 4) || strstr(path, "site-packages/") ||
	       strstr(path, "dist-packages/");
}

/* Takes the names that a pack contains, since it was made where the libraries are; else those found on this machine. */
static unsigned names_of(const struct sl_defs *defs, struct sl_symbols *symbols, const struct sl_module *module, uint64_t pc,
			 struct sl_symbol *found)
{
	const struct sl_named *named = symbols ? sl_defs_named(defs, pc) : NULL;

	if (named)
		memcpy(found, named->symbols, named->count * sizeof(*found));
	return named ? named->count : symbols && module ? sl_symbols_find(symbols, defs, module, pc, found, SL_SYMBOL_DEPTH) : 0;
}

static void add_native(struct out *out, const struct sl_defs *defs, struct sl_symbols *symbols, uint64_t pc)
{
	struct sl_symbol found[SL_SYMBOL_DEPTH];
	const struct sl_module *module = sl_defs_module_at(defs, pc);
	unsigned count = names_of(defs, symbols, module, pc, found);

	if (module && strstr(module->path, "libstormlog"))
		return;
	for (unsigned i = 0; i < (count ? count : 1); i++) {
		struct sl_stack_frame *now = add(out);

		if (!now)
			return;
		now->module = module ? name_of(module) : NULL;
		now->offset = module ? pc - module->base : SL_MAPPED_REAL(pc);
		now->passes_on = module && sl_stacks_passes_on(module->path);
		now->bare = module && !now->passes_on && !is_systems(module->path) && !(count && found[i].line);
		if (!count)
			return;
		now->function = found[i].function;
		now->file = found[i].file;
		now->line = found[i].line;
		now->inlined = i + 1 < count;
		now->own = now->line && module && !now->passes_on && !is_systems(module->path) && !is_systems(now->file);
		now->passes_on |= now->function && !strcmp(now->function, "_start");
	}
}

/*
 * Each native frame of the evaluation loop executes one run of Python frames.  Where their numbers differ and no truncation tells
 * why, the loop ran from code that was not known yet: then the two stacks are not mixed.
 */
static bool fit_together(const struct sl_defs *defs, const struct sl_python_stack *lines, const struct sl_native_stack *stack)
{
	uint32_t loops = 0, runs = lines->boundary_count;
	bool ends = !lines->count;

	for (uint32_t i = 0; i < stack->count; i++)
		loops += is_eval(defs, stack->pcs[i] - 1);
	for (uint32_t i = 0; i < lines->boundary_count; i++)
		ends |= lines->boundaries[i] == lines->count - 1;
	runs += !ends;
	return loops == runs || (loops < runs ? stack->truncated : lines->truncated);
}

unsigned sl_stacks_resolve(struct sl_stack_frame *frames, const struct sl_defs *defs, struct sl_symbols *symbols,
			   struct sl_stack stack)
{
	const struct sl_python_stack *lines = sl_defs_python(defs, stack.python);
	const struct sl_native_stack *native = sl_defs_native(defs, stack.native);
	bool merge = lines && native && fit_together(defs, lines, native);
	struct out out = {.frames = frames};
	uint32_t at = 0;

	for (uint32_t i = 0; lines && i < lines->boundary_count; i++)
		if (lines->boundaries[i] < SL_STACK_MAX)
			out.entered[lines->boundaries[i]] = true;
	for (uint32_t i = 0; native && i < native->count; i++) {
		uint64_t pc = native->pcs[i] - 1; /* the address inside the call, not behind it */

		if (merge && is_eval(defs, pc))
			add_python(&out, defs, lines, &at, false);
		else
			add_native(&out, defs, symbols, pc);
	}
	if (!native && !lines && stack.caller)
		add_native(&out, defs, symbols, stack.caller - 1);
	add_python(&out, defs, lines, &at, true);
	return out.count;
}

unsigned sl_stacks_fold(struct sl_stack_frame *frames, unsigned count)
{
	unsigned left = 0;

	for (unsigned i = 0; i < count; i++)
		left += !frames[i].passes_on;
	if (!left)
		return count;
	left = 0;
	for (unsigned i = 0; i < count; i++)
		if (!frames[i].passes_on)
			frames[left++] = frames[i];
	return left;
}

/* True: a name that IPython, old or new, or its kernel gives to a cell. */
static bool is_cell(const char *file)
{
	return !strncmp(file, "<ipython-input-", 15) || !strncmp(file, "Cell In[", 8) || strstr(file, "/ipykernel_");
}

bool sl_stacks_is_made_anew(const char *file)
{
	return file && (*file == '<' || is_cell(file)) && strpbrk(file, "0123456789");
}

/* Folders into which TorchInductor, Triton and PyG write Python that they then run, wherever the user's temporary folder is. */
static bool is_generated(const char *file)
{
	static const char *const folders[] = {"/torchinductor_", "/torch_compile_debug/", "/triton_cache/", "/.triton/", "_pyg/"};

	for (size_t i = 0; i < SL_COUNT(folders); i++)
		if (strstr(file, folders[i]))
			return true;
	return false;
}

/* A standard library: .../lib/python3.12/, lib64 on Fedora. A folder of the user's named lib/python has no number. */
static bool is_standard(const char *file)
{
	static const char *const folders[] = {"/lib/python", "/lib64/python"};

	for (size_t i = 0; i < SL_COUNT(folders); i++) {
		const char *at = strstr(file, folders[i]);

		if (at && at[strlen(folders[i])] >= '0' && at[strlen(folders[i])] <= '9')
			return true;
	}
	return false;
}

/* Files of Python's standard library, of installed packages (pex and Bazel run them from NAME.whl/), or made by these. */
bool sl_stacks_is_installed(const char *file)
{
	return !file || strstr(file, "site-packages/") || strstr(file, "dist-packages/") || strstr(file, ".whl/") ||
	       is_standard(file) || strstr(file, "/stormlog_native/") || is_generated(file) || (file[0] == '<' && !is_cell(file));
}

bool sl_stacks_is_own(const struct sl_stack_frame *frame)
{
	return frame->python && frame->own;
}

const struct sl_stack_frame *sl_stacks_interesting(const struct sl_stack_frame *frames, unsigned count)
{
	bool generated = false;

	for (unsigned i = 0; i < count; i++)
		if (sl_stacks_is_own(&frames[i]))
			return &frames[i];
	for (unsigned i = 1; i < count; i++) /* of a snapshot: the node of the backward pass */
		if (!strcmp(frames[i].function ?: "", "torch::autograd::Engine"))
			return &frames[i - 1];
	for (unsigned i = 0; i < count; i++)
		generated |= frames[i].python && frames[i].file && is_generated(frames[i].file);
	/* below generated code of a thread of autograd's only the outermost line says what runs: BackwardCFunction.apply */
	for (unsigned i = 0; i < count; i++)
		if (frames[generated ? count - 1 - i : i].python)
			return &frames[generated ? count - 1 - i : i];
	for (unsigned i = 0; i < count; i++)
		if (!frames[i].python && frames[i].module && !frames[i].passes_on)
			return &frames[i];
	return count ? &frames[0] : NULL;
}

/* Where a C++ function's parameters begin: beside a line they tell nothing. */
static int end_of_name(const struct sl_stack_frame *frame)
{
	const char *at = frame->function;
	int depth = 0;

	for (; *at; at++) {
		if (*at == '(' && !depth && !frame->python && strncmp(at, "(anonymous", 10) != 0 &&
		    (at < frame->function + 8 || strncmp(at - 8, "operator", 8) != 0))
			break;
		depth += (*at == '<' || *at == '{') - (*at == '>' || *at == '}');
	}
	return (int)(at - frame->function);
}

void sl_stacks_describe(char *out, size_t size, const struct sl_stack_frame *frame)
{
	struct sl_text_join name = sl_text_join_begin(out, size);
	const char *file = sl_paths_name(frame->file);
	char number[24];

	if (file && !strncmp(file, "__", 2) && file > frame->file) /* a package's file: its folder is the name */
		for (file--; file > frame->file && file[-1] != '/';)
			file--;
	if (file && frame->line) {
		snprintf(number, sizeof(number), ":%u ", frame->line);
		sl_text_join_add_text(&name, file);
		sl_text_join_add_text(&name, number);
		sl_text_join_add(&name, frame->function ?: "", frame->function ? (size_t)end_of_name(frame) : 0);
	} else if (frame->function) {
		sl_text_join_add_text(&name, frame->module ?: "");
		sl_text_join_add_text(&name, frame->module ? " " : "");
		sl_text_join_add_text(&name, frame->function);
	} else {
		snprintf(number, sizeof(number), "%s0x%llx", frame->module ? "+" : "", (unsigned long long)frame->offset);
		sl_text_join_add_text(&name, frame->module ?: "");
		sl_text_join_add_text(&name, number);
	}
	sl_text_join_end(&name);
	size = strlen(out);
	if (size && out[size - 1] == ' ')
		out[size - 1] = 0;
}

void sl_stacks_write(struct sl_json *j, const struct sl_stack_frame *frames, unsigned count)
{
	char text[512];

	sl_json_array(j, "stack");
	for (unsigned i = 0; i < count; i++) {
		sl_stacks_describe(text, sizeof(text), &frames[i]);
		sl_json_string(j, NULL, text);
	}
	sl_json_end(j);
}
