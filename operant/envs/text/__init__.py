"""Problems in words whose answers can be checked: a prompt, and a verdict on what was answered."""
