/* SPDX-License-Identifier: MIT */
/* Writes the outcomes of a check in the formats that CI systems read.  False: a write failed (errno). */
#pragma once

#include <stdio.h>

#include "analyzer/gate/verdict.h"

/* What the formats need in addition to the outcomes. */
struct sl_ci_reports {
	const struct sl_outcomes *outcomes;
	const struct sl_measures *measures;
	const char *path;	/* what was checked, as the user named it */
	const char *repository; /* absolute; NULL: none is known */
	const char *cwd;	/* working folder of the recorded program, NULL: unknown */
	const struct sl_limits *limits;
	const char *config;  /* the file with the limits, NULL: none */
	unsigned other_runs; /* that lie there too, and were not read */
};

bool sl_ci_reports_text(const struct sl_ci_reports *forms, FILE *out);
bool sl_ci_reports_json(const struct sl_ci_reports *forms, FILE *out);

/* The part of JUnit XML that Jenkins, GitLab and Azure all read: a test case for each outcome. */
bool sl_ci_reports_junit(const struct sl_ci_reports *forms, FILE *out);

/* SARIF 2.1.0: only results with a file inside the repository, at most 5000, which is GitHub's limit. */
bool sl_ci_reports_sarif(const struct sl_ci_reports *forms, FILE *out);

/* OpenMetrics: what GitLab compares in merge requests. */
bool sl_ci_reports_metrics(const struct sl_ci_reports *forms, FILE *out);

/* Markdown for $GITHUB_STEP_SUMMARY, below its 1024 KiB. */
bool sl_ci_reports_summary(const struct sl_ci_reports *forms, FILE *out);

/* ::error lines, which GitHub shows beside the code. */
void sl_ci_reports_annotations(const struct sl_ci_reports *forms, FILE *out);
