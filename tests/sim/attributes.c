/* SPDX-License-Identifier: MIT */
/* The devices: a name and numbers. The dry run has those of a card (dry/attributes.c). */
#include "sim.h"

#include <stdio.h>

const char sim_driver_text[] = "580.0.sim";

void sim_device_name(char *name, size_t size, int physical)
{
	snprintf(name, size, "Simulated GPU %d%s", physical, sim_config.mig ? " MIG 1g.10gb" : "");
}

/* The attributes that programs read. Every other one is 1, because most are capabilities. */
int sim_device_attribute(int attribute, int physical)
{
	static const struct {
		int attribute, value;
	} known[] = {{1, 1024}, {2, 1024}, {3, 1024},  {4, 64}, {5, 0x7fffffff}, {6, 65535}, {7, 65535}, {10, 32}, {16, 108},
		     {34, 0},	{35, 0},   {39, 2048}, {50, 0}, {75, 9},	 {76, 0},    {84, 0},	 {100, 0}, {118, 0}};

	if (attribute == 18)
		return sim_config.integrated;
	for (size_t i = 0; i < SIM_ARRAY_SIZE(known); i++)
		if (known[i].attribute == attribute)
			return known[i].value;
	return attribute == 33 ? physical + 1 : 1;
}
