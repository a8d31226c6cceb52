/* SPDX-License-Identifier: MIT */
/*
 * The text that a program, a server or the kernel printed when memory ran out, as facts.  One pass, memory of a constant size.
 * forms.def has the sentences that are known.  A figure that the text does not have is SL_LOG_UNKNOWN.
 * After sl_log_new, sl_log_read takes each text, and sl_log_judge ends it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SL_LOG_UNKNOWN	     UINT64_MAX
#define SL_LOG_KNOWN(figure) ((figure) != SL_LOG_UNKNOWN)

/* clang-format off */
/* FORM(name, program, weight): of two forms in one text, the heavier one is told.  A server's own sentence is heaviest. */
#define SL_LOG_FORMS(FORM) \
	FORM(none, NULL, 0) FORM(server_log, NULL, 1) FORM(bfc_warning, "tensorflow", 2) FORM(figureless, NULL, 3) FORM(host, NULL, 4) \
	FORM(tf, "tensorflow", 5) FORM(xla, "jax", 6) FORM(comfy, "comfyui", 5) FORM(nccl, NULL, 6) FORM(cublas, NULL, 6) FORM(torch, "pytorch", 6) \
	FORM(torch_old, "pytorch", 6) FORM(torch_async, "pytorch", 6) FORM(hip, "pytorch", 6) FORM(ort, "onnxruntime", 7) FORM(rmm, "rmm", 7) \
	FORM(cupy, "cupy", 7) FORM(paddle, "paddlepaddle", 7) FORM(ggml_runtime, "llama.cpp", 7) FORM(ggml_buffer, "llama.cpp", 8) FORM(tgi, "text-generation-inference", 8) FORM(ollama, "ollama", 9) FORM(trtllm, "tensorrt-llm", 9) \
	FORM(sglang_graph, "sglang", 9) FORM(sglang_static, "sglang", 9) FORM(vllm_sampler, "vllm", 9) FORM(vllm_cache, "vllm", 9) FORM(vllm_budget, "vllm", 9)

#define SL_LOG_CAUSES(CAUSE) \
	CAUSE(none) CAUSE(unknown) CAUSE(card_full_by_own_tensors) CAUSE(request_larger_than_card) CAUSE(reserved_but_fragmented) \
	CAUSE(neighbour_processes) CAUSE(own_limit_fraction) CAUSE(server_budget_too_small_for_cache) CAUSE(server_budget_over_free) \
	CAUSE(sampler_or_graph_after_cache) CAUSE(pinned_or_host_memory) CAUSE(figureless) CAUSE(windows_spill) CAUSE(handle_creation) \
	CAUSE(collective) CAUSE(harmless_warning) CAUSE(executable_too_large) CAUSE(compute_buffer) CAUSE(weights_do_not_fit)

/* VERDICT(name, word and id of its answer) */
#define SL_LOG_VERDICTS(VERDICT) \
	VERDICT(nothing_about_memory, NOTHING, "run.ok") VERDICT(not_an_error, NOT_AN_ERROR, "run.ok") VERDICT(nearly, NEARLY, "memory.retried") \
	VERDICT(host_memory, HOST_MEMORY, "oom.host") VERDICT(does_not_start, DOES_NOT_START, "server.start") VERDICT(out_of_memory, OUT_OF_MEMORY, "oom.full")

/* What a sentence has as a number: bytes, or a count, or a fraction in millionths.  weights to non_torch: the parts of a ledger. */
#define SL_LOG_FIGURES(FIGURE) \
	FIGURE(asked) FIGURE(free) FIGURE(total) FIGURE(process) FIGURE(allocated) FIGURE(reserved) FIGURE(unallocated) FIGURE(allowed) FIGURE(limit) \
	FIGURE(temp) FIGURE(largest) FIGURE(projected) FIGURE(weights) FIGURE(kv_cache) FIGURE(activations) FIGURE(graphs) FIGURE(non_torch) \
	FIGURE(before) FIGURE(after) FIGURE(more) FIGURE(other) \
	FIGURE(device) FIGURE(rank) FIGURE(pid) FIGURE(length) FIGURE(longest) FIGURE(fraction) FIGURE(seqs) FIGURE(tokens) FIGURE(batch) FIGURE(ubatch) \
	FIGURE(context) FIGURE(line) FIGURE(cell)

/* What the last frames say of the request; decode: of images, by a VAE. */
#define SL_LOG_DOINGS(DOING) \
	DOING(unknown) DOING(weights) DOING(pinned) DOING(save) DOING(optimizer) DOING(backward) DOING(logits) DOING(scores) DOING(decode)

#define SL_LOG_TEXTS(TEXT) TEXT(component) TEXT(file) TEXT(function) TEXT(source) TEXT(shape)
/* clang-format on */

#define SL_LOG_FORM(name, program, weight) SL_LOG_FORM_##name,
#define SL_LOG_CAUSE(name)		   SL_LOG_CAUSE_##name,
#define SL_LOG_VERDICT(name, word, id)	   SL_LOG_VERDICT_##name,
#define SL_LOG_DOING(name)		   SL_LOG_DOING_##name,
#define SL_LOG_FIGURE(name)		   SL_LOG_##name,
#define SL_LOG_TEXT(name)		   SL_LOG_TEXT_##name,
enum sl_log_form { SL_LOG_FORMS(SL_LOG_FORM) };
enum sl_log_cause { SL_LOG_CAUSES(SL_LOG_CAUSE) };
enum sl_log_verdict { SL_LOG_VERDICTS(SL_LOG_VERDICT) };
enum sl_log_doing { SL_LOG_DOINGS(SL_LOG_DOING) };
enum sl_log_figure { SL_LOG_FIGURES(SL_LOG_FIGURE) SL_LOG_FIGURE_COUNT };
enum sl_log_text { SL_LOG_TEXTS(SL_LOG_TEXT) SL_LOG_TEXT_COUNT };

/* By the enums; behind the figures stand the texts. */
extern const struct sl_log_form_row {
	const char *name, *program; /* program: NULL: any */
	unsigned weight;
} sl_log_forms[];
extern const char *const sl_log_causes[], *const sl_log_verdicts[], *const sl_log_figures[], *const sl_log_doings[];
int sl_log_index(const char *name, size_t size); /* of a figure, or behind them of a text; -1: it is neither */

enum sl_log_means {
	SL_LOG_FAIL,	 /* a request failed */
	SL_LOG_ECHO,	 /* what a failure before led to: its place, and no failure alone */
	SL_LOG_SAY,	 /* a figure of a server's own account, or a setting */
	SL_LOG_SERVE,	 /* a server begins to serve */
	SL_LOG_RETRY,	 /* a failure before was handled */
	SL_LOG_HARMLESS, /* the library goes on without */
	SL_LOG_PRESS,	 /* no room, and nothing failed */
	SL_LOG_WELL,	 /* the program ended well */
	SL_LOG_LOOK,	 /* read.c looks at the line */
	SL_LOG_COMMAND,	 /* a program is started */
	SL_LOG_TRACE,	 /* a traceback begins */
	SL_LOG_FRAME,	 /* of a traceback, or a part of one */
	SL_LOG_MEANS
};

/* A row of forms.def. */
struct sl_log_row {
	enum sl_log_form form;
	enum sl_log_means means;
	enum sl_log_cause cause;
	const char *pattern, *since, *source;
};

#define SL_LOG_OTHERS  16
#define SL_LOG_LONGEST 224 /* bytes of a text */

/* What a sentence says, or the sentences of one failure. */
struct sl_log_facts {
	uint64_t figure[SL_LOG_FIGURE_COUNT];
	char text[SL_LOG_TEXT_COUNT][SL_LOG_LONGEST]; /* "": not said */
	unsigned others;
	struct {
		uint64_t pid, bytes;
	} other[SL_LOG_OTHERS];
};

/* A frame of a traceback, as the text has it. */
struct sl_log_frame {
	char file[SL_LOG_LONGEST], function[64], source[160]; /* source: "" where the text has none */
	uint32_t line;
};

/* Own frames are not of an installed package, the standard library or generated code. */
#define SL_LOG_FRAMES 4
struct sl_log_trace {
	bool windows;			 /* its frames are files of Windows */
	enum sl_log_doing doing, before; /* from the innermost own frame on, and from its caller to it */
	unsigned frames;
	struct sl_log_frame frame[SL_LOG_FRAMES]; /* own frames: the outermost one, and the innermost ones */
};

/* What the prefixes of a line tell. */
struct sl_log_origin {
	int rank;	   /* -1: they name none */
	int64_t pid;	   /* -1 */
	uint64_t time_ms;  /* of a clock that only orders; SL_LOG_UNKNOWN */
	unsigned severity; /* see parts.h */
};

/* A request that failed, with all copies of its sentence. */
struct sl_log_failure {
	const struct sl_log_row *row; /* of the heaviest form */
	enum sl_log_cause cause;      /* of a row; SL_LOG_CAUSE_none: it follows from the figures */
	struct sl_log_facts facts;
	struct sl_log_origin from;
	uint64_t last;		    /* line of the text */
	unsigned file;		    /* number of the text */
	bool handled, raised, late; /* raised: an exception's line; late: after the server had begun to serve */
	struct sl_log_trace trace;
};
#define SL_LOG_FAILURES 64
#define SL_LOG_DEVICES	16

struct sl_log {
	struct sl_log_failure failure[SL_LOG_FAILURES];
	unsigned failures, files;
	uint64_t lines;				/* parts that were read: carriage returns and JSON make several of a line */
	uint64_t written;			/* lines of the files */
	struct sl_log_facts facts;		/* of the servers; the first sentence counts */
	struct sl_log_facts on[SL_LOG_DEVICES]; /* the same, where a device is named */
	uint64_t idle;				/* bit n: nvidia-smi's table shows card n without use */
	char command[1000];			/* the program's own, where the text shows it; "" */
	enum sl_log_form server, warned;	/* the server that printed it, and the first warning */
	uint64_t last[SL_LOG_MEANS];		/* the last line of each meaning, from 1 */
	uint64_t last_exception;		/* 0: none */
	bool conf;				/* PyTorch's text advises expandable_segments */
	/* after sl_log_judge: */
	enum sl_log_form form;
	enum sl_log_cause cause;
	enum sl_log_verdict verdict;
	const struct sl_log_failure *first; /* the failure to tell; NULL: none */
	unsigned count;
	const char *program;		      /* NULL: not known */
	uint64_t figure[SL_LOG_FIGURE_COUNT]; /* of `first`, and of the servers where it lacks a setting or part */
};

struct sl_log *sl_log_new(void); /* to be freed */

static inline uint64_t sl_log_known_or(uint64_t figure, uint64_t otherwise)
{
	return SL_LOG_KNOWN(figure) ? figure : otherwise;
}

/* Unknown where one is, or where the difference is none. */
static inline uint64_t sl_log_minus(uint64_t larger, uint64_t smaller)
{
	return SL_LOG_KNOWN(larger) && SL_LOG_KNOWN(smaller) && larger > smaller ? larger - smaller : SL_LOG_UNKNOWN;
}

/* Reads one text more, as another process.  shown: a terminal shows how much was read.  NULL: fine, else why. */
const char *sl_log_read(struct sl_log *log, FILE *file, const char *name, bool shown);
void sl_log_judge(struct sl_log *log);
/* Reads and judges them, - is standard input, as ranks of one run; to be freed.  NULL: the reason was printed. */
struct sl_log *sl_log_of(char *const *paths, bool quiet);

uint64_t sl_log_others(const struct sl_log_facts *facts); /* bytes of the other processes that the text names */
/* Bytes of the card that neither the process nor one that the text names holds; 0: the text does not tell. */
uint64_t sl_log_outside(const struct sl_log_failure *failure);

/* What a file is by its first bytes, unpacked.  Of lines of JSON those of docker, journald and loggers are logs. */
enum sl_log_kind { SL_LOG_IS_TEXT, SL_LOG_IS_RECORDS, SL_LOG_IS_BINARY, SL_LOG_IS_PROGRAM };
enum sl_log_kind sl_log_kind_of(const char *head, size_t size);
enum sl_log_kind sl_log_kind_of_file(const char *path); /* SL_LOG_IS_RECORDS where it cannot be opened */
