/* SPDX-License-Identifier: MIT */
/* What a form of ours sent (application/x-www-form-urlencoded). */
#ifndef SERVER_FORM_H
#define SERVER_FORM_H

#include <stdbool.h>
#include <stddef.h>

/* false: there is none of that name, or it is longer than size - 1. */
bool sl_form_value(const char *body, const char *name, char *value, size_t size);

#endif
