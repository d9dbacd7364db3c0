"""The policy: a causal language model with its tokenizer, its chat template, and the batches that go through it."""
