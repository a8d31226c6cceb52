/* SPDX-License-Identifier: MIT */
/* The card, for CUDA and NVML. */
#include "tests/sim/sim.h"

#include "dry/machine.h"

#include <stdio.h>

const char sim_driver_text[] = "580.0.dry";

void sim_device_name(char *name, size_t size, int physical)
{
	snprintf(name, size, "%s", sl_dry_card.name);
}

/* Attributes that all cards of the table share, or that decide no memory; as an H200 answers. Every other one is 1. */
static const struct {
	int attribute, value;
} common[] = {
	{1, 1024},	 {2, 1024},	   {3, 1024},	     {4, 64},	    {5, 0x7fffffff}, {6, 65535}, {7, 65535}, {8, 49152},
	{9, 65536},	 {10, 32},	   {11, 0x7fffffff}, {12, 65536},   {13, 1980000},   {14, 512},	 {17, 0},    {18, 0},
	{20, 0},	 {34, 0},	   {35, 0},	     {36, 3201000}, {37, 6144},	     {40, 3},	 {50, 0},    {51, 32},
	{82, 65536},	 {84, 0},	   {85, 0},	     {86, 0},	    {87, 2},	     {88, 0},	 {100, 0},   {101, 0},
	{108, 39321600}, {109, 134217728}, {111, 1024},	     {118, 0},
};

int sim_device_attribute(int attribute, int physical)
{
	switch (attribute) {
	case 33:
		return physical + 1; /* the bus of PCI */
	case 120:
		return sl_dry_card.major >= 9; /* clusters */
#define FIELD(name, scale, number)                                                                                                 \
	case number ? number:                                                                                                      \
		-__COUNTER__ - 1 : return (int)sl_dry_card.name;
#include "dry/fields.def"
#undef FIELD
	}
	for (size_t i = 0; i < SIM_ARRAY_SIZE(common); i++)
		if (common[i].attribute == attribute)
			return common[i].value;
	return 1;
}
