/* SPDX-License-Identifier: MIT */
/* cmocka wants these before it, in this order. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
