"""Values that move with the frames, `{name, start_val, end_val, start_step, end_step}`, and exploration by them."""

from __future__ import annotations

from operant.spec.dialects.conversion import Section, is_number

NATIVE = "agent.algorithm"
NO_COUNTERPART = "has no counterpart: a schedule here is a number or a straight line"


def schedule(section: Section, key: str, native: str, default: float | None = None, least: float = 0.0) -> None:
    """Take over the schedule under `key`; `default` is what its absence means in SLM-Lab, `least` its end for 0."""
    if section.get(key) is None:
        if default is not None:
            section.conversion.set(native, default, section.at(key))
        return
    given = section.below(key)
    kind, start, end = given.need("name"), given.need("start_val"), given.get("end_val")
    begin, finish = given.whole("start_step", 0), given.whole("end_step", 0)
    given.close()
    if kind == "no_decay":
        section.conversion.set(native, start, given.at("start_val"))
        if end not in (None, start):
            section.conversion.remark(given.at("end_val"), "left out: no_decay never leaves start_val")
    elif kind == "linear_decay":
        _line(given, native, begin, finish, least)
    elif kind is not None:
        section.conversion.lose(given.at("name"), NO_COUNTERPART)


def _line(given: Section, native: str, begin: int, finish: int, least: float) -> None:
    conversion, start, end = given.conversion, given.get("start_val"), given.need("end_val")
    if start == end or finish <= begin:
        conversion.set(native, end, given.at("end_val"))
        return
    conversion.set(f"{native}.start", start, given.at("start_val"))
    conversion.set(f"{native}.end", least if end == 0 else end, given.at("end_val"))
    if begin:
        conversion.set(f"{native}.begin", begin, given.at("start_step"))
    conversion.set(f"{native}.frames", finish - begin, given.at("end_step"))
    if end == 0:
        conversion.remark(
            given.at("end_val"),
            f"the value does end at {least:g} here; SLM-Lab takes a 0 for start_val and stays there",
        )
    elif is_number(start) and is_number(end) and end > start:
        conversion.remark(
            given.at("end_val"), "the value does rise here; SLM-Lab's linear_decay begins at the higher end"
        )


NO_SUCH_POLICY = "has no counterpart in this version; there are epsilon_greedy and boltzmann"


def exploration(settings: Section) -> None:
    """Take over the policy and its variable: epsilon, or the temperature of a Boltzmann policy."""
    settings.get("action_pdtype")  # the policy decides how actions are drawn, not the distribution
    policy = settings.need("action_policy")
    if policy == "epsilon_greedy":
        settings.need("explore_var_spec")
        schedule(settings, "explore_var_spec", f"{NATIVE}.epsilon")
    elif policy == "boltzmann":
        settings.need("explore_var_spec")
        settings.conversion.set(f"{NATIVE}.exploration", "boltzmann", settings.at("action_policy"))
        schedule(settings, "explore_var_spec", f"{NATIVE}.temperature")
    else:
        settings.conversion.lose(settings.at("action_policy"), NO_SUCH_POLICY)
        settings.drop({"explore_var_spec": "left out with its action policy: epsilon is the native default"})
