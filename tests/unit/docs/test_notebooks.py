"""The notebooks of the docs are committed without outputs and run from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "docs/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell: Any) -> str:
    """Everything that a cell's output shows, as text."""
    data = [str(text) for output in cell["outputs"] for text in output.get("data", {}).values()]
    return "\n".join(data + [output["text"] for output in cell["outputs"] if output["output_type"] == "stream"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    assert [(cell["outputs"], cell["execution_count"]) for cell in code_cells(json.loads(path.read_text()))] == [
        ([], None) for _ in code_cells(json.loads(path.read_text()))
    ]


@pytest.fixture
def run_notebook(tmp_path: Path) -> Any:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")

    def run(name: str) -> Any:
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
        return notebook

    return run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_training_shows_the_table_and_the_curve_in_its_cell(run_notebook: Any) -> None:
    cells = code_cells(run_notebook("train_and_look"))
    view = shown(cells[0])
    assert "<svg" in view
    assert "session_0" in view
    assert "session_1" in view
    assert view.count("<pre>") == 1, "the view is redrawn in place, not added again"
    assert shown(cells[1]).startswith("done ")
    assert shown(cells[-1]).startswith("stopped ")


@pytest.mark.slow  # the functions that it calls are those of `tests/unit/api` and of the page about Python
@pytest.mark.timeout(600)
def test_two_settings_are_compared(run_notebook: Any) -> None:
    cells = code_cells(run_notebook("compare_settings"))
    assert "cannot tell" in shown(cells[1])
    assert "1e-5" in shown(cells[2])
    assert shown(cells[-1]).count("ppo_cartpole") == 2
