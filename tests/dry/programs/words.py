# SPDX-License-Identifier: MIT
"""What several of these programs train: a small Llama of random weights, and a tokenizer without a file of a hub."""
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

LIST = ["[PAD]", "[EOS]", "[UNK]"] + ["w%d" % i for i in range(2000)]


def tokenizer():
    plain = Tokenizer(models.WordLevel({word: i for i, word in enumerate(LIST)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]")
    made.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    return made


def llama(layers=4):
    return LlamaForCausalLM(LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=layers, num_attention_heads=16,
                                        pad_token_id=0, eos_token_id=1))


def sentence(number, length=200):
    return " ".join("w%d" % ((number * 31 + i) % 2000) for i in range(length))
