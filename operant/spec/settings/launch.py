"""Settings of `operant launch`: what a job asks for, and what each place to run it needs to know."""

from __future__ import annotations

from typing import Literal

from operant.spec.fields import Closed, free, section

PLACES = ("local", "slurm", "ray", "dstack", "sagemaker")


class SlurmSpec(Closed):
    """Jobs of a Slurm cluster whose nodes share the run directory."""

    partition: str | None = free(default=None, pattern=r"^[\w.,-]+$", description="Partition; null for the default.")
    account: str | None = free(default=None, pattern=r"^[\w.-]+$", description="Account that is charged.")
    qos: str | None = free(default=None, pattern=r"^[\w.-]+$", description="Quality of service.")
    options: list[str] = free(
        default_factory=list,
        max_length=50,
        description="Further options of sbatch, each as it is written after #SBATCH.",
    )


class RayJobSpec(Closed):
    """Jobs of an existing Ray cluster."""

    address: str | None = free(
        default=None,
        min_length=1,
        max_length=1000,
        description="The cluster's dashboard, http://HOST:8265; null for RAY_ADDRESS or the one on this machine.",
    )


class DstackSpec(Closed):
    """Tasks of dstack."""

    backends: list[str] = free(default_factory=list, max_length=20, description="Clouds to choose from; all if empty.")
    regions: list[str] = free(default_factory=list, max_length=50, description="Regions to choose from; all if empty.")
    spot: Literal["spot", "on-demand", "auto"] = free(default="auto", description="Kind of instance.")
    python: str = free(default="3.12", pattern=r"^3\.\d+$", description="Python of the instance.")


class SageMakerSpec(Closed):
    """Training jobs of SageMaker."""

    region: str | None = free(default=None, pattern=r"^[a-z0-9-]+$", description="Region; null for AWS's own settings.")
    role: str | None = free(
        default=None,
        max_length=2048,
        pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$",
        description="ARN of the role that the job runs as; needed to submit.",
    )
    bucket: str | None = free(
        default=None, pattern=r"^[a-z0-9.-]{3,63}$", description="Bucket for source, checkpoints and metrics."
    )
    prefix: str = free(default="operant", pattern=r"^[\w./-]+$", description="Folder of the bucket.")
    image: str | None = free(default=None, max_length=255, description="URI of the image in ECR; needed to submit.")
    instance: str = free(default="ml.m5.xlarge", pattern=r"^ml\.[a-z0-9.-]+$", description="Instance type.")
    instances: int = free(default=1, ge=1, le=100, description="Instances; Ray joins them.")
    volume_gb: int = free(default=100, ge=1, le=16_384, description="Disk of each instance.")
    spot: bool = free(default=False, description="Use spot capacity; an interrupted job resumes from the bucket.")
    subnets: list[str] = free(default_factory=list, max_length=16, description="Subnets of a VPC; none if empty.")
    security_groups: list[str] = free(default_factory=list, max_length=5, description="Security groups in that VPC.")


class LaunchSpec(Closed):
    """Where `operant launch` runs a spec, and with what; flags of the command override it."""

    on: Literal["local", "slurm", "ray", "dstack", "sagemaker"] = free(default="local", description="Where it runs.")
    nodes: int = free(
        default=1,
        ge=1,
        le=1024,
        description="Nodes of each session, in equal shares; its processes are started there and joined (Slurm, Ray).",
    )
    cpus: int = free(default=1, ge=1, le=4096, description="CPUs of each process that trains.")
    gpus: float = free(default=0, ge=0, le=64, description="GPUs of each process that trains.")
    gpu: str | None = free(
        default=None, pattern=r"^[A-Za-z0-9_.:-]+$", description="Kind of GPU, as the place names it, such as L4."
    )
    memory_gb: float | None = free(default=None, gt=0, le=100_000, description="Memory of each process that trains.")
    hours: float = free(default=24, gt=0, le=10_000, description="Longest time that the job may take.")
    max_price: float | None = free(
        default=None,
        gt=0,
        le=10_000,
        description="Most dollars an hour that an instance may cost, where one is rented.",
    )
    setup: list[str] = free(
        default_factory=list, max_length=50, description="Shell lines before the job, such as `module load cuda`."
    )
    slurm: SlurmSpec = section(default_factory=SlurmSpec, description="Of a Slurm cluster.")
    ray: RayJobSpec = section(default_factory=RayJobSpec, description="Of a Ray cluster.")
    dstack: DstackSpec = section(default_factory=DstackSpec, description="Of dstack.")
    sagemaker: SageMakerSpec = section(default_factory=SageMakerSpec, description="Of SageMaker.")
