/* SPDX-License-Identifier: MIT */
/* Reads the body of an HTML form (application/x-www-form-urlencoded). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False: no value of that name, or it is longer than size - 1. */
bool sl_form_value(const char *body, const char *name, char *value, size_t size);
