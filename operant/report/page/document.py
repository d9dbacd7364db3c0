"""The page itself: every text escaped, no script of its own, nothing from the network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files

from operant.report.formatting import compact, duration, score
from operant.report.page.charts import chart, legend
from operant.report.page.content import MOST_TRIALS, Alert, Content, Media, Transcript, facts_of
from operant.report.summary import session_table
from operant.report.timeline import Step, steps
from operant.report.transcript import VISIBLE, score_line, size_line
from operant.run.episode import Turn

LONG_TEXT = 1500
SHOWN_OF_LONG = 400
LONGEST_TEXT = 60_000
KEPT_LINE_ENDS = {code: text for code, text in VISIBLE.items() if code not in (9, 10)}
# A replay brings its own script, in a frame that may do nothing else; without one no script runs at all.
POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
REPLAY_POLICY = f"{POLICY}; script-src 'unsafe-inline'"


def render(content: Content) -> str:
    """The whole document."""
    sections = [
        ("curves", "Learning curves", _curves(content)),
        ("trials", "Trials", _trials(content)),
        ("episodes", "Episodes", _episodes(content)),
        ("alerts", "Alerts", _alerts(content.alerts, content.summary.notes)),
        ("seeds", "Seeds", _table(*session_table(content.summary.sessions))),
        ("provenance", "Provenance", _provenance(content)),
        ("spec", "Spec", _spec(content)),
    ]
    there = [(key, title, body) for key, title, body in sections if body]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in there)
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{inner}</section>' for key, title, inner in there)
    style = files("operant.report.page").joinpath("page.css").read_text(encoding="utf-8")
    policy = REPLAY_POLICY if content.media.replay else POLICY
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{text(content.summary.name)}: report</title><style>{style}</style></head>"
        f"<body><header>{_head(content)}</header><nav>{links}</nav><main>{body}</main>"
        f"<footer>Written by Operant from {text(facts_of(content)[0][1])}.</footer></body></html>\n"
    )


def text(value: object) -> str:
    """A text as HTML: nothing in it is markup, and control characters are shown."""
    return escape(str(value).translate(KEPT_LINE_ENDS))


def _head(content: Content) -> str:
    found = content.summary
    what = " on ".join(part for part in (found.algorithm, found.env) if part)
    chips = [f'<span class="chip {text(found.state)}">{text(found.state)}</span>']
    chips += [f'<span class="chip tag">{text(tag)}</span>' for tag in content.tags.tags]
    tiles = [
        ("frames per seed", compact(found.frames)),
        ("training time", duration(found.seconds)),
        ("seeds", str(len(found.sessions))),
        ("resume", found.resume or ""),
        ("random policy", score(found.random_score) if found.random_score is not None else ""),
        ("before training", score(found.start_score) if found.start_score is not None else ""),
    ]
    shown = "".join(f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>" for name, value in tiles if value)
    return (
        f'<div class="title"><h1>{text(found.name)}</h1><p>{text(what)} {"".join(chips)}</p></div>'
        f'<div class="score">{_score(content)}</div><dl class="tiles">{shown}</dl>'
    )


def _score(content: Content) -> str:
    found = content.summary
    if found.score is None:
        return "<strong>no score yet</strong><span>no seed was evaluated</span>"
    interval = f"[{score(found.score.low)}, {score(found.score.high)}]" if found.score.low is not None else ""
    seeds = "1 seed, no interval" if found.score.n == 1 else f"95 % interval over {found.score.n} seeds"
    episodes = f", {found.episodes:,} episodes each" if found.episodes else ""
    return (
        f"<strong>{score(found.score.point)}</strong> <em>{interval}</em>"
        f"<span>mean greedy return, {seeds}{episodes}; {text(found.score_from or '')}</span>"
    )


def _curves(content: Content) -> str:
    drawn = "".join(chart([line], metric) for metric, line in content.charts)
    if not drawn:
        return ""
    several = len(content.record.sessions) > 1
    key = "Thick: mean over seeds. Shaded: its 95 % bootstrap interval. Thin: each seed." if several else "One seed."
    return f'<p class="note">{key}</p><div class="charts">{drawn}</div>'


def _trials(content: Content) -> str:
    if not content.trials:
        return ""
    top = [each for each in content.trials if each.line.seeds][:MOST_TRIALS]
    figure = chart([each.line for each in top], f"train/return of the best {len(top)} trials")
    head = ("trial", "score", "state", "frames", "settings")
    rows = [
        (
            each.name,
            "-" if each.summary.score is None else each.summary.score.text(),
            each.summary.state,
            compact(each.summary.frames),
            each.settings,
        )
        for each in content.trials
    ]
    return f'<div class="charts wide">{figure}</div>{legend([each.name for each in top])}{_table(head, *rows)}'


def _episodes(content: Content) -> str:
    # Where there are words nobody misses a video.
    media = replace(content.media, note=None) if content.transcripts else content.media
    return _media(media) + "".join(_transcript(each) for each in content.transcripts)


def _media(media: Media) -> str:
    caption = f"<figcaption>{text(media.caption)}</figcaption>" if media.caption else ""
    if media.replay:
        frame = f'<iframe title="replay" sandbox="allow-scripts" srcdoc="{escape(media.replay)}"></iframe>'
        return f'<figure class="replay">{caption}{frame}</figure>'
    if media.video and media.kind.startswith("video/"):
        player = f'<video controls autoplay muted loop playsinline src="{escape(media.video)}"></video>'
        return f'<figure class="media">{caption}{player}</figure>'
    if media.video:
        return f'<figure class="media">{caption}<img alt="the agent plays" src="{escape(media.video)}"></figure>'
    return f'<p class="note">{text(media.note)}</p>' if media.note else ""


def _transcript(transcript: Transcript) -> str:
    episode = transcript.episode
    item = f", item {episode.item}" if episode.item else ""
    heading = f"{transcript.why}: {episode.env}{item}, {score_line(episode)}"
    shown = "".join(_step(step) for step in steps(episode))
    facts = f"{transcript.name}; {size_line(episode)}" + (f"; error: {episode.error}" if episode.error else "")
    return (
        f'<details class="transcript"{" open" if transcript.why == "best" else ""}><summary>{text(heading)}</summary>'
        f'<p class="note">{text(facts)}</p>{shown}</details>'
    )


def _step(step: Step) -> str:
    facts = [f"turn {step.number}" if step.number else "opening", step.tool or ""]
    facts += [f"reward {step.reward:+.4g}" if step.reward is not None else ""]
    fault = f'<p class="fault">fault: {text(step.fault)}</p>' if step.fault else ""
    line = ", ".join(fact for fact in facts if fact)
    return f'<p class="note step">{text(line)}</p>{fault}{"".join(map(_turn, step.turns))}'


def _turn(turn: Turn) -> str:
    role = f"{turn.role} {turn.tool}" if turn.tool and turn.role == "tool" else turn.role
    said = turn.text[:LONGEST_TEXT]
    cut = f"\n... {len(turn.text) - LONGEST_TEXT:,} characters more" if len(turn.text) > LONGEST_TEXT else ""
    body = f"<pre>{text(said + cut)}</pre>"
    if len(said) > LONG_TEXT:
        whole = f"<details><summary>all {len(turn.text):,} characters</summary>{body}</details>"
        body = f"<pre>{text(said[:SHOWN_OF_LONG])} ...</pre>{whole}"
    kind = "said" if turn.role == "assistant" else "heard"
    return f'<div class="turn {kind}"><b>{text(role)}</b>{body}</div>'


def _alerts(alerts: Sequence[Alert], notes: Sequence[str]) -> str:
    if not alerts and not notes:
        return '<p class="note">None: the run told of nothing, and no file is missing.</p>'
    listed = [Alert("note", note) for note in notes]
    rows = "".join(
        f'<li><b class="{text(each.kind)}">{text(each.kind)}</b> {text(each.message)}'
        f"<small>{text(' '.join(part for part in (each.session, each.time.replace('T', ' ')) if part))}</small></li>"
        for each in (*listed, *alerts)
    )
    return f'<ul class="alerts">{rows}</ul>'


def _provenance(content: Content) -> str:
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in facts_of(content))
    packages = content.origin.provenance.get("packages") or {}
    listed = _table(("package", "version"), *((str(name), str(version)) for name, version in packages.items()))
    more = f"<details><summary>all {len(packages)} packages</summary>{listed}</details>" if packages else ""
    return f'<dl class="facts">{rows}</dl>{more}'


def _spec(content: Content) -> str:
    resolved = json.dumps(content.record.spec, indent=2, ensure_ascii=False)
    written = f"<pre>{text(content.spec_text.rstrip())}</pre>" if content.spec_text else ""
    return f"{written}<details><summary>every setting, defaults included</summary><pre>{text(resolved)}</pre></details>"


def _table(head: Sequence[str], *rows: Sequence[str]) -> str:
    top = "".join(f"<th>{text(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
