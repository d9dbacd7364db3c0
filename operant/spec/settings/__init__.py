"""Settings: one class per section, algorithm, network, optimiser, scheduler and memory, each field valid by itself."""
