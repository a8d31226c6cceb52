/* SPDX-License-Identifier: MIT */
#include "analyzer/report/api_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"

static const struct {
	const char *cuda, *hip;
} words[] = {
	{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"},
	{"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"},
	{"CUDA_MODULE_LOADING=EAGER", "HIP_ENABLE_DEFERRED_LOADING=0"},
	{"cudaSetDevice", "hipSetDevice"},
	{"cudaMalloc", "hipMalloc"},
	{"cudaFree", "hipFree"},
	{"cudaMallocHost", "hipHostMalloc"},
	{"cudaFreeHost", "hipHostFree"},
	{"cudaHostRegister", "hipHostRegister"},
	{"cudaHostUnregister", "hipHostUnregister"},
};

const char *sl_api_names_backend(const struct sl_model *model)
{
	for (unsigned i = 0; i < model->header->hook_count; i++)
		if (model->apis[i + 1].calls && model->header->hooks[i].family <= SL_FAMILY_hsa)
			return model->header->hooks[i].family >= SL_FAMILY_hip ? "rocm" : "cuda";
	return "cuda"; /* the families are in this order: CUDA's, HIP's, then those of libraries */
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The first place where the whole word stands; NULL: nowhere. */
static char *find(const char *text, const char *word)
{
	for (char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_of_word(at[-1])) && !is_of_word(at[strlen(word)]))
			return at;
	return NULL;
}

char *sl_api_names_translate(const struct sl_model *model, char *advice)
{
	char *at, *other;

	if (!advice || strcmp(sl_api_names_backend(model), "rocm") != 0)
		return advice;
	for (size_t i = 0; i < SL_COUNT(words); i++)
		while ((at = find(advice, words[i].cuda))) {
			other = sl_memory_print("%.*s%s%s", (int)(at - advice), advice, words[i].hip, at + strlen(words[i].cuda));
			free(advice);
			advice = other;
		}
	return advice;
}
