"""Serving a policy over HTTP in OpenAI's words: `operant serve`, and the endpoint for environments."""
