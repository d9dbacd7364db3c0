"""The turns of an episode as HTML that suits a light page and a dark one. Every word of an episode is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from operant.report.formatting import duration
from operant.report.formatting import score as score_text
from operant.report.timeline import Step, same_opening, same_words
from operant.run.episode import Turn

HEAD_LINES, TAIL_LINES = 14, 6
LONGEST_LINE = 600

STYLE = """<style>
.op-steps {display:flex; flex-direction:column; gap:.7rem}
.op-pairs {display:grid; grid-template-columns:minmax(0,1fr) minmax(0,1fr); gap:.7rem 1rem; align-items:stretch}
.op-wide {grid-column:1 / -1}
.op-step {border:1px solid color-mix(in srgb, currentColor 14%, transparent); border-radius:.6rem; overflow:hidden;
  border-left:4px solid color-mix(in srgb, currentColor 22%, transparent)}
.op-step.op-earned {border-left-color:#0d9488}
.op-step.op-lost {border-left-color:#d97706}
.op-step.op-fault {border-left-color:#dc2626}
.op-step.op-over {border-style:dashed; opacity:.55; padding:.5rem .8rem}
.op-facts {display:flex; flex-wrap:wrap; gap:.35rem .5rem; align-items:center; padding:.45rem .8rem; font-size:.86rem;
  background:color-mix(in srgb, currentColor 4%, transparent)}
.op-facts b {font-weight:600}
.op-chip {border-radius:1rem; padding:.05rem .55rem; font-size:.8rem; white-space:nowrap;
  background:color-mix(in srgb, currentColor 9%, transparent)}
.op-chip.op-up {background:color-mix(in srgb, #0d9488 24%, transparent)}
.op-chip.op-down {background:color-mix(in srgb, #d97706 26%, transparent)}
.op-quiet {opacity:.62; font-size:.8rem; margin-left:auto; white-space:nowrap}
.op-wrong {padding:.3rem .8rem; font-size:.86rem; background:color-mix(in srgb, #dc2626 13%, transparent)}
.op-who {padding:.4rem .8rem 0; font-size:.74rem; letter-spacing:.03em; opacity:.6}
.op-text {margin:0; padding:.1rem .8rem .5rem; white-space:pre-wrap; overflow-wrap:anywhere; font-size:.83rem;
  line-height:1.45; font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; background:none; border:0}
.op-heard {background:color-mix(in srgb, currentColor 3.5%, transparent)}
.op-heard .op-text {opacity:.86}
.op-tiles {display:flex; flex-wrap:wrap; gap:.45rem}
.op-tile {flex:1 1 auto; border:1px solid color-mix(in srgb, currentColor 14%, transparent); border-radius:.6rem;
  padding:.4rem .6rem .5rem}
.op-tile span {display:block; font-size:.76rem; opacity:.62; white-space:nowrap}
.op-tile b {font-size:1.08rem; font-weight:550; white-space:nowrap; font-variant-numeric:tabular-nums}
.op-name {font-size:1.15rem; font-weight:600}
.op-name i {display:inline-block; width:.7rem; height:.7rem; border-radius:50%; margin-right:.5rem}
.op-more summary {cursor:pointer; padding:.1rem .8rem; font-size:.78rem; opacity:.7}
</style>"""


def tiles(values: Mapping[str, str]) -> str:
    """Numbers with their names, in a row that breaks where it is narrow."""
    cells = (
        f"<div class='op-tile'><span>{escape(name)}</span><b>{escape(value)}</b></div>"
        for name, value in values.items()
    )
    return f'{STYLE}<div class="op-tiles">{"".join(cells)}</div>'


def title(name: str, colour: str) -> str:
    """A name with a dot of the colour that it has in a picture."""
    return f'{STYLE}<div class="op-name"><i style="background:{colour}"></i>{escape(name)}</div>'


def timeline(steps: Sequence[Step]) -> str:
    """All steps, one below the other."""
    return f'{STYLE}<div class="op-steps">{"".join(card(step) for step in steps)}</div>'


def pairs(rows: Sequence[tuple[Step | None, Step | None]]) -> str:
    """Two episodes in two columns, turn beside turn; an opening that both share is shown once."""
    cells = [
        f'<div class="op-wide">{card(left)}</div>' if left and same_opening(left, right) else _pair(left, right)
        for left, right in rows
    ]
    return f'{STYLE}<div class="op-pairs">{"".join(cells)}</div>'


def card(step: Step, note: str = "") -> str:
    """One step: a line of facts, the fault, and the words of each who spoke."""
    reward = step.reward or 0.0
    kind = "op-fault" if step.fault else "op-earned" if reward > 0 else "op-lost" if reward < 0 else ""
    wrong = f'<div class="op-wrong">fault: {escape(step.fault)}</div>' if step.fault else ""
    return f'<div class="op-step {kind}">{_facts(step, note)}{wrong}{"".join(_turn(turn) for turn in step.turns)}</div>'


def _pair(left: Step | None, right: Step | None) -> str:
    note = "same words" if same_words(left, right) else ""
    over = '<div class="op-step op-over">over</div>'
    return "".join(card(step, note) if step else over for step in (left, right))


def _facts(step: Step, note: str) -> str:
    chips = []
    if step.tool:
        chips.append(f'<span class="op-chip">{escape(step.tool)}</span>')
    if step.reward is not None:
        side = "op-up" if step.reward > 0 else "op-down" if step.reward < 0 else ""
        chips.append(f'<span class="op-chip {side}">reward {step.reward:+.4g}</span>')
    if step.score is not None:
        chips.append(f'<span class="op-chip">score {score_text(step.score)}</span>')
    if note:
        chips.append(f'<span class="op-chip">{escape(note)}</span>')
    title = f"Turn {step.number}" if step.number else "Opening"
    quiet = f'<span class="op-quiet">{_costs(step)}</span>'
    return f'<div class="op-facts"><b>{title}</b>{"".join(chips)}{quiet}</div>'


def _costs(step: Step) -> str:
    costs = [f"{step.tokens:,} tokens" if step.said else "", f"{step.read:,} read" if step.read else ""]
    costs += [duration(step.seconds) if step.seconds is not None else ""]
    costs += [f"total {step.total:+.4g}" if step.reward is not None else ""]
    return " · ".join(cost for cost in costs if cost)


def _turn(turn: Turn) -> str:
    heard = "" if turn.role == "assistant" else "op-heard"
    who = f"{turn.role} · {turn.tool}" if turn.role == "tool" and turn.tool else turn.role
    return f'<div class="{heard}"><div class="op-who">{escape(who)}</div>{_words(turn.text)}</div>'


def _words(text: str) -> str:
    """The text; of a long one the middle is folded away and opens with a click."""
    lines = text.splitlines() or [""]
    if len(lines) <= HEAD_LINES + TAIL_LINES + 1:
        return _block(lines)
    head, middle, tail = lines[:HEAD_LINES], lines[HEAD_LINES:-TAIL_LINES], lines[-TAIL_LINES:]
    more = f"<summary>{len(middle):,} lines more</summary>"
    return f'{_block(head)}<details class="op-more">{more}{_block(middle)}</details>{_block(tail)}'


def _block(lines: Sequence[str]) -> str:
    return f'<div class="op-text">{escape(chr(10).join(_shortened(line) for line in lines))}</div>'


def _shortened(line: str) -> str:
    """A line of thousands of characters would fill the page: its middle is left out, and said to be."""
    if len(line) <= LONGEST_LINE:
        return line
    half = LONGEST_LINE // 2
    return f"{line[:half]} [... {len(line) - 2 * half:,} characters ...] {line[-half:]}"
