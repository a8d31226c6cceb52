/* SPDX-License-Identifier: MIT */
/*
 * Settings of a recording, expanded from options.def.  Read once, at the first GPU call.  What the environment has not then has the
 * value of the moment when the library was loaded: servers drop their environment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `stacks` is a set of SL_STACKS_PYTHON and SL_STACKS_NATIVE (agent/stacks/stacks.h). */
enum sl_tensors_mode { SL_TENSORS_AUTO, SL_TENSORS_CPU, SL_TENSORS_OFF };
enum sl_labels_mode { SL_LABELS_AUTO, SL_LABELS_OFF };

/* One member per row of options.def, named by the row: text is borrowed from the environment, NULL unset. */
struct sl_options {
#define SL_OPTION_MEMBER_text						     const char *
#define SL_OPTION_MEMBER_size						     uint64_t
#define SL_OPTION_MEMBER_number						     uint64_t
#define SL_OPTION_MEMBER_flag						     bool
#define SL_OPTION_MEMBER_choice						     unsigned
#define OPTION(name, type, flag, letter, variable, def, unit, choices, help) SL_OPTION_MEMBER_##type name;
#include "agent/process/options.def"
#undef OPTION
};

enum sl_option_type { SL_OPTION_text, SL_OPTION_size, SL_OPTION_number, SL_OPTION_flag, SL_OPTION_choice };

/* A row of options.def; strings are "" where the row has none. */
struct sl_options_row {
	const char *name, *flag, *variable, *def, *unit, *choices, *help;
	enum sl_option_type type;
	char letter;
	unsigned short offset; /* offset of the member in struct sl_options */
};
extern const struct sl_options_row sl_options_table[];
extern const unsigned sl_options_count;

/* Store `text` as the row's member; false, and the member untouched, when it cannot be read as the row's type. */
bool sl_options_set(const struct sl_options_row *option, struct sl_options *options, const char *text);

/* The member as text, for the trace: borrowed, or written into `scratch`; NULL for text that is unset. */
const char *sl_options_text(const struct sl_options_row *option, const struct sl_options *options, char scratch[24]);

/* Copies the STORMLOG_ variables.  The copy has 8 kB; a variable without room is skipped.  Called once, at the library's load. */
void sl_options_keep(void);

/* A variable's value now, or for STORMLOG_ ones as it was kept; NULL: unset.  An empty one counts as set here. */
const char *sl_options_variable(const char *name);

/*
 * Fill from the process's environment; a value that cannot be read leaves the default and calls
 * bad(variable, value), unless bad is NULL.  No allocation.
 */
void sl_options_read(struct sl_options *options, void (*bad)(const char *variable, const char *value));
