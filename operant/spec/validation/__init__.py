"""Cross-field validation: what must hold between settings, with the nearest valid values where it does not."""
