"""Processes that help a session end with it, and say why when they end before."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from operant.run.followers import Followers, search_path
from tests.processes import lives, wait_until

FOLLOW = "from operant.run.followers import follow; follow(lambda: {work}, KeyError)"


def test_a_follower_that_fails_says_why() -> None:
    with Followers(FOLLOW.format(work="1 / 0"), [[]]) as followers:
        death = followers.death()
    assert death is not None
    assert death.rank == 1
    assert death.cause == "ZeroDivisionError: division by zero"


def test_the_one_that_died_is_named_by_its_signal() -> None:
    code = "import os, sys, time; os.kill(os.getpid(), 9) if sys.argv[1] == 'b' else time.sleep(60)"
    with Followers(code, [["a"], ["b"]]) as followers:
        assert followers.death() == (2, "SIGKILL")


def test_followers_are_gone_after_the_context() -> None:
    with Followers("import time; time.sleep(60)", [[], []]) as followers:
        processes = followers._processes
        assert all(process.poll() is None for process in processes)
    assert all(process.poll() == -9 for process in processes)


def test_a_follower_ends_when_its_leader_is_killed() -> None:
    work = FOLLOW.format(work="time.sleep(60)")
    leader = (
        "import time; from operant.run.followers import Followers\n"
        f"with Followers('import time; {work}', [[]]) as f: print(f._processes[0].pid, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": search_path()}
    with subprocess.Popen([sys.executable, "-c", leader], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        follower = int(process.stdout.readline())
        time.sleep(1)
        process.kill()
    assert wait_until(lambda: not lives(follower))
