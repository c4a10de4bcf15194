"""Real process trees: whatever ends the parent, nothing that it started stays."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from airjudge.server import supervisor

LIMIT_S = 10.0

PROGRAM = textwrap.dedent(
    """
    import os, signal, subprocess, sys, time

    def sleeper(**options):
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **options).pid

    pids = [os.getpid(), sleeper(), sleeper(start_new_session=True)]
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    pids.append(subprocess.Popen([sys.executable, "-c", stubborn], process_group=0).pid)
    # A daemon, as one makes it: its parent has left a session of its own and is gone.
    daemon = "import subprocess, sys; print(subprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3).pid)"
    made = subprocess.run([sys.executable, "-c", daemon], capture_output=True, text=True, start_new_session=True)
    pids.append(int(made.stdout))
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(sys.argv[1] + ".new", "w") as out:
        out.write(" ".join(map(str, pids)))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    if "exit" in sys.argv:
        sys.exit(7)
    time.sleep(600)
    """
)

PARENT = textwrap.dedent(
    """
    import subprocess, sys, time
    from airjudge.server import supervisor

    process = subprocess.Popen(supervisor.command(sys.argv[1:]), start_new_session=True)
    print(process.pid, flush=True)
    sys.stdin.read()
    """
)


class Tree:
    """A parent, the supervisor that it started, and the program's processes."""

    def __init__(self, folder: Path, *words: str) -> None:
        note = folder / "pids"
        program = [sys.executable, "-c", PROGRAM, str(note), *words]
        self.parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.parent.stdout is not None
        self.supervisor = int(self.parent.stdout.readline())
        wait_for(note.exists)
        self.program, *self.others = map(int, note.read_text().split())

    def is_gone(self) -> bool:
        return not any(alive(pid) for pid in (self.supervisor, self.program, *self.others))

    def end(self) -> None:
        for pid in (self.parent.pid, self.supervisor, self.program, *self.others):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.parent.wait(5)
        for pipe in (self.parent.stdin, self.parent.stdout):
            assert pipe is not None
            pipe.close()


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(true: Callable[[], bool], limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "still waiting"
        time.sleep(0.05)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    made: list[Tree] = []

    def make(*words: str) -> Tree:
        made.append(Tree(tmp_path, *words))
        assert not made[-1].is_gone()
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_the_parent_ends_everything(tree: Callable[..., Tree], number: signal.Signals) -> None:
    one = tree()
    one.parent.send_signal(number)
    wait_for(one.is_gone, LIMIT_S)


def test_the_parents_own_end_ends_everything(tree: Callable[..., Tree]) -> None:
    one = tree()
    assert one.parent.stdin is not None
    one.parent.stdin.close()
    assert one.parent.wait(5) == 0
    wait_for(one.is_gone, LIMIT_S)


def test_asking_the_supervisor_ends_everything_though_the_program_ignores_it(tree: Callable[..., Tree]) -> None:
    one = tree("stubborn")
    os.kill(one.supervisor, signal.SIGTERM)
    wait_for(one.is_gone, LIMIT_S)


def test_a_program_that_ends_by_itself_leaves_no_process_and_gives_its_exit_code(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    done = subprocess.run(
        supervisor.command([sys.executable, "-c", PROGRAM, str(note), "exit"]), check=False, timeout=30
    )
    assert done.returncode == 7
    assert not any(alive(int(pid)) for pid in note.read_text().split())


def test_a_signal_that_kills_the_program_becomes_an_exit_code(tree: Callable[..., Tree], tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    # 137 = 128 + 9, as shells tell it.
    assert subprocess.run(supervisor.command(program), check=False, timeout=30).returncode == 137


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_killing_the_supervisor_itself_ends_the_program(tree: Callable[..., Tree]) -> None:
    one = tree()
    os.kill(one.supervisor, signal.SIGKILL)
    wait_for(lambda: not alive(one.program), LIMIT_S)
