"""The app in a real browser: curves of several runs, every view of episodes, a run that grows, hostile words.

Screenshots of every view, wide and narrow, light and dark, are left in pytest's temporary folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.many_runs import Size, write_tree
from operant.run.metrics import JsonLines
from tests.e2e.dashboard import NARROW, WIDE, Visitor, chromium, served
from tests.unit.report.trajectories import TITANIC, play, training, write_experiment, write_rows, write_runs

SEARCH, RESEARCH, LIVE = (
    "search_blotto/20261115-183000", "grpo_research/20261115-180000", "grpo_titanic/20261115-190000",
)  # fmt: skip
PPO, DQN, LANGUAGE = "ppo_cartpole/20261001-000000", "dqn_cartpole/20261001-000100", "grpo_gsm8k/20261001-000900"
LUNAR = "ppo_lunarlander/20261001-000800"
TRIALS, EMPTY = "ppo_cartpole_search/20261001-001200", "dqn_cartpole/20261001-001300"
EVIL = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
VIEWS = ("curves", "run", "completions", "episodes", "timeline", "compare", "tree", "history", "trials")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_runs(tmp_path_factory.mktemp("viewer") / "runs")
    write_tree(root, 14, Size(3, 60))
    hostile = [each.as_dict() for each in training(3, [TITANIC])][:3]
    for row in hostile:
        row["turns"][-1]["text"] = EVIL
        row["env"] = row["id"] = EVIL
    place = write_experiment(root, "evil", "20200101-000000", [play(1)])
    write_rows(place / "trial_000/session_0/episodes.jsonl", hostile)
    (place / "tags.json").write_text(json.dumps({"tags": [EVIL], "archived": False}))
    return root


@pytest.fixture(scope="module")
def url(runs: Path) -> Iterator[str]:
    with served(runs) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(params=["wide light"])
def visitor(request: pytest.FixtureRequest, browser: Any, url: str, tmp_path: Path) -> Iterator[Visitor]:
    width, _, scheme = request.param.partition(" ")
    context = browser.new_context(viewport=WIDE if width == "wide" else NARROW, color_scheme=scheme)
    visitor = Visitor(context.new_page(), url, tmp_path)
    yield visitor
    visitor.shoot("last")
    context.close()
    visitor.finish()


def test_the_first_thing_is_a_run_with_something_to_show_and_the_counts_add_up(visitor: Visitor) -> None:
    visitor.go()
    visitor.charts(2)
    assert "run=grpo_titanic" in visitor.place()
    page = visitor.page
    page.locator(".chip.all", has_text="18").wait_for()
    counts = [int(text) for text in page.locator(".chip b").all_inner_texts()]
    assert counts[0] == 18 == sum(counts[1:])


@pytest.mark.parametrize("visitor", ["wide light", "narrow dark"], indirect=True)
def test_curves_of_several_runs_lie_over_each_other(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#run={PPO}&run={DQN}")
    visitor.charts(3)
    card = page.locator('[data-metric="train/return"]')
    assert set(card.locator(".reading-name").all_inner_texts()) == {"ppo_cartpole", "dqn_cartpole"}
    page.get_by_text("95% bootstrap interval").wait_for()
    page.get_by_role("button", name="seconds").click()
    page.get_by_label("Group by").select_option("env")
    card.locator(".reading-name", has_text="CartPole-v1").wait_for()
    assert "x=seconds" in visitor.place()
    assert "group=env" in visitor.place()
    page.get_by_role("button", name="Metrics").click()
    page.get_by_role("checkbox", name="Gradient norm").check()
    page.locator('[data-metric="optim/grad_norm"]').scroll_into_view_if_needed()
    page.locator('[data-metric="optim/grad_norm"] .u-over').wait_for()
    assert visitor.is_within_its_width()
    visitor.shoot("curves")


def test_an_alert_is_a_mark_on_the_axis_with_its_words(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#run={LUNAR}")
    visitor.charts(1)
    mark = page.locator('[data-metric="train/return"] .alert-mark')
    mark.wait_for()
    assert mark.count() == 1
    told = page.locator('[data-metric="train/return"] .alert-told')
    assert not told.is_visible()
    mark.hover()
    told.get_by_text("policy/kl is 0.31").wait_for()
    assert visitor.is_within_its_width()
    visitor.shoot("alert")
    visitor.finish()


def test_chosen_runs_stay_chosen_on_every_view_and_after_a_reload(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#run={PPO}")
    visitor.charts(1)
    visitor.tick(RESEARCH)
    for view in ("Run", "Episodes", "Score history", "Trials", "Curves"):
        visitor.tab(view)
        assert page.locator(".pill").count() == 2
        assert f"run={PPO}" in visitor.place()
        assert f"run={RESEARCH}" in visitor.place()
    visitor.tab("Episodes")
    page.locator(".pill-name", has_text="grpo_research").click()
    page.get_by_text("765", exact=True).wait_for()
    page.reload()
    page.get_by_text("765", exact=True).wait_for()
    page.go_back()
    page.locator(".pill").nth(1).wait_for()


@pytest.mark.slow
def test_the_list_is_filtered_and_sorted(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go()
    page.locator(".run").nth(17).wait_for()
    page.get_by_label("Filter runs by text").fill("cartpole")
    page.get_by_label("algorithm", exact=True).select_option("ppo")
    assert set(page.locator(".run-name").all_inner_texts()) == {"ppo_cartpole", "ppo_cartpole_search"}
    page.get_by_label("algorithm", exact=True).select_option("")
    page.get_by_label("Filter runs by text").fill("")
    page.locator(".chip.failed").click()
    assert page.locator(".run").count() == 1
    page.locator(".chip.all").click()
    page.get_by_label("tag", exact=True).select_option("baseline")
    assert page.locator(".run").count() == 2
    page.get_by_label("tag", exact=True).select_option("")
    page.get_by_label("Sort").select_option("score")
    assert page.locator(".run .score").first.inner_text() == max(
        page.locator(".run .score:not(.none)").all_inner_texts(),
        key=lambda text: float(text.lstrip("~").replace(",", "")),
    )


@pytest.mark.slow
def test_keys_alone_choose_a_run(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#run={PPO}")
    visitor.charts(1)
    page.keyboard.press("/")
    page.keyboard.type("gsm8k")
    page.locator(".run").nth(1).wait_for(state="detached")
    page.locator(".runs input").first.focus()
    page.keyboard.press("Space")
    page.locator(".pill", has_text="grpo_gsm8k").wait_for()


@pytest.mark.parametrize("visitor", ["wide light", "narrow light"], indirect=True)
def test_a_language_run_shows_what_it_writes(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#run={LANGUAGE}")
    for metric in ("policy/reference_kl", "policy/entropy", "train/length", "parts/correct"):
        page.locator(f'[data-metric="{metric}"]').scroll_into_view_if_needed()
        page.locator(f'[data-metric="{metric}"] .u-over').wait_for()
    page.get_by_role("button", name="tokens").wait_for()
    page.locator(".completion").first.wait_for()
    visitor.tab("Completions")
    page.locator(".completion").nth(2).get_by_text("Ada sells").wait_for()
    page.locator(".completion").first.get_by_role("link", name="open").click()
    visitor.sees("gsm8k · ")
    assert visitor.is_within_its_width()


@pytest.mark.slow
def test_a_search_shows_its_trials(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#view=trials&run={TRIALS}")
    page.locator(".parallel .trial").nth(23).wait_for()
    page.get_by_text("Share of the score that each setting explains").wait_for(timeout=90_000)  # a forest
    assert page.get_by_role("region", name="Trials").locator("tbody tr").count() == 24
    visitor.shoot("trials")
    page.get_by_role("link", name="Curves of all trials").click()
    page.get_by_text("and 16 more").first.wait_for()


def test_from_episodes_to_a_timeline_a_comparison_and_a_tree(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#view=episodes&run={SEARCH}")
    page.get_by_label("Tick n12", exact=True).check()
    visitor.shoot("episodes")
    page.get_by_role("button", name="Open timeline").click()
    visitor.sees("blotto · n12")
    page.get_by_text("Turn 6").wait_for()
    visitor.charts(2)
    visitor.shoot("timeline")
    page.get_by_label("Compare with").select_option("n1")
    page.get_by_text("They diverge at turn").wait_for()
    assert "other=n1" in visitor.place()
    assert page.get_by_text("You are a careful researcher").count() == 1
    visitor.shoot("comparison")
    visitor.tab("Search tree")
    visitor.sees("blotto · n12")
    page.get_by_role("button", name=re.compile("^n2 score")).click()
    visitor.sees("blotto · n2")
    visitor.shoot("tree")


@pytest.mark.slow
def test_two_ticked_episodes_are_compared_and_filters_narrow(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(f"#view=episodes&run={RESEARCH}")
    page.get_by_label("Task").select_option("blotto")
    page.get_by_label("Faults").check()
    page.get_by_label("Score from").fill("0.9")
    page.locator(".tile dd").first.filter(has_not_text="765").wait_for()
    page.get_by_label("Text in any turn").fill("no such words anywhere")
    page.get_by_text("No episodes match.").wait_for()
    visitor.go(f"#view=episodes&run={SEARCH}")
    page.get_by_label("Tick n14", exact=True).check()
    page.get_by_label("Tick n13", exact=True).check()
    page.get_by_role("button", name="Compare two").click()
    page.get_by_text("They diverge at turn").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("visitor", ["wide dark", "narrow light"], indirect=True)
def test_an_old_link_opens_its_view(visitor: Visitor) -> None:
    visitor.go(f"?run={SEARCH}&episode=n9")
    visitor.sees("blotto · n9")
    visitor.page.get_by_text("fault: the command failed (exit 1)").wait_for()
    visitor.page.get_by_text("continues n6").wait_for()
    assert visitor.is_within_its_width()
    visitor.go(f"?view=history&run={RESEARCH}")
    visitor.page.get_by_text("95% intervals over seeds").wait_for()
    visitor.charts(3)
    visitor.shoot("history")


@pytest.mark.slow
@pytest.mark.parametrize("name", [LIVE, EMPTY, "evil/20200101-000000"])
def test_every_view_of_every_kind_of_run_at_any_width(visitor: Visitor, name: str) -> None:
    for view in VIEWS:
        visitor.go(f"#view={view}&run={name}")
        visitor.page.locator("#main > *").first.wait_for()
        visitor.page.get_by_text("Reading …").wait_for(state="hidden")
        assert visitor.page.title().endswith("Operant"), "a word of a run has become a script"
    assert visitor.page.locator("#main img").count() == 0


def test_hostile_words_are_shown_as_words(visitor: Visitor) -> None:
    visitor.go("#view=timeline&run=evil/20200101-000000")
    visitor.page.locator(".words pre", has_text="onerror").first.wait_for()
    visitor.page.get_by_label("tag", exact=True).select_option(EVIL)
    assert visitor.page.locator(".run").count() == 1
    assert visitor.page.title() == "Episode · Operant"


def test_what_is_not_there_is_told(visitor: Visitor) -> None:
    visitor.go("#run=gone")
    visitor.page.get_by_text('There is no run "gone"').wait_for()
    visitor.go(f"#run={SEARCH}&episode=n99")
    visitor.page.get_by_text("did you mean n9?").wait_for()


@pytest.mark.slow
def test_a_run_that_is_being_written_is_followed(visitor: Visitor, runs: Path) -> None:
    """New rows come by themselves, and only they travel."""
    page, session = visitor.page, runs / LIVE / "trial_000/session_0"
    visitor.go(f"#run={LIVE}")
    visitor.charts(1)
    last = json.loads((session / "metrics.jsonl").read_text().splitlines()[-1])
    with page.expect_response(lambda reply: "/api/series" in reply.url) as reply:
        log = JsonLines(session / "metrics.jsonl")
        log.append({**last, "frames": last["frames"] + 64, "train/return": 0.123456})
        log.flush()
        log.close()
    (line,) = reply.value.json()["lines"]
    assert len(line["x"]) <= 2
    page.locator('[data-metric="train/return"] .reading b', has_text="0.1235").wait_for()
    before = len((session / "episodes.jsonl").read_text().splitlines())
    visitor.tab("Episodes")
    page.locator(".tile dd").first.get_by_text(str(before), exact=True).wait_for()
    write_rows(session / "episodes.jsonl", [each.as_dict() for each in list(training(9, [TITANIC]))[-3:]])
    page.locator(".tile dd").first.get_by_text(str(before + 3), exact=True).wait_for()


def test_nothing_at_all_says_how_to_begin(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path) as url:
        visitor = Visitor(browser.new_page(), url, tmp_path)
        visitor.go()
        visitor.page.get_by_text("operant train ppo_cartpole").wait_for()
        write_experiment(tmp_path, "first", "20260101-000000", [list(training(1, [TITANIC]))])
        visitor.charts(1)
        visitor.finish()
