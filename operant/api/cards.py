"""Model cards: what was trained, how well it does and how to load it, for people who find a run on the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operant.api.runs import AnyRun, find_experiment
from operant.report.formatting import compact
from operant.report.summary import TrialSummary, summarise
from operant.run.layout import SPEC_STEM, shown, trial_paths
from operant.store.backend import Store
from operant.store.listing import find_experiments
from operant.store.transfer import read_transfer

INDEX = "/README.md"
MARK = "<!-- written by operant push -->"


def pages(store: Store, key: str, experiment: Path) -> dict[str, bytes]:
    """The card of a run, and the repository's own card: the list of its runs, unless a person has written one."""
    made = {f"{key}/README.md": card_text(experiment, store.place(key)).encode()}
    present = store.read(INDEX)
    if present is None or MARK.encode() in present:
        made[INDEX] = index(sorted({*find_experiments(store), key}), store.url).encode()
    return made


def card(run: AnyRun, /, root: str | Path = "runs") -> str:
    """The model card that `push` writes to the hub, as Markdown; it names the store that the run was last sent to."""
    experiment = find_experiment(run, root)
    return card_text(experiment, _stored_at(experiment))


def _stored_at(experiment: Path) -> str | None:
    """The URL of the run in the store that it was last sent to or came from; None where there is none."""
    url, key = read_transfer(experiment).get("url"), "/".join(experiment.resolve().parts[-2:])
    return url if url is None or url.rstrip("/").endswith(key) else f"{url.rstrip('/')}/{key}"


def card_text(experiment: Path, address: str | None = None) -> str:
    """The model card of a run: every trial's score with its interval, how to load its policy, its spec.

    `address` is where it is stored; without one the policy is loaded from the run's own folder.
    """
    summaries = [summarise(path) for path in trial_paths(experiment)]
    first = summaries[0]
    metadata = {
        "library_name": "operant",
        "tags": ["reinforcement-learning", "operant", *(str(tag) for tag in (first.algorithm, first.env) if tag)],
    }
    return "\n".join(
        [
            *_front_matter(metadata),
            f"# {first.name}",
            "",
            f"{first.algorithm} on {first.env}, trained with [Operant](https://pypi.org/project/operant/).",
            "",
            *_scores(summaries),
            "",
            "## Load the policy",
            "",
            "```python",
            "import operant",
            "",
            *_opening(experiment, address),
            "action = policy.act(obs)  # a batch of observations, as numpy",
            "```",
            "",
            f"On the command line: {_commands(experiment, address)}.",
            "",
            "## Spec",
            "",
            *_spec(experiment),
            "",
        ]
    )


def _opening(experiment: Path, address: str | None) -> list[str]:
    if address is None:
        return [f'policy = operant.open("{shown(experiment)}").policy()']
    return [f'(pulled,) = operant.pull("{address}")', "policy = operant.open(pulled.path).policy()"]


def _commands(experiment: Path, address: str | None) -> str:
    if address is None:
        return ", ".join(f"`operant {verb} {shown(experiment)}`" for verb in ("show", "watch", "resume"))
    return f"`operant pull {address}`, then `operant show`, `operant watch` or `operant resume`"


def index(keys: list[str], url: str) -> str:
    """The card of a repository of runs."""
    rows = [f"- [{key}]({key}/README.md): `operant pull {url.rstrip('/')}/{key}`" for key in keys]
    metadata = {"library_name": "operant", "tags": ["reinforcement-learning", "operant"]}
    return "\n".join([*_front_matter(metadata), MARK, "# Runs", "", *rows, ""])


def _front_matter(metadata: dict[str, Any]) -> list[str]:
    tags = [f"- {tag!r}" for tag in metadata["tags"]]
    return ["---", f"library_name: {metadata['library_name']}", "tags:", *tags, "---", ""]


def _scores(summaries: list[TrialSummary]) -> list[str]:
    """A row for each trial: the score with its interval over seeds, and what it rests on."""
    rows = ["| trial | state | seeds | frames | score | from |", "|---|---|---|---|---|---|"]
    for each in summaries:
        score = "none yet" if each.score is None else each.score.text()
        cells = (each.path.name, each.state, len(each.sessions), compact(each.frames), score, each.score_from or "-")
        rows.append(f"| {' | '.join(map(str, cells))} |")
    notes = [f"- {note}" for each in summaries for note in each.notes]
    told = "The score is the mean greedy return over seeds, in brackets its 95 % bootstrap interval."
    return [*rows, "", told, *notes]


def _spec(experiment: Path) -> list[str]:
    files = sorted(experiment.glob(f"{SPEC_STEM}.*"))
    if not files:
        return ["`resolved.json` holds every setting."]
    try:
        text = files[0].read_text(encoding="utf-8").rstrip()
    except (OSError, UnicodeDecodeError):
        return ["`resolved.json` holds every setting."]
    return [f"```{files[0].suffix[1:]}", text, "```", "", "`resolved.json` holds every setting, defaults included."]
