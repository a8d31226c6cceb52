/* SPDX-License-Identifier: MIT */
/* What the files of the follow rule share: value.c, statements.c. */
#pragma once

#include <string.h>

#include "analyzer/source/flow.h"

static inline enum sl_flow_hold sl_flow_larger(enum sl_flow_hold a, enum sl_flow_hold b)
{
	return a > b ? a : b;
}

/* An attribute, an element or one of several names of it: perhaps another block, or a number. */
static inline enum sl_flow_hold sl_flow_part(enum sl_flow_hold hold)
{
	return hold == SL_HOLDS_IT ? SL_HOLDS_PART : hold;
}

static inline const struct sl_script_token *sl_flow_token(const struct sl_flow *f, uint32_t at)
{
	return &f->file->python.token.item[at];
}

static inline bool sl_flow_is(const struct sl_flow *f, uint32_t at, uint32_t end, const char *words)
{
	return at < end && sl_script_is_any(&f->file->python, at, words);
}

static inline bool sl_flow_is_text(const struct sl_script_token *t, const char *text)
{
	return t->size == strlen(text) && !memcmp(t->at, text, t->size);
}

/* Charges the tokens.  True: the question has used up its steps, and is not answered. */
bool sl_flow_is_spent(struct sl_flow *f, uint32_t tokens);

/* attribute NULL: the object, with all its attributes. */
enum sl_flow_hold sl_flow_hold_of(const struct sl_flow *f, const struct sl_script_token *name,
				  const struct sl_script_token *attribute);
/* Each name of these tokens holds it now. */
void sl_flow_hold_names(struct sl_flow *f, uint32_t from, uint32_t end, enum sl_flow_hold hold);
/* Targets [from, in) of a loop or a comprehension hold what they get of [at, end): of zip each its own. */
void sl_flow_hold_targets(struct sl_flow *f, uint32_t from, uint32_t in, uint32_t at, uint32_t end);
/* What any name of these tokens holds. */
enum sl_flow_hold sl_flow_mentioned(const struct sl_flow *f, uint32_t from, uint32_t end);

/* The last statement of the function before the one that is looked at which gives the name its object; else the first. */
uint32_t sl_flow_assigned(const struct sl_flow *f, const struct sl_script_token *name, uint32_t function);

/* The part of statement `made` that gives the name its object: [*from, *end), or false: it is not told. */
bool sl_flow_origin(const struct sl_flow *f, uint32_t made, const struct sl_script_token *name, uint32_t *from, uint32_t *end);

/* How long the object of a name lives, seen from the statement that is looked at. */
enum sl_flow_lives { SL_LIVES_PASS, SL_LIVES_FUNCTION, SL_LIVES_LONGER };
enum sl_flow_lives sl_flow_lives(struct sl_flow *f, const struct sl_script_token *name);

/* Token `at` is on a line that stores it. */
void sl_flow_find(struct sl_flow *f, uint32_t at, enum sl_flow_store store, enum sl_flow_hold hold);

/* The object that the tokens from `root` on name has it now; token `at` is on the line. */
void sl_flow_put(struct sl_flow *f, uint32_t root, uint32_t at, enum sl_flow_hold hold);

/* Enters the method of the object of tokens [root, last] with the block.  False: its class is not known to have one. */
bool sl_flow_enter_method(struct sl_flow *f, uint32_t root, uint32_t last, const char *method);

/* How the value of these tokens holds it; stores within them are found. */
enum sl_flow_hold sl_flow_value(struct sl_flow *f, uint32_t from, uint32_t end);
/* The function gives the value of these tokens, which holds it so. */
void sl_flow_return(struct sl_flow *f, uint32_t from, uint32_t end, enum sl_flow_hold hold);
/* The line that made it is among them. */
bool sl_flow_has_line(const struct sl_flow *f, uint32_t from, uint32_t end);
