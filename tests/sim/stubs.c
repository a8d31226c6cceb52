/* SPDX-License-Identifier: MIT */
/* Every export that no other file defines: weak, says that it is not supported, touches nothing. */
#define SIM_NAME(name, since, flag, export)                \
	__attribute__((weak)) int export(void); \
	int export(void)                                       \
	{                                                      \
		return 801;                                    \
	}
#include "driver_names.def"
