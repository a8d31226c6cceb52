/* SPDX-License-Identifier: MIT */
#include "analyzer/source/flow.h"

#include <string.h>

#define FRAMES 24

/* A function as the text has it: the last part of "Layer.forward". */
static const char *name_of(const struct sl_stack_frame *frame)
{
	const char *dot = frame->function ? strrchr(frame->function, '.') : NULL;

	return dot ? dot + 1 : frame->function;
}

/* A frame that Python makes inside a function for a part of it. */
static bool is_inner(const struct sl_stack_frame *frame)
{
	const char *name = frame->function ? name_of(frame) : "";

	return *name == '<' && strcmp(name, "<module>") != 0;
}

static bool begin(struct sl_flow *f, struct sl_flow_case *of, const struct sl_stack_frame *frame)
{
	*f = (struct sl_flow){.of = of, .line = frame->line, .calls = 2};
	f->file = frame->file ? sl_flow_open(of, frame->file) : NULL;
	if (!f->file)
		return false;
	f->statement = sl_script_at(&f->file->python, frame->line);
	if (f->statement == SL_SCRIPT_NONE)
		return false;
	f->function = sl_script_around(&f->file->python, f->statement, " def ", SL_SCRIPT_NONE);
	return true;
}

/* The call of that name is on the line; a method that is called as its object, or a property, is not. */
static bool is_named(const struct sl_flow *f, const char *name)
{
	const struct sl_script_statement *s = &f->file->python.statement.item[f->statement];

	for (uint32_t i = s->first; i < s->end; i++)
		if (sl_script_is(&f->file->python, i, name))
			return true;
	return false;
}

/* The frame runs a method that makes its object. */
static bool is_constructor(const struct sl_stack_frame *frame)
{
	const char *name = frame->function ? name_of(frame) : "";

	return !strcmp(name, "__init__") || !strcmp(name, "__post_init__");
}

/* What the line of the caller calls: of "Node.__init__" it is Node. */
static const char *called(struct sl_source *source, const struct sl_stack_frame *frame)
{
	const char *name = name_of(frame), *begin;
	char class[256];

	if (!is_constructor(frame) || name - frame->function < 2)
		return name;
	for (begin = name - 1; begin > frame->function && begin[-1] != '.'; begin--)
		;
	snprintf(class, sizeof(class), "%.*s", (int)(name - 1 - begin), begin);
	return sl_source_keep(source, class);
}

/* A frame further out makes the object whose method this is. */
static bool is_making(const struct sl_stack_frame *frames, unsigned count)
{
	size_t size = frames->function ? (size_t)(name_of(frames) - frames->function) : 0;

	for (unsigned i = 0; i < count; i++)
		if (size && is_constructor(&frames[i]) && frames[i].function &&
		    !strncmp(frames[i].function, frames->function, size) && frames[i].function + size == name_of(&frames[i]))
			return true;
	return is_constructor(frames);
}

/* What a frame further out means for those within.  A loop over epochs is no loop: what it calls loops over batches. */
static void look_around(struct sl_flow_case *of, const struct sl_stack_frame *frame)
{
	const struct sl_script_statement *s;
	struct sl_flow f;
	uint32_t loop;

	if (!begin(&f, of, frame))
		return;
	s = f.file->python.statement.item;
	of->without_grad |= sl_flow_is_without_grad(&f.file->python, f.statement);
	loop = sl_script_around(&f.file->python, s[f.statement].parent, SL_SCRIPT_LOOPS, f.function);
	of->looped |= loop != SL_SCRIPT_NONE &&
		      !sl_script_has(&f.file->python, s[loop].first, s[loop].end, " epoch epochs current_epoch num_epochs ");
}

/* The object whose method is called on the line: of "s.fill()" it is s. */
static void hold_object(struct sl_flow *f, const char *method)
{
	const struct sl_script *python = &f->file->python;
	const struct sl_script_statement *s = &python->statement.item[f->statement];

	for (uint32_t i = s->first + 2; i < s->end; i++)
		if (sl_script_is(python, i, method) && sl_script_is(python, i - 1, ".") &&
		    python->token.item[i - 2].kind == SL_SCRIPT_NAME && (i - 2 == s->first || !sl_script_is(python, i - 3, ".")))
			sl_flow_hold(f, &python->token.item[i - 2], NULL, SL_HOLDS_IT);
}

/* Where an async function is called and not awaited, a task gets what it gives: no frame leads there. */
static void look_at_tasks(const struct sl_flow *f, const char *callee)
{
	const struct sl_script *python = &f->file->python;
	uint32_t header = f->function == SL_SCRIPT_NONE ? 0 : python->statement.item[f->function].first, root;
	struct sl_flow task;

	for (uint32_t i = 2; sl_script_is(python, header, "async") && i < python->token.count; i++) {
		struct sl_stack_frame frame = {.file = f->file->path, .line = python->token.item[i].line};

		for (root = i; root > 2 && sl_script_is(python, root - 1, "."); root -= 2)
			;
		if (!sl_script_is(python, i, callee) || !sl_script_is(python, i + 1, "(") ||
		    sl_script_is_any(python, root - 1, " await def ") || !begin(&task, f->of, &frame))
			continue;
		task.callee = callee;
		task.callee_hold = f->returned;
		sl_flow_run(&task, task.statement);
	}
}

/* Functions that PyTorch calls with what a module gives: nothing in the stack's frames leads to them. */
static void look_at_hooks(struct sl_flow_case *of)
{
	static const char hooks[] = " register_forward_hook register_forward_pre_hook register_full_backward_hook register_hook ";

	for (size_t k = 0, files = of->files.count; k < files; k++) {
		const struct sl_script *python = &of->files.item[k]->python;

		for (uint32_t i = 0; i + 2 < python->token.count; i++) {
			struct sl_flow f = {.of = of, .file = of->files.item[k], .calls = 2};
			uint32_t name = i + 2;

			if (!sl_script_is_any(python, i, hooks) || !sl_script_is(python, i + 1, "("))
				continue;
			while (name + 2 < python->token.count &&
			       (sl_script_is(python, name + 1, ".") ||
				(sl_script_is(python, name + 1, "(") && sl_script_is(python, name, "partial"))))
				name += 2;
			sl_flow_enter_all(&f, &python->token.item[name], NULL);
		}
	}
}

/* The surest line, the first that fills its container; NULL: there is none, or two remain. */
static const struct sl_flow_found *choose(const struct sl_flow_case *of)
{
	const struct sl_flow_found *best = NULL;
	bool two = false;

	for (size_t i = 0; i < of->found.count; i++) {
		const struct sl_flow_found *one = &of->found.item[i];
		int more = !best		       ? 1
			   : one->store != best->store ? (int)one->store - (int)best->store
						       : (int)one->hold - (int)best->hold;

		two = more > 0 ? false
			       : two || (more == 0 && (one->function != best->function || one->container->kind != SL_SCRIPT_NAME ||
						       !sl_script_same(one->container, best->container)));
		best = more > 0 ? one : best;
	}
	return two || (best && best->store == SL_STORE_DYING) ? NULL : best;
}

bool sl_source_keeper(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames, unsigned count,
		      struct sl_stack_frame *keeper)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	enum sl_flow_hold hold = SL_HOLDS_IT;
	const struct sl_flow_found *best = NULL;
	const char *callee = NULL;
	uint32_t parts = 0;
	bool object = false, first = true, is_found;
	struct sl_flow f;

	for (unsigned i = 0; i < count && i < FRAMES; i++) {
		if (is_inner(&frames[i]) && i + 1 < count)
			continue;
		of.looped = of.without_grad = false;
		for (unsigned k = i + 1; k < count && k < FRAMES; k++)
			look_around(&of, &frames[k]);
		if (!begin(&f, &of, &frames[i]))
			break;
		f.callee = callee && is_named(&f, callee) ? callee : NULL;
		f.callee_hold = hold;
		f.callee_parts = parts;
		f.constructs = is_making(&frames[i], count - i);
		f.first = first;
		first = false;
		if (object && callee)
			hold_object(&f, callee);
		sl_flow_run(&f, f.statement);
		callee = called(source, &frames[i]);
		if (callee && f.returned)
			look_at_tasks(&f, callee);
		best = choose(&of);
		hold = is_constructor(&frames[i]) && f.self_holds ? SL_HOLDS_IT : f.returned;
		parts = f.parts;
		object = f.self_holds && !is_constructor(&frames[i]);
		if (best && best->store == SL_STORE_CONTAINER && best->hold != SL_HOLDS_PART)
			break;
	}
	if (!best && !of.found.count) {
		look_at_hooks(&of);
		best = choose(&of);
	}
	is_found = best != NULL;
	if (is_found)
		*keeper = (struct sl_stack_frame){.python = true, .own = true, .file = best->file->path, .line = best->line};
	sl_flow_end(&of);
	return is_found;
}
