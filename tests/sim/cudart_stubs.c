/* SPDX-License-Identifier: MIT */
/* Every name of the runtime that cudart_api.c does not define: weak, returns "not supported". */
#define SIM_NAME(name)                                                                                                             \
	__attribute__((weak)) int name(void);                                                                                      \
	int name(void)                                                                                                             \
	{                                                                                                                          \
		return 801;                                                                                                        \
	}
#include "runtime_names.def"
#if SIM_CUDART_MAJOR < 13
#include "runtime_old.def"
#endif
