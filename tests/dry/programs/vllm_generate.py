# SPDX-License-Identifier: MIT
"""vLLM's engine with a model's configuration alone, up to generated tokens.  Usage: vllm_generate.py MODEL [ARGUMENT=VALUE...]"""
import json
import os
import sys
import tempfile

ALL = {"torch_dtype": "bfloat16", "rms_norm_eps": 1e-6, "max_position_embeddings": 8192, "bos_token_id": 0, "eos_token_id": 1}
SILU = {**ALL, "hidden_act": "silu", "rope_theta": 1e6}
MODELS = {
    "qwen2-0.5b": {**SILU, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
                   "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True},
    "llama-8b": {**SILU, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False},
    "moe-30b": {**SILU, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48,
                "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": False, "num_experts": 128,
                "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []},
    "gemma3-4b": {**ALL, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
                  "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 1e6,
                  "rope_local_base_freq": 1e4, "query_pre_attn_scalar": 256, "sliding_window": 1024, "sliding_window_pattern": 6, "pad_token_id": 2},
}


def main():
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(MODELS[sys.argv[1]], file)
        asked = {name: json.loads(value) for name, value in (word.split("=") for word in sys.argv[2:])}
        engine = LLM(folder, load_format="dummy", skip_tokenizer_init=True, **asked)
        done = engine.generate([{"prompt_token_ids": list(range(5, 5 + length))} for length in (4, 200)],
                               SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False))
    lengths = [len(one.outputs[0].token_ids) for one in done]
    print("generated", lengths)
    sys.exit(lengths != [8, 8])


if __name__ == "__main__":
    main()
