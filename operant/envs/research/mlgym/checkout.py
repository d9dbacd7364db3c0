"""A task of a checkout with the files that are there, by their paths in the workspace."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from operant.envs.research.mlgym.sheets import CONFIGS, DataSheet, TaskSheet, checkout_of, read_sheet
from operant.errors import UsageError

LABEL_WORDS = ("ground_truth", "answer", "label", "solution", "target_values")
OPPONENT_WORDS = ("target", "opponent", "adversary")
# Their programs name the workspace by where it lies in their container; ours is the folder that a program starts in.
THEIR_WORKSPACE = b"/home/agent/workspace"


@dataclass(frozen=True)
class Checkout:
    """What a task's file names: its datasets' sheets by their files, and its starter code as bytes."""

    file: Path
    root: Path
    sheet: TaskSheet
    datasets: dict[Path, DataSheet]
    starter: dict[str, bytes]
    sample: bytes | None
    missing: tuple[str, ...]

    @property
    def evaluator(self) -> str:
        """The evaluation file, by its path in the workspace."""
        return self.sheet.evaluation_paths[0]

    @cached_property
    def programs(self) -> dict[str, bytes]:
        """The Python files of the starter code."""
        return {name: text for name, text in self.starter.items() if name.endswith(".py")}

    @cached_property
    def evaluator_texts(self) -> set[str]:
        """The texts that stand in the evaluation file."""
        return texts(self.starter.get(self.evaluator, b""))

    @property
    def opponents(self) -> dict[str, bytes]:
        """Programs of the other side: the agent may read them, and what it makes of them is not used."""
        words = OPPONENT_WORDS
        return {name: text for name, text in self.programs.items() if any(word in stem_of(name) for word in words)}

    @cached_property
    def imports(self) -> set[str]:
        """Packages that the starter code imports, which are neither Python's nor its own."""
        return self.imports_of(self.programs)

    @cached_property
    def evaluator_imports(self) -> set[str]:
        """Those of the evaluation file and of the starter code that it imports."""
        return self.imports_of(self.evaluator_programs)

    @cached_property
    def evaluator_import_lines(self) -> list[str]:
        """The statements by which they are imported."""
        trees = [tree_of(self.programs.get(name, b"")) for name in sorted(self.evaluator_programs)]
        nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        outside = [
            node
            for node in nodes
            if _modules(node) and {_root(each) for each in _modules(node)} <= self.evaluator_imports
        ]
        return list(dict.fromkeys(ast.unparse(node) for node in outside))

    @cached_property
    def evaluator_programs(self) -> set[str]:
        """The evaluation file and the starter code that it imports."""
        wanted, seen = [self.evaluator], set[str]()
        while wanted:
            name = wanted.pop()
            seen.add(name)
            modules = imported_modules(self.programs.get(name, b""))
            files = {f"{module.replace('.', '/')}.py" for module in modules}
            wanted += [file for file in files if file in self.programs and file not in seen]
        return seen

    def imports_of(self, names: Iterable[str]) -> set[str]:
        """The packages that some of the programs import."""
        found = {
            module.partition(".")[0] for name in names for module in imported_modules(self.programs.get(name, b""))
        }
        own = {Path(name).stem for name in self.starter} | {Path(name).parts[0] for name in self.starter}
        return found - own - sys.stdlib_module_names - {"__main__"}

    def labels(self, data: dict[str, bytes]) -> dict[str, bytes]:
        """Files that the evaluation reads and nobody else should: named like labels, or named by it alone."""
        everything = {**self.starter, **data}
        others = {self.sheet.description}.union(
            *(texts(text) for name, text in self.programs.items() if name != self.evaluator)
        )
        return {name: text for name, text in everything.items() if _is_label(name, self.evaluator_texts, others)}


def read_checkout(file: str) -> Checkout:
    """The task of a YAML file below `configs/tasks` of a checkout, with the files that are there."""
    root, path = checkout_of(file), Path(file).resolve()
    sheet = read_sheet(TaskSheet, path)
    if not sheet.evaluation_paths:
        raise UsageError(
            "it names no evaluation_paths, so that nothing can be scored",
            place=f"{path}:1:1",
            remedy="evaluation_paths: [evaluate.py]",
        )
    missing: list[str] = []
    datasets: dict[Path, DataSheet] = {}
    for name in sheet.dataset_configs:
        place = root / CONFIGS / name
        if place.is_file():
            datasets[place] = read_sheet(DataSheet, place)
        else:
            missing.append(f"{CONFIGS}/{name} is not there")
    starter = _starter(root, sheet, missing)
    sample = root / sheet.sample_submission if sheet.sample_submission else None
    content = sample.read_bytes() if sample and sample.is_file() else None
    return Checkout(path, root, sheet, datasets, starter, content, tuple(missing))


def files_below(folder: Path) -> dict[str, Path]:
    """All files of a folder by their relative paths."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def stem_of(name: str) -> str:
    """The name of a file alone, in small letters."""
    return Path(name).stem.lower()


def texts(source: bytes) -> set[str]:
    """The texts that stand in a program."""
    constants = (node.value for node in ast.walk(tree_of(source)) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def imported_modules(source: bytes) -> set[str]:
    """The modules that a program imports, by their full names."""
    return {module for node in ast.walk(tree_of(source)) for module in _modules(node)}


def tree_of(source: bytes) -> ast.Module:
    """The syntax of a program; of one that has none, nothing."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _modules(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _root(module: str) -> str:
    return module.partition(".")[0]


def _starter(root: Path, sheet: TaskSheet, missing: list[str]) -> dict[str, bytes]:
    """Files go to the top of the workspace, folders with all that is in them; the evaluation file may lie beside."""
    found: dict[str, bytes] = {}
    for name in sheet.starter_code:
        place = root / name
        if place.is_file():
            found[place.name] = _content(place)
        elif place.is_dir():
            found |= {f"{place.name}/{inner}": _content(path) for inner, path in files_below(place).items()}
        else:
            missing.append(f"{name} is not there")
    evaluator = sheet.evaluation_paths[0]
    if evaluator not in found and (root / evaluator).is_file():
        found[evaluator] = _content(root / evaluator)
    if evaluator not in found:
        missing.append(f"its evaluation file {evaluator} is not in starter_code")
    return found


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return data.replace(THEIR_WORKSPACE, b".") if path.suffix == ".py" else data


def _is_label(name: str, read: set[str], others: set[str]) -> bool:
    if name.endswith(".py"):
        return False
    stem = stem_of(name)
    called_so = "train" not in stem and any(word in stem for word in LABEL_WORDS)
    return called_so or (_named(name, read) and not _named(name, others))


def _named(name: str, words: set[str]) -> bool:
    return any(Path(name).name in text for text in words)
