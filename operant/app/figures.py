"""The app's pictures: rewards over turns, search trees, histories, learning curves. Colours suit light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from operant.report.curve import nice_ticks
from operant.report.formatting import score as score_text
from operant.report.history import History
from operant.report.plots import Line
from operant.report.stats import Estimate
from operant.report.timeline import Step
from operant.report.trees import Node, Tree, layout

TEAL, AMBER, RED, GREY = "#0d9488", "#d97706", "#dc2626", "#8b8f98"
SERIES = (TEAL, "#6366f1", AMBER, "#db2777", "#0284c7", "#65a30d", "#9333ea", "#a16207")
SCALE = ((0.0, "#94a3b8"), (0.5, "#5eb8ae"), (1.0, "#0f766e"))
ROW_PIXELS, LEAST_PIXELS, MOST_PIXELS = 46, 260, 1100
FAINT = 0.16
SECONDS_AXIS = {
    "overlaying": "y",
    "side": "right",
    "title": "seconds",
    "showgrid": False,
    "rangemode": "tozero",
    "nticks": 4,
}


def rewards(episodes: Sequence[tuple[str, Sequence[Step]]]) -> go.Figure:
    """Reward of each turn as bars and their sum as a line, for one episode or two; crosses are faults."""
    figure = go.Figure()
    for number, (name, steps) in enumerate(episodes):
        spoken = [step for step in steps if step.said]
        turns, colour = [step.number for step in spoken], SERIES[number]
        whose = f"{name}: " if len(episodes) > 1 else ""
        figure.add_bar(
            x=turns, y=[step.reward for step in spoken], name=f"{whose}reward", marker_color=colour, opacity=0.45
        )
        figure.add_scatter(
            x=turns, y=[step.total for step in spoken], name=f"{whose}total", line_color=colour, mode="lines+markers"
        )
        faulty = [step for step in spoken if step.fault]
        if faulty:
            figure.add_scatter(
                x=[step.number for step in faulty],
                y=[step.total for step in faulty],
                text=[step.fault for step in faulty],
                name=f"{whose}fault",
                mode="markers",
                marker={"symbol": "x", "size": 11, "color": RED},
            )
    figure.update_xaxes(title="turn", dtick=1 if _most_turns(episodes) <= 30 else None)
    figure.update_yaxes(title="reward")
    return _calm(figure, 260)


def costs(steps: Sequence[Step]) -> go.Figure:
    """Tokens and seconds of each turn."""
    spoken = [step for step in steps if step.said]
    turns = [step.number for step in spoken]
    figure = go.Figure()
    figure.add_bar(
        x=turns, y=[step.tokens for step in spoken], name="tokens written", marker_color=SERIES[1], opacity=0.6
    )
    figure.add_bar(x=turns, y=[step.read for step in spoken], name="tokens read", marker_color=GREY, opacity=0.6)
    figure.add_scatter(
        x=turns,
        y=[step.seconds for step in spoken],
        name="seconds",
        yaxis="y2",
        mode="lines+markers",
        line={"color": AMBER, "dash": "dot"},
    )
    ticks = nice_ticks(0.0, max((step.seconds or 0.0 for step in spoken), default=0.0), most=4)
    figure.update_layout(barmode="stack", yaxis2={**SECONDS_AXIS, "tickvals": ticks})
    figure.update_xaxes(title="turn", dtick=1 if len(turns) <= 30 else None)
    figure.update_yaxes(title="tokens", selector=0)
    return _calm(figure, 260)


def tree(found: Tree, chosen: int | None = None) -> go.Figure:
    """A search from left to right; the path to the best node is drawn thick, and the chosen node has a ring."""
    spots = layout(found)
    best = {node.place for node in found.chosen_path}
    figure = go.Figure()
    for on_path in (False, True):
        edges = [node for node in found.nodes if node.parent is not None and (node.place in best) == on_path]
        xs, ys = [], []
        for node in edges:
            (x0, y0), (x1, y1) = spots[node.parent or 0], spots[node.place]
            xs += [x0, (x0 + x1) / 2, (x0 + x1) / 2, x1, None]
            ys += [y0, y0, y1, y1, None]
        colour = AMBER if on_path else GREY
        line = {"color": colour, "width": 3.5 if on_path else 1.2}
        name = ("path to the answer" if found.answer else "path to the best") if on_path else "other branches"
        figure.add_scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip", name=name)
    figure.add_trace(_nodes(found, spots, best, chosen))
    figure.update_xaxes(visible=False, range=[-0.3, max(x for x, _ in spots) + 0.3])
    figure.update_yaxes(visible=False, autorange="reversed")
    leaves = 1 + max(y for _, y in spots)
    figure.update_layout(clickmode="event+select", dragmode=False)
    return _calm(figure, int(min(MOST_PIXELS, max(LEAST_PIXELS, ROW_PIXELS * leaves + 60))))


def _nodes(found: Tree, spots: Sequence[tuple[float, float]], best: set[int], chosen: int | None) -> go.Scatter:
    nodes = found.nodes
    errors = [node.entry is not None and node.entry.ended == "error" for node in nodes]
    words = [_short(node.score) if node.entry else "" for node in nodes]
    marks = [f"{escape(found.name_of(node))} <b>{word}</b>" for node, word in zip(nodes, words, strict=True)]
    return go.Scatter(
        x=[x for x, _ in spots],
        y=[y for _, y in spots],
        mode="markers+text",
        text=marks,
        textposition="top center",
        textfont={"size": 13},
        hovertext=[_hint(node) for node in nodes],
        hoverinfo="text",
        customdata=[node.entry.full_name if node.entry else "" for node in nodes],
        name="episodes",
        showlegend=False,
        marker={
            "size": [22 if found.best and node.place == found.best.place else 16 for node in nodes],
            "color": [np.nan if node.score is None else node.score for node in nodes],
            "colorscale": SCALE,
            "opacity": 1,
            "symbol": ["x" if failed else "circle" for failed in errors],
            "line": {
                "width": [4 if node.place == chosen else 2 if node.place in best else 0 for node in nodes],
                "color": ["#6366f1" if node.place == chosen else AMBER for node in nodes],
            },
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _hint(node: Node) -> str:
    """What is shown of a node under the pointer."""
    entry = node.entry
    if entry is None:
        return "where every branch began"
    value = [f"value {entry.parts['value']:g}"] if "value" in entry.parts else []
    facts = [node.name, f"score {score_text(entry.score)}", *value, f"{entry.turns} turns, {entry.faults} faults"]
    return "<br>".join(escape(fact) for fact in [*facts, *([entry.error] if entry.error else [])])


def _short(score: float | None) -> str:
    return "error" if score is None else f"{score:.3g}"


def history(found: Sequence[History], axis: str) -> go.Figure:
    """Scores of one task over training, a line with its interval for each split."""
    figure = go.Figure()
    for number, each in enumerate(found):
        xs = [point.x for point in each.points]
        estimates = [point.estimate for point in each.points]
        counts = [f"{point.episodes} episodes" for point in each.points]
        _band(figure, xs, estimates, each.split, SERIES[number % len(SERIES)], counts)
    figure.update_xaxes(title=axis)
    figure.update_yaxes(title="score")
    return _calm(figure, 300)


def curve(line: Line, metric: str, unit: str = "frames") -> go.Figure:
    """A learning curve: every seed, faint, and their mean with its interval."""
    figure = go.Figure()
    for _, seed in line.seeds:
        figure.add_scatter(
            x=seed.x, y=seed.y, mode="lines", line={"color": TEAL, "width": 1}, opacity=0.35, showlegend=False
        )
    lows, highs = ([None] * len(line.mean.x) if end is None else end for end in (line.low, line.high))
    estimates = [Estimate(*row, len(line.seeds)) for row in zip(line.mean.y, lows, highs, strict=True)]
    _band(figure, list(line.mean.x), estimates, metric, TEAL, [f"{len(line.seeds)} seeds"] * len(estimates))
    figure.update_xaxes(title=unit)
    figure.update_yaxes(title=metric)
    return _calm(figure, 300)


def _band(
    figure: go.Figure, xs: list[float], estimates: list[Estimate], name: str, colour: str, hints: list[str]
) -> None:
    """A line with its interval as a shade around it."""
    known = [(x, each) for x, each in zip(xs, estimates, strict=True) if each.low is not None]
    around = [x for x, _ in known]
    ends = [each.high for _, each in known] + [each.low for _, each in reversed(known)]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    shade = f"rgba({red},{green},{blue},{FAINT})"
    figure.add_scatter(
        x=[*around, *reversed(around)],
        y=ends,
        fill="toself",
        fillcolor=shade,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_scatter(
        x=xs, y=[each.point for each in estimates], text=hints, mode="lines+markers", name=name, line={"color": colour}
    )


def _most_turns(episodes: Sequence[tuple[str, Sequence[Step]]]) -> int:
    return max((len(steps) for _, steps in episodes), default=0)


def _calm(figure: go.Figure, height: int) -> go.Figure:
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    return figure.update_layout(height=height, margin={"l": 10, "r": 10, "t": 30, "b": 10}, legend=legend)
