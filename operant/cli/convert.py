"""`operant convert`: the spec files of other labs as native ones."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.files import write_new
from operant.cli.options import AsJson, Overrides, SpecName, Target
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from operant.spec.load import Loaded


def convert(
    target: Target,
    name: SpecName = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it to a new file instead of printing it.")
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Drop settings without counterpart, and say so in the file.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Print what each setting means and becomes, also of a file that is refused."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Write a spec of SLM-Lab, rlvr-experiments or prime-rl as native YAML.

    Comments say what was changed or left out, and why. A setting that has no counterpart and would
    change the results is an error, unless --lossy is given.

    \b
      operant convert ppo_cartpole.json ppo_cartpole --out ppo.yaml
      operant convert ppo_mujoco.yaml -s env=Hopper-v5 -s max_frame=4e6
      operant convert rl.toml --out grpo.yaml
      operant convert --explain ppo_cartpole.json
    """
    if explain:
        return _explain(target, name, overrides or [], as_json)
    from operant.cli.spec_summary import show_evaluation
    from operant.run.layout import shown
    from operant.spec.dialects.write import native_yaml
    from operant.spec.load import load_all

    if (code := show_evaluation(target, as_json)) is not None:
        return code
    specs = load_all(target, name, overrides or [], lossy)
    native = [each.spec.name for each in specs if not each.translated]
    if native:
        cause = f"nothing to convert: {', '.join(native)} is native already"
        raise UsageError(cause, place=target, remedy=f"operant check {target}")
    text = native_yaml(specs, str(specs[0].path))
    if out is not None:
        write_new(out, text, f"operant convert {target}")
    if as_json:
        document({"file": shown(out) if out else None, "text": text, "specs": _facts(specs), "exit": EXIT_DONE})
    elif out is None:
        say(text.rstrip())
    else:
        say(shown(out))
    return EXIT_DONE


def _explain(target: str, name: str | None, overrides: list[str], as_json: bool) -> int:
    """Setting by setting, in the order of the file; exit code 2 where the file is refused."""
    from operant.cli.explanation import lines
    from operant.spec.load import explain_all

    found = explain_all(target, name, overrides)
    code = EXIT_USAGE if any(each.fault for each in found) else EXIT_DONE
    if as_json:
        document({"specs": [asdict(each) for each in found], "exit": code})
    else:
        say(*(line for each in found for line in lines(each, shutil.get_terminal_size().columns)))
        for each in found:
            if each.fault:
                aside(each.fault)
    return code


def _facts(specs: list[Loaded]) -> list[dict[str, object]]:
    return [
        {
            "name": each.spec.name,
            "spec": each.spec.model_dump(mode="json"),
            "remarks": [
                {"key": remark.key, "text": remark.text, "place": remark.at.place if remark.at else None}
                for remark in each.remarks
            ],
        }
        for each in specs
    ]
