/* SPDX-License-Identifier: MIT */
/* A row's prototype as C has it: (void) where the row has (). */
#pragma once

#define PROTOTYPE(...)	     (CHOOSE(__VA_OPT__(AS_IS, ) VOID, )(__VA_ARGS__))
#define CHOOSE(first, ...)   PROTOTYPE_##first
#define PROTOTYPE_AS_IS(...) __VA_ARGS__
#define PROTOTYPE_VOID(...)  void
