/* SPDX-License-Identifier: MIT */
#include "analyzer/base/value.h"

#include <string.h>

const struct sl_value *sl_value_get(const struct sl_value *object, const char *key)
{
	if (!sl_value_is(object, SL_VALUE_OBJECT))
		return NULL;
	for (uint32_t i = 0; i < object->count; i++)
		if (strcmp(object->members[i].key, key) == 0)
			return &object->members[i].value;
	return NULL;
}

const char *sl_value_get_text(const struct sl_value *object, const char *key)
{
	const struct sl_value *value = sl_value_get(object, key);

	return sl_value_is(value, SL_VALUE_STRING) ? value->text : NULL;
}

bool sl_value_get_int64(const struct sl_value *object, const char *key, int64_t *out)
{
	const struct sl_value *value = sl_value_get(object, key);

	if (!sl_value_is(value, SL_VALUE_INT) || value->integer > INT64_MAX || value->integer < INT64_MIN)
		return false;
	*out = (int64_t)value->integer;
	return true;
}

bool sl_value_is(const struct sl_value *value, enum sl_value_kind kind)
{
	return value && value->kind == kind;
}

struct sl_value sl_value_of_text(const char *text)
{
	return (struct sl_value){.kind = text ? SL_VALUE_STRING : SL_VALUE_NULL, .text = text};
}

struct sl_value sl_value_of_int(__int128 number)
{
	return (struct sl_value){.kind = SL_VALUE_INT, .integer = number};
}

struct sl_value sl_value_of_double(double number)
{
	return (struct sl_value){.kind = SL_VALUE_DOUBLE, .real = number};
}

struct sl_value *sl_value_object(struct sl_arena *arena, uint32_t room)
{
	struct sl_value *object = sl_arena_alloc(arena, sizeof(*object));

	object->kind = SL_VALUE_OBJECT;
	object->members = sl_arena_alloc(arena, room * sizeof(*object->members));
	return object;
}

void sl_value_set(struct sl_value *object, const char *key, struct sl_value value)
{
	((struct sl_member *)object->members)[object->count++] = (struct sl_member){key, value};
}
