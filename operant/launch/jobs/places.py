"""The places that jobs can be sent to, by name."""

from __future__ import annotations

from importlib import import_module

from operant.launch.jobs.job import Place

_PLACES = {
    "local": ("operant.launch.jobs.local", "LocalPlace"),
    "slurm": ("operant.launch.jobs.slurm", "SlurmPlace"),
    "ray": ("operant.launch.jobs.ray_jobs", "RayPlace"),
    "dstack": ("operant.launch.jobs.dstack", "DstackPlace"),
    "sagemaker": ("operant.launch.sagemaker.place", "SageMakerPlace"),
}


def place(name: str) -> Place:
    """The place of that name."""
    module, kind = _PLACES[name]
    return getattr(import_module(module), kind)()
