"""The command tree: every command and group with its line in the overview."""

from __future__ import annotations

from typing import Annotated

import typer

from operant import __version__
from operant.cli import (
    bench,
    card,
    check,
    compare,
    convert,
    diff,
    doctor,
    export,
    hackmatrix,
    help_command,
    jobs,
    listing,
    models,
    monitor,
    new,
    plan,
    play,
    plot,
    report_page,
    search,
    serve,
    show,
    store,
    tagging,
    tasks,
    track,
    train,
    verify,
    viewer,
)
from operant.cli.output import say

COMMANDS = (
    ("train", train.train, "Train a spec: every seed, then the score with its interval."),
    ("resume", train.resume, "Continue a run exactly, or with -s as a fork."),
    ("search", search.search, "Search settings: trials by a sampler, promoted by resuming."),
    ("launch", jobs.launch, "Send a spec to a cluster or a cloud, as a job."),
    ("check", check.check, "Validate a spec and estimate its time and disk."),
    ("plan", plan.plan, "Simulate a language run on many machines."),
    ("new", new.new, "Write an algorithm, env, net or task of your own."),
    ("eval", play.evaluate, "Score a run's policies, or a language model in tasks."),
    ("export", export.export, "Write a policy to a file that runs without Operant."),
    ("serve", serve.serve, "Serve a language model to OpenAI's clients."),
    ("watch", play.watch, "Watch the agent play, in a window or as a video."),
    ("play", hackmatrix.play, "Play a game yourself, in this terminal."),
    ("specs", listing.specs, "List the built-in specs, or print one."),
    ("runs", listing.runs, "List the runs with state and score."),
    ("monitor", monitor.monitor, "Watch any number of runs in the terminal."),
    ("tag", tagging.tag, "Put tags on a run, or take them off."),
    ("archive", tagging.archive, "Leave a run out of the list, without deleting it."),
    ("show", show.show, "Show a run, or its episodes turn by turn."),
    ("track", track.track, "Copy a run to W&B, TensorBoard, MLflow or Trackio."),
    ("app", viewer.app, "Look at runs and trajectories in a browser."),
    ("compare", compare.compare, "Say which of several runs is better, if that can be said."),
    ("diff", diff.diff, "Say in what two runs differ, what matters most first."),
    ("verify", verify.verify, "Run a part of a run again and compare every byte."),
    ("plot", plot.plot, "Draw learning curves to SVG, PNG and CSV."),
    ("report", report_page.report, "Write a run as one HTML file that opens offline."),
    ("card", card.card, "Print a run's model card, as for the Hugging Face hub."),
    ("bench", bench.bench, "Train a suite, write its table, fail if a cell is worse."),
    ("push", store.push, "Store a run on S3, the Hugging Face hub or in a folder."),
    ("pull", store.pull, "Bring a stored run here, verified."),
    ("sync", store.sync, "Push a run while it trains."),
    ("ls", store.ls, "List the runs in a store."),
    ("help", help_command.help_, "Explain every setting of a section or algorithm."),
    ("convert", convert.convert, "Write a spec of another lab as a native one."),
    ("schema", help_command.schema, "Print the JSON Schema of spec files."),
    ("doctor", doctor.doctor, "Report versions, devices, disk, extras, speed."),
)

# What follows a dash here may be a tag to remove, so there are no short options.
SETTINGS = {"tag": {"ignore_unknown_options": True, "help_option_names": ["--help"]}}

GROUPS = (
    ("hackmatrix", hackmatrix.app, "Serve the grid hacking game to a program, show its replays."),
    ("jobs", jobs.app, "List the jobs that were launched, follow one, stop one."),
    ("models", models.app, "List pretrained language models, and fetch one by name."),
    ("tasks", tasks.app, "List the language tasks, show their problems, check their verifiers."),
)

app = typer.Typer(
    name="operant",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"operant {__version__}")
        raise typer.Exit


@app.callback()
def _operant(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """One lab for reinforcement learning: one spec, one command line, one run directory.

    \b
      operant train ppo_cartpole        train 4 seeds of a built-in spec
      operant show ppo_cartpole         what came of it
      operant resume ppo_cartpole       continue after a stop, exactly
      operant help algorithm ppo        every setting, with default and range
    """


for _name, _command, _short in COMMANDS:
    app.command(_name, short_help=_short, context_settings=SETTINGS.get(_name))(_command)
for _name, _group, _short in GROUPS:
    app.add_typer(_group, name=_name, short_help=_short)
app.command("session", hidden=True)(train.session)
app.command("fork-server", hidden=True)(train.fork_server)
