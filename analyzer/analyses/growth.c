/* SPDX-License-Identifier: MIT */
/* Growth per entry of a label: a straight line through the bytes in use at the end of each entry. */
#include <math.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/drive.h"
#include "analyzer/format.h"

#define POINTS_MIN	4	    /* fewer say nothing */
#define R_SQUARED_MIN	0.8	    /* below it is no line */
#define SLOPE_MIN_BYTES 512	    /* an entry: the smallest block there is */
#define TOTAL_MIN_PART	0.001	    /* of what is in use: less is steady whatever the line */

static struct sl_growth growth_of(const struct sl_label *label, uint32_t index)
{
	double n = (double)label->points, mean = label->sy / n;
	double xx = label->sxx - label->sx * label->sx / n, xy = label->sxy - label->sx * label->sy / n;
	double yy = label->syy - label->sy * label->sy / n;
	struct sl_growth growth = {.label = index};

	if (label->points < POINTS_MIN || xx <= 0)
		return growth;
	growth.slope = xy / xx;
	/* Sums of squares cancel: what is left below rounding is no variation. */
	growth.r_squared = yy > label->syy * 1e-12 ? fmin(1, xy * xy / (xx * yy)) : 0;
	if (fabs(growth.slope) < SLOPE_MIN_BYTES || fabs(growth.slope) * n < mean * TOTAL_MIN_PART)
		growth.verdict = "steady";
	else if (growth.r_squared < R_SQUARED_MIN)
		growth.verdict = "noisy";
	else
		growth.verdict = growth.slope > 0 ? "growing" : "shrinking";
	return growth;
}

static void process(struct sl_process *process)
{
	for (uint32_t i = 0; i < process->model->labels.count; i++) {
		process->growth.item = sl_arena_grow(process->growth.item, &process->growth.capacity,
						     process->growth.count, sizeof(*process->growth.item));
		process->growth.item[process->growth.count++] = growth_of(&process->model->labels.item[i], i);
	}
}

static void run(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].growth.count; k++) {
			const struct sl_growth *growth = &report->processes[i].growth.item[k];
			const struct sl_model *model = report->processes[i].model;
			const struct sl_label *label = &model->labels.item[growth->label];
			const char *text = sl_defs_text(model->defs, label->text);
			char size[SL_FORMAT_BYTES];

			if (!growth->verdict || strcmp(growth->verdict, "growing") || growth->slope <= 0)
				continue;
			sl_report_find(report, &(struct sl_finding){
				.id = "label.growing", .severity = "warning", .process = (int)i, .device = -1,
				.bytes = (uint64_t)growth->slope,
				.text = sl_report_text("memory in use grew by %s with each %s, r2 %.2f over %llu of them",
						       sl_format_size(size, (uint64_t)growth->slope), text ? text : "range",
						       growth->r_squared, (unsigned long long)label->entries),
				.advice = strdup("look for what each one keeps: a list of losses, a cache without a bound")});
		}
}

const struct sl_analysis sl_analysis_growth = {.name = "growth", .process = process, .run = run};
