"""WHERE a job runs. A job is an argv on a run directory; nothing here knows an engine."""
