"""The addresses of the app: the page, and the JSON that it asks for. Nothing here changes a run.

Names of runs and episodes are looked up among what was found below the folder; no path is ever made of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from operant.app.index import Index, name_of_folder
from operant.errors import OperantError, UsageError

STATIC = Path(__file__).with_name("static")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
Answer = Mapping[str, Any]


class Api:
    """The answers, and what is kept between them (final). What computes is loaded when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.index = Index(root)

    @cached_property
    def charts(self) -> Any:
        """Metric files and lines in memory."""
        from operant.app.columns import MetricFiles
        from operant.app.series import Charts

        return Charts(MetricFiles())

    @cached_property
    def lines(self) -> Any:
        """The lines that were asked for a moment ago."""
        from operant.app.lines import RecentLines

        return RecentLines(self.index)

    @cached_property
    def catalogues(self) -> Any:
        """Indexes of episodes in memory."""
        from operant.app.trajectories import Catalogues

        return Catalogues()

    def runs(self, query: Mapping[str, str]) -> Answer:
        """GET /api/runs?since=VERSION: the rows that changed since, newest run first; ask at once while `unread`."""
        since = int(query.get("since") or 0)
        return {"root": name_of_folder(self.root), **self.index.changes(since)}

    def run(self, query: Mapping[str, str]) -> Answer:
        """GET /api/run?run=NAME: sessions, settings, alerts and provenance of a run."""
        from operant.app.details import run_details

        return run_details(self.index, _need(query, "run"))

    def chosen(self, body: Mapping[str, Any]) -> Answer:
        """POST /api/chosen {runs}: what charts of these runs can show: metrics, axes, settings that differ, alerts."""
        from operant.app import details, lines

        runs = _names(body)
        found = self.lines.of(runs, lines.RUN)
        files = [file for line in found for file in line.files[:1]]
        differing = lines.differing_settings(self.index, runs)
        short = lines.setting_names(list(differing))
        has_tokens = any(line.tokens for line in found)
        return {
            "metrics": lines.metric_names(files),
            "axes": ["frames", "seconds", *(["tokens"] if has_tokens else []), "updates", "episodes"],
            "settings": [{"path": path, "name": short[path], "values": differing[path]} for path in differing],
            "groups": list(lines.GROUPS),
            "alerts": {run: told for run in runs if (told := details.alerts(self.index.path_of(run)))},
        }

    def series(self, body: Mapping[str, Any]) -> Answer:
        """POST /api/series {runs, metric, x, group, have, form, seeds}: the points that the page lacks of each line.

        `have` has the last position that the page knows of each line, `form` what an earlier answer said of them.
        """
        from operant.app import lines

        x = body.get("x") or "frames"
        if x not in lines.AXES:
            raise UsageError(f"there is no axis {x!r}", remedy=", ".join(lines.AXES))
        found = self.lines.of(_names(body), str(body.get("group") or lines.RUN))
        have, form = body.get("have") or {}, body.get("form")
        return self.charts.draw(found, str(body.get("metric")), x, have, form, bool(body.get("seeds")))

    def sparks(self, body: Mapping[str, Any]) -> Answer:
        """POST /api/sparks {runs}: a small curve for each run of a list."""
        from operant.app.details import spark

        return {"sparks": {run: spark(self.index, run) for run in _names(body)}}

    def search(self, query: Mapping[str, str]) -> Answer:
        """GET /api/search?run=NAME: the trials of a search, and the axes of its parallel coordinates."""
        from operant.app.trials import search_details

        return search_details(self.index.path_of(_need(query, "run")))

    def importance(self, query: Mapping[str, str]) -> Answer:
        """GET /api/importance?run=NAME: how much each searched setting mattered; may take seconds."""
        from operant.app.trials import importance_details

        return importance_details(self.index.path_of(_need(query, "run")))

    def episodes(self, query: Mapping[str, str]) -> Answer:
        """GET /api/episodes?run=NAME&task=&item=&split=&ended=&score=A..B&version=A..B&text=&faulty=&failed=&order=."""
        from operant.app.trajectories import episode_list

        return episode_list(self._catalogue(query), query)

    def episode(self, query: Mapping[str, str]) -> Answer:
        """GET /api/episode?run=NAME&episode=NAME: one episode in full; the newest without a name."""
        from operant.app.trajectories import timeline

        return timeline(self._catalogue(query), query.get("episode"))

    def compare(self, query: Mapping[str, str]) -> Answer:
        """GET /api/compare?run=NAME&episode=NAME&other=NAME: two episodes side by side; without both, the names."""
        from operant.app.trajectories import comparison, names

        catalogue = self._catalogue(query)
        both = (query.get("episode"), query.get("other"))
        found = comparison(catalogue, both[0], both[1]) if both[0] and both[1] else {}
        return {**found, "names": names(catalogue)}

    def tree(self, query: Mapping[str, str]) -> Answer:
        """GET /api/tree?run=NAME&episode=NAME: a search tree with the place of each node."""
        from operant.app.trajectories import tree_details

        return tree_details(self._catalogue(query), query.get("episode"))

    def history(self, query: Mapping[str, str]) -> Answer:
        """GET /api/history?run=NAME&axis=frames: each task's score over training, with intervals."""
        from operant.app.trajectories import history

        return history(self._catalogue(query), query.get("axis") or "frames")

    def completions(self, query: Mapping[str, str]) -> Answer:
        """GET /api/completions?run=NAME: what the policy wrote last, with rewards and their parts."""
        from operant.app.completions import completions

        return completions(self.index.path_of(_need(query, "run")))

    def _catalogue(self, query: Mapping[str, str]) -> Any:
        return self.catalogues.open(self.index.path_of(_need(query, "run")))


GET = ("runs", "run", "search", "importance", "episodes", "episode", "compare", "tree", "history", "completions")
POST = ("chosen", "series", "sparks")


def application(root: Path) -> Any:
    """The ASGI application of the runs below a folder."""
    api = Api(root)
    asked = [Route(f"/api/{name}", _answer(getattr(api, name)), methods=["GET"]) for name in GET]
    posted = [Route(f"/api/{name}", _answer(getattr(api, name)), methods=["POST"]) for name in POST]
    page = Route("/", lambda _: FileResponse(STATIC / "index.html"))
    health = Route("/health", lambda _: Response("ok"))
    files = Mount("/static", StaticFiles(directory=STATIC))
    return _with_headers(Starlette(routes=[page, health, *asked, *posted, files]))


def _answer(handler: Callable[[Any], Answer]) -> Callable[[Request], Any]:
    """An endpoint: what a user can mend is told with status 400, in the words of the command line."""

    async def endpoint(request: Request) -> Response:
        try:
            given = json.loads(await request.body()) if request.method == "POST" else dict(request.query_params)
            if not isinstance(given, dict):
                raise ValueError("the body must be a JSON object")
            return _json(await run_in_threadpool(handler, given))
        except OperantError as problem:
            return _json({"error": problem.cause, "remedy": problem.remedy}, 400)
        except (TypeError, ValueError) as problem:
            return _json({"error": f"this cannot be answered: {problem}", "remedy": None}, 400)

    return endpoint


def _json(content: Answer, status: int = 200) -> Response:
    """JSON in ASCII; a number that JSON cannot hold is null."""
    try:
        text = json.dumps(content, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(content), allow_nan=False)
    return Response(text, status, media_type="application/json")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def _with_headers(app: Any) -> Any:
    """The app, whose pages may load nothing from elsewhere and run no script of an episode."""
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        await app(scope, receive, send_with_headers)

    return wrapped


def _need(query: Mapping[str, str], key: str) -> str:
    if not query.get(key):
        raise UsageError(f"the address lacks {key}")
    return query[key]


def _names(body: Mapping[str, Any]) -> list[str]:
    runs = body.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, str) for run in runs):
        raise UsageError("the body lacks runs, a list of names")
    return runs
