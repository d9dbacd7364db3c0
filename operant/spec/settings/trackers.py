"""Settings of trackers: where a run's curves, episodes and videos are copied to while it trains.

None of them changes what is learnt, so a fork may change all of them. Keys and passwords are no settings: each tracker
finds them where its own tools look (`wandb login`, `MLFLOW_TRACKING_TOKEN`, ...), and a run never stores them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError

from operant.errors import UsageError
from operant.spec.fields import Closed, fixed, free
from operant.spec.registry import PartRegistry

WHY = "each part keeps what it needs itself"


class TrackerSpec(Closed):
    """The base of every tracker's settings (abstract).

    `TRACKER` is the `module:class` that copies a session; `NEEDS` are the modules that must be installed for it.
    """

    TRACKER: ClassVar[str] = ""
    NEEDS: ClassVar[tuple[str, ...]] = ()

    name: Any  # each tracker narrows it to its own Literal
    episodes: Literal["eval", "all", "none"] = free(
        default="eval",
        description="Which episodes, with the completions of a language run, are logged as tables: those of "
        "evaluations, those of training too, or none.",
    )
    videos: bool = free(default=True, description="Log the videos of the session's media folder.")
    timeout: float = free(
        default=300.0, gt=0, le=86_400, description="Seconds after which a call that does not return has failed."
    )


class TensorBoardSpec(TrackerSpec):
    """TensorBoard event files."""

    TRACKER = "operant.trackers.tensorboard:TensorBoardTracker"
    NEEDS = ("tensorboard",)

    name: Literal["tensorboard"] = fixed(WHY, default="tensorboard", description="Tracker.")
    dir: str | None = free(
        default=None, description="Folder of all runs' event files; null for `track/tensorboard` in the session."
    )


class WandbSpec(TrackerSpec):
    """Weights & Biases, online or offline."""

    TRACKER = "operant.trackers.wandb:WandbTracker"
    NEEDS = ("wandb",)

    name: Literal["wandb"] = fixed(WHY, default="wandb", description="Tracker.")
    project: str = free(default="operant", min_length=1, max_length=128, description="Project of the runs.")
    entity: str | None = free(default=None, description="User or team; null for the default of the key.")
    mode: Literal["online", "offline"] | None = free(
        default=None, description="Upload, or keep files for `wandb sync`; null for WANDB_MODE, else online."
    )
    dir: str | None = free(
        default=None, description="Folder that gets W&B's folder `wandb`; null for `track` in the session."
    )
    group: str | None = free(default=None, description="Group of the runs; null for one per experiment.")
    tags: tuple[str, ...] = free(default=(), max_length=100, description="Tags of the runs.")
    notes: str | None = free(default=None, description="Notes on the runs.")


def _without_login(uri: str | None) -> str | None:
    if uri is not None and re.search(r"://[^/@\s]+@", uri) and uri.startswith(("http:", "https:")):
        reason = "leave the login out: MLflow reads it from MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        raise PydanticCustomError("not_plain", "{reason}", {"reason": reason})
    return uri


class MlflowSpec(TrackerSpec):
    """MLflow, on a server or in a local database."""

    TRACKER = "operant.trackers.mlflow:MlflowTracker"
    NEEDS = ("mlflow",)

    name: Literal["mlflow"] = fixed(WHY, default="mlflow", description="Tracker.")
    tracking_uri: Annotated[str | None, AfterValidator(_without_login)] = free(
        default=None, description="Server (http://...) or database (sqlite:///...); null for MLflow's own default."
    )
    experiment: str = free(default="operant", min_length=1, max_length=500, description="Experiment of the runs.")
    tags: tuple[str, ...] = free(default=(), max_length=100, description="Tags of the runs, each `key=value`.")


class TrackioSpec(TrackerSpec):
    """Trackio's local dashboard."""

    TRACKER = "operant.trackers.trackio:TrackioTracker"
    NEEDS = ("trackio",)

    name: Literal["trackio"] = fixed(WHY, default="trackio", description="Tracker.")
    project: str = free(default="operant", min_length=1, max_length=128, description="Project of the runs.")
    dir: str | None = free(
        default=None, description="Folder of Trackio's databases; null for TRACKIO_DIR, else Trackio's own."
    )
    group: str | None = free(default=None, description="Group of the runs; null for one per experiment.")


def _of_class(found: Any, settings: type[TrackerSpec], path: str) -> type[TrackerSpec]:
    """The settings of an own tracker, with its class where the spec names that and not the settings."""
    if found is not settings:
        traits = {"__doc__": found.__doc__ or settings.__doc__, "__module__": found.__module__, "TRACKER": path}
        return type(settings.__name__, (settings,), traits)
    if not settings.TRACKER:
        raise UsageError(
            f"meta.track.name: {path} names no tracker", remedy=f'in {settings.__name__}: TRACKER = "module:class"'
        )
    return settings


TRACKERS = PartRegistry(
    "meta.track.name",
    TrackerSpec,
    {"tensorboard": TensorBoardSpec, "wandb": WandbSpec, "mlflow": MlflowSpec, "trackio": TrackioSpec},
    _of_class,
    kind="tracker",
    keyed=True,
)


def listed(value: Any) -> Any:
    """`meta.track` however it was written, as a list of sections: a name, names, sections, or settings by name."""
    if isinstance(value, str):
        value = (value,)
    if isinstance(value, Mapping):
        sections = {name: {} if each is None else each for name, each in value.items()}
        wrong = [name for name, each in sections.items() if not isinstance(each, Mapping)]
        if wrong:
            raise PydanticCustomError("not_plain", "{reason}", {"reason": f"write {wrong[0]}: {{setting: value}}"})
        return tuple({**each, "name": name} for name, each in sections.items())
    return tuple({"name": each} if isinstance(each, str) else each for each in value) if _is_list(value) else value


class AnyForm:
    """For the JSON Schema: a list of trackers may be written in all the forms that `listed` takes."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        sections, name = handler(schema), {"type": "string"}
        builtin = [{"$ref": each["$ref"]} for each in sections["items"]["oneOf"] if "$ref" in each]
        settings = {kind: {"anyOf": [each, {"type": "null"}]} for kind, each in zip(TRACKERS, builtin, strict=True)}
        sections["items"] = {"anyOf": [name, sections["items"]]}
        return {"anyOf": [name, sections, {"type": "object", "properties": settings}]}


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def each_once(trackers: tuple[TrackerSpec, ...]) -> tuple[TrackerSpec, ...]:
    """A tracker named twice would write one position file twice."""
    names = [each.name for each in trackers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PydanticCustomError("not_plain", "{reason}", {"reason": f"{twice} is named twice"})
    return trackers
