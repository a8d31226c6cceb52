# SPDX-License-Identifier: MIT
class EngineArgs:
    def __init__(self, model, load_format="auto", tokenizer=None, skip_tokenizer_init=False):
        self.model, self.load_format, self.tokenizer, self.skip_tokenizer_init = model, load_format, tokenizer, skip_tokenizer_init

    def create_model_config(self):
        pass
