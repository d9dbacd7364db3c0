"""Where files live: local, on S3 or on the Hugging Face hub."""
