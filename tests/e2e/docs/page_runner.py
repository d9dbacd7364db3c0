"""Runs what a page of the documentation says, line by line, in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.e2e.docs.tables import BEFORE, NOT_HERE, WORDS
from tests.pages import ROOT, SHELL, Place, blocks, shell_lines

HERE = Path(__file__).parent
SECONDS = 420
ENDLESS = re.compile(r"^operant (serve|app)\b")
ASSIGNMENT = re.compile(r"^(export )?\w+=(\"[^\"]*\"|\S*)( \w+=\S*)*(\s+#.*)?$", re.DOTALL)
FILE_NAME = re.compile(r"# ([\w./]+\.(?:py|yaml|toml))\n")
SPEC_NAME = re.compile(r"name: (\w+)\nenv:")


class PageError(AssertionError):
    """A line of a page that did not do what it says; shows page, line and output."""

    def __init__(self, place: Place, why: str, output: str) -> None:
        super().__init__(f"{place}: {why}\n$ {place.text}\n{output[-6000:]}")


class PageRunner:
    """One page in one folder: its variables, its Python names and the servers that it has started."""

    def __init__(self, page: Path, folder: Path, environment: dict[str, str]) -> None:
        self.page, self.folder, self.environment = page, folder, environment
        self.log = folder.parent / "page.log"
        self._assigned: list[str] = []
        self._python: subprocess.Popen[str] | None = None
        self._servers: list[subprocess.Popen[bytes]] = []

    def run(self) -> list[tuple[str, str]]:
        """Run all blocks in order; what was left out: (place, why). Raises PageError at the first line that fails."""
        left_out = []
        try:
            for line in BEFORE.get(str(self.page.relative_to(ROOT)), []):
                self._shell(Place(self.page, 0, line))
            for block in blocks(self.page):
                for place in shell_lines(block) if block.kind in SHELL else [block]:
                    reason = next((why for mark, why in NOT_HERE.items() if re.search(mark, place.text)), None)
                    if reason and block.kind in (*SHELL, "python"):
                        left_out.append((str(place), reason))
                    else:
                        self._one(place, block.kind)
        finally:
            self._end()
        return left_out

    def _one(self, place: Place, kind: str) -> None:
        file = FILE_NAME.match(place.text)
        if kind in SHELL:
            self._shell(place)
        elif kind in ("python", "yaml", "toml") and file:
            (self.folder / file[1]).write_text(place.text + "\n")
        elif kind == "yaml" and (name := SPEC_NAME.match(place.text)):
            (self.folder / f"{name[1]}.yaml").write_text(place.text + "\n")
        elif kind == "python":
            self._exec(place)

    def _shell(self, place: Place) -> None:
        line = self._filled(place.text)
        if ASSIGNMENT.match(line):
            self._assigned.append(line)
            return
        if line.startswith("operant serve"):
            self._stop_servers()  # one at a time: all of them have the same port here
        began = time.monotonic()
        output = self.folder.parent / "line.log"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", "\n".join([*self._assigned, line])],
                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        if ENDLESS.match(line):
            self._servers.append(process)
            self._answers(place, process, output)
        else:
            try:
                code = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise PageError(place, f"still running after {SECONDS} s", output.read_text(errors="replace")) from None
            if code != 0:
                raise PageError(place, f"exit code {code}", output.read_text(errors="replace"))
        self._tell(place, time.monotonic() - began, output.read_text(errors="replace"))

    def _answers(self, place: Place, process: subprocess.Popen[bytes], output: Path) -> None:
        """Wait until the server that was started says its address and answers there."""
        for _ in range(4 * SECONDS):
            text = output.read_text(errors="replace")
            address = re.search(r"http://(127\.0\.0\.1|localhost):\d+", text)
            if process.poll() is not None:
                raise PageError(place, f"it ended with {process.returncode}", text)
            if address and _reached(address[0]):
                return
            time.sleep(0.25)
        raise PageError(place, "it does not answer", output.read_text(errors="replace"))

    def _exec(self, place: Place) -> None:
        began = time.monotonic()
        output, block = self.folder.parent / "python.log", self.folder.parent / "block.py"
        if self._python is None:
            command = [sys.executable, str(HERE / "python_blocks.py"), str(output)]
            pipe = subprocess.PIPE
            self._python = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdin=pipe, stdout=pipe, text=True
            )
        assert self._python.stdin
        assert self._python.stdout
        block.write_text(place.text)
        self._python.stdin.write(f"{block}\n")
        self._python.stdin.flush()
        answer = self._python.stdout.readline().strip()
        if answer != "done":
            raise PageError(place, answer or "Python ended", output.read_text(errors="replace"))
        self._tell(place, time.monotonic() - began, output.read_text(errors="replace"))

    def _filled(self, line: str) -> str:
        for word, meant in WORDS.items():
            line = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", meant, line)
        return re.sub(r"(\w+)/STAMP", lambda found: f"{found[1]}/{self._first_stamp(found[1])}", line)

    def _first_stamp(self, spec: str) -> str:
        return min(path.name for path in (self.folder / "runs" / spec).glob("[0-9]*"))

    def _tell(self, place: Place, seconds: float, output: str) -> None:
        with self.log.open("a") as file:
            file.write(f"== {place} {seconds:.1f} s\n$ {place.text}\n{output}\n")

    def _end(self) -> None:
        self._stop_servers()
        if self._python is not None:
            self._python.communicate()

    def _stop_servers(self) -> None:
        for server in self._servers:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGTERM)
                try:
                    server.wait(15)
                except subprocess.TimeoutExpired:
                    os.killpg(server.pid, signal.SIGKILL)
                    server.wait()
        self._servers.clear()


def _reached(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True  # it answers, if not at this path
    except OSError:
        return False
    return True
