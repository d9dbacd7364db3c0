"""SageMaker's control plane for tests: it holds every request against botocore's own model, as AWS would."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TARGET = "SageMaker."


class FakeSageMaker(ThreadingHTTPServer):
    """Jobs by name; a test sets their `TrainingJobStatus`."""

    def __init__(self) -> None:
        import botocore.session

        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = botocore.session.get_session().get_service_model("sagemaker")
        self.jobs: dict[str, dict[str, Any]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, operation: str, arguments: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        fault = _fault(arguments, self.model.operation_model(operation).input_shape)
        if fault:
            return 400, {"__type": "ValidationException", "message": fault}
        name = arguments["TrainingJobName"]
        if operation == "CreateTrainingJob":
            if name in self.jobs:
                return 400, {"__type": "ResourceInUse", "message": f"{name} exists"}
            self.jobs[name] = {**arguments, "TrainingJobStatus": "InProgress", "SecondaryStatus": "Starting"}
            return 200, {"TrainingJobArn": f"arn:aws:sagemaker:us-east-1:123456789012:training-job/{name}"}
        if name not in self.jobs:
            return 400, {"__type": "ValidationException", "message": "Requested resource not found."}
        if operation == "StopTrainingJob":
            self.jobs[name].update(TrainingJobStatus="Stopping", SecondaryStatus="Stopping")
            return 200, {}
        return 200, self.jobs[name]


class _Handler(BaseHTTPRequestHandler):
    server: FakeSageMaker

    def do_POST(self) -> None:
        assert "AWS4-HMAC-SHA256" in self.headers["Authorization"]
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.answer(self.headers["X-Amz-Target"].removeprefix(_TARGET), arguments)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def fake_sagemaker() -> Iterator[FakeSageMaker]:
    with FakeSageMaker() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def _fault(value: Any, shape: Any, place: str = "") -> str:
    """The first thing that botocore's description of a shape forbids."""
    kind, rules = shape.type_name, shape.metadata
    if kind == "structure":
        unknown = set(value) - set(shape.members)
        missing = set(shape.required_members) - set(value)
        if unknown or missing:
            return f"{place} unknown {unknown or 'none'}, missing {missing or 'none'}"
        return next(filter(None, (_fault(part, shape.members[name], name) for name, part in value.items())), "")
    if kind == "map":
        parts = [(key, shape.key) for key in value] + [(part, shape.value) for part in value.values()]
        return next(filter(None, (_fault(part, rule, place) for part, rule in parts)), "")
    size = len(value) if kind in ("string", "list") else value
    if kind in ("string", "list", "integer") and not rules.get("min", 0) <= size <= rules.get("max", 2**62):
        return f"{place} has the size {size}"
    if kind == "list":
        return next(filter(None, (_fault(part, shape.member, place) for part in value)), "")
    if kind == "string" and "pattern" in rules and not re.fullmatch(rules["pattern"], value):
        return f"{place} does not match {rules['pattern']}"
    if kind == "string" and shape.enum and value not in shape.enum:
        return f"{place} is none of {len(shape.enum)} known values"
    return ""
