"""How much memory a language run will take, by part, from the model's configuration and the trainer's batches."""
