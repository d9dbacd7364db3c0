"""The contract of a run, as checks on any spec: what `operant check --contract` tells and what our own tests hold."""
