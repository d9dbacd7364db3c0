"""The dashboard and the viewer of trajectories; reads through `report` and `run`, and writes nothing."""
