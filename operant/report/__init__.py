"""What was learnt: reads run directories only, never an engine and never a live process."""
