"""Generation: prompts in tokens go in, completions with their log-probabilities come out."""
