"""A trained policy apart from its engine: as a function of numpy arrays, as a list of layers, and as files."""
