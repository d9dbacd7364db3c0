"""The episodes of a run, as `operant show` prints them: a list, one, two side by side, a tree."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.report.episodes import Catalogue, Entry
    from operant.report.filters import Filter
    from operant.report.trees import Tree

MARK = "#"
MOST_SHOWN = 2


@dataclass(frozen=True)
class Request:
    """What the options of `operant show` say."""

    task: str | None = None
    item: str | None = None
    split: str | None = None
    ended: str | None = None
    score: str | None = None
    version: str | None = None
    text: str | None = None
    faults: bool = False
    errors: bool = False
    sort: str = "newest"
    limit: int = 20
    tree: bool = False
    full: bool = False
    episodes: bool = False

    def filter(self) -> Filter:
        """The filter that they mean; `UsageError` for a range that is none, or a word that is not known."""
        from operant.report.filters import Filter, Range
        from operant.run.episode import ENDINGS

        if self.ended not in (None, *ENDINGS):
            raise UsageError(f"no episode ends by {self.ended!r}", remedy=f"--ended {' or '.join(ENDINGS)}")
        ranges = {"score": self.score, "version": self.version}
        parsed = {name: Range.parse(text, f"--{name}") for name, text in ranges.items() if text is not None}
        found = Filter(
            self.task, self.item, self.split, self.ended, text=self.text, faulty=self.faults, failed=self.errors
        )
        return Filter(**{**vars(found), **parsed})


def wants_episodes(chosen: Sequence[str], request: Request) -> bool:
    """Whether a command line asks for episodes and not for a run."""
    from operant.report.episodes import holds_episodes
    from operant.run.layout import RUN_FILE

    if astuple(request) != astuple(Request()) or len(chosen) > 1 or MARK in chosen[0]:
        return True
    place = Path(chosen[0])
    bare = holds_episodes(place) and not (place / RUN_FILE).is_file() and (place.is_file() or _is_plain_folder(place))
    return bare or chosen[0].endswith(".jsonl")


def show_episodes(chosen: Sequence[str], root: Path, request: Request, as_json: bool) -> int:
    """Print what is asked for."""
    wanted = request.filter()
    named = [_opened(each, root) for each in chosen]
    if all(entry is None for _, entry in named) and len(named) == 1:
        return _tell_many(named[0][0], wanted, request, as_json)
    pairs = [(catalogue, entry) for catalogue, entry in named if entry is not None]
    if len(pairs) < len(named) or len(pairs) > MOST_SHOWN:
        raise UsageError(
            f"one episode is shown by itself, or two side by side; these are {plural(len(named), 'thing')}",
            remedy=f"operant show {chosen[0].partition(MARK)[0]}{MARK}1 {chosen[0].partition(MARK)[0]}{MARK}2",
        )
    if request.tree:
        return _tell_trees([_tree_with(*pair) for pair in pairs], as_json)
    return _print_episodes(pairs, request, as_json)


def _opened(target: str, root: Path) -> tuple[Catalogue, Entry | None]:
    """The catalogue of `RUN` or `RUN#EPISODE`, and the episode."""
    from operant.report.episodes import Catalogue

    run, _, name = target.partition(MARK)
    catalogue = Catalogue.open(_place(run, root))
    return catalogue, catalogue.find(name) if name else None


def _place(run: str, root: Path) -> Path:
    from operant.cli.opening import open_place
    from operant.report.episodes import SUFFIX, holds_episodes

    path = Path(run)
    if path.suffix == SUFFIX and not path.is_file():
        raise UsageError("there is no such file", place=run, remedy="`operant runs` lists the runs")
    if path.is_file() or (_is_plain_folder(path) and holds_episodes(path)):
        return path
    return open_place(run, root)


def _is_plain_folder(path: Path) -> bool:
    """Whether a folder has episodes of its own without being a run, as the records of a bare model are."""
    from operant.run.layout import EPISODES_FILE, RUN_FILE

    return (path / EPISODES_FILE).is_file() and not (path / RUN_FILE).is_file()


def _tell_many(catalogue: Catalogue, wanted: Filter, request: Request, as_json: bool) -> int:
    from operant.report.filters import select
    from operant.report.transcript import listing
    from operant.report.trees import trees
    from operant.run.layout import shown

    found = select(catalogue, wanted, request.sort)
    if request.tree:
        return _tell_trees(trees(sorted(found, key=lambda entry: (entry.label, entry.line)))[: request.limit], as_json)
    if as_json:
        rows = [_entry_document(catalogue, entry) for entry in found[: request.limit]]
        document({"episodes": rows, "count": len(found), "exit": EXIT_DONE})
        return EXIT_DONE
    say(*listing(catalogue, found, request.limit))
    if catalogue.damaged:
        aside(f"note: {plural(catalogue.damaged, 'line')} of these files could not be read")
    if found:
        aside("", f"one of them: operant show '{shown(catalogue.path)}{MARK}{catalogue.name_of(found[0])}'")
    return EXIT_DONE


def _print_episodes(pairs: Sequence[tuple[Catalogue, Entry]], request: Request, as_json: bool) -> int:
    from operant.report.formatting import carries_unicode
    from operant.report.transcript import Page, comparison, transcript

    if as_json:
        rows = [{"name": each.name_of(entry), **_row(each, entry)} for each, entry in pairs]
        document({"episodes": rows, "exit": EXIT_DONE})
        return EXIT_DONE
    width = shutil.get_terminal_size().columns
    page = Page(width, head=None if request.full else Page.head, unicode=carries_unicode(sys.stdout))
    (name, episode), *others = [(catalogue.name_of(entry), catalogue.read(entry)) for catalogue, entry in pairs]
    say(*(comparison((name, episode), others[0], page) if others else transcript(episode, name, page)))
    return EXIT_DONE


def _tree_with(catalogue: Catalogue, entry: Entry) -> Tree:
    from operant.report.trees import tree_with
    from operant.run.layout import shown

    tree = tree_with(catalogue.entries, entry)
    if tree is None:
        place = shown(catalogue.path)
        raise UsageError(
            f"episode {catalogue.name_of(entry)} is no part of a search",
            place=place,
            remedy=f"operant show {place} --tree",
        )
    return tree


def _tell_trees(found: Sequence[Tree], as_json: bool) -> int:
    from operant.report.formatting import carries_unicode
    from operant.report.trees import draw_tree

    if as_json:
        document({"trees": [tree.as_dict() for tree in found], "exit": EXIT_DONE})
        return EXIT_DONE
    for number, tree in enumerate(found):
        say(*([""] if number else []), *draw_tree(tree, carries_unicode(sys.stdout)))
    if not found:
        say("there is no search among these episodes: none of them continues another")
    return EXIT_DONE


def _row(catalogue: Catalogue, entry: Entry) -> dict[str, Any]:
    return json.loads(next(catalogue.lines_of([entry])))


def _entry_document(catalogue: Catalogue, entry: Entry) -> dict[str, Any]:
    from dataclasses import asdict

    left_out = ("label", "offset", "size")
    return {
        **{key: value for key, value in asdict(entry).items() if key not in left_out},
        "name": catalogue.name_of(entry),
    }
