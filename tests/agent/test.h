/* SPDX-License-Identifier: MIT */
/* cmocka wants these before it, in this order. */
#ifndef TESTS_AGENT_TEST_H
#define TESTS_AGENT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
