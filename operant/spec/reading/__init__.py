"""Reading of spec files: YAML, JSON and TOML with the place of everything, and errors that point there."""
