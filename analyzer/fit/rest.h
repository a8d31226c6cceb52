/* SPDX-License-Identifier: MIT */
/* The requests that were still to come when a program ran out of memory: program.h says from where they are known. */
#pragma once

#include "analyzer/fit/program.h"

/* Adds them to a program that failed. */
void sl_fit_rest_add(struct sl_fit_program *program);
