"""The guard over contacts fails a session of tests, names who was tried, and lets pass what a test says it needs."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard import Guard

pytest_plugins = ["pytester"]

BEGIN = """
import os, socket, subprocess, sys
import pytest

REACH = "import socket; socket.socket().connect(('192.0.2.1', 9))"
LOOK_UP = "import socket; socket.getaddrinfo('judge.invalid', 443)"

def python(code, *flags, **options):
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, **options)
"""

UDP = "socket.socket(type=socket.SOCK_DGRAM)"
CONTACTS = {
    "socket.socket().connect(('192.0.2.1', 9))": "192.0.2.1 (socket.connect)",
    "socket.socket().connect_ex(('192.0.2.1', 9))": "192.0.2.1 (socket.connect)",
    "socket.create_connection(('192.0.2.1', 9), timeout=1)": "192.0.2.1 (socket.getaddrinfo)",
    f"{UDP}.sendto(b'', ('192.0.2.1', 53))": "192.0.2.1 (socket.sendto)",
    f"{UDP}.sendmsg([b''], [], 0, ('192.0.2.1', 53))": "192.0.2.1 (socket.sendmsg)",
    "socket.getaddrinfo(b'judge.invalid', 443)": "judge.invalid (socket.getaddrinfo)",
    "socket.gethostbyname('judge.invalid')": "judge.invalid (socket.gethostbyname)",
    "socket.gethostbyname_ex('judge.invalid')": "judge.invalid (socket.gethostbyname)",
    "socket.gethostbyaddr('192.0.2.1')": "192.0.2.1 (socket.gethostbyaddr)",
    "socket.getnameinfo(('192.0.2.1', 53), 0)": "192.0.2.1 (socket.getnameinfo)",
    "import asyncio; asyncio.run(asyncio.open_connection('judge.invalid', 443))": "judge.invalid (socket.getaddrinfo)",
    "import urllib.request; urllib.request.urlopen('http://judge.invalid')": "judge.invalid (socket.getaddrinfo)",
}
CHILDREN = (
    "python(REACH)",
    "python(REACH, '-P')",
    "python(REACH, env={})",
    "python(REACH, env={'PYTHONPATH': '.'})",
    "monkeypatch.delenv('PYTHONPATH'); python(REACH)",
    "python('import subprocess, sys; ' + f'subprocess.run([sys.executable, \"-c\", {REACH!r}], env={{}})', env={})",
    "subprocess.run(['/bin/sh', '-c', '\"$0\" -c \"$1\"', sys.executable, REACH], env={})",
    "os.waitpid(os.posix_spawn(sys.executable, ['python', '-c', REACH], os.environ), 0)",
    "os.spawnv(os.P_WAIT, sys.executable, ['python', '-c', REACH])",
    "import multiprocessing as m; m.get_context('spawn').Pool(1).apply_async(exec, (REACH,)).wait()",
    "import multiprocessing as m; m.get_context('fork').Pool(1).apply_async(exec, (REACH,)).wait()",
)

Pytester = pytest.Pytester
# What the sessions inside try is refused and told by their own guard, if that of this session lets it pass.
pytestmark = pytest.mark.reaches(
    "192.0.2.1", "judge.invalid", "python -I", "python -E", "python -S", "python -sE", "python"
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sessions inside, which stand in folders of their own, import the guard."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)


def session(pytester: Pytester, body: str) -> pytest.RunResult:
    """Run tests under a guard of their own, in a process of their own."""
    pytester.makepyfile(BEGIN + body)
    plugins = [word for name in ("tests.guard", "no:cacheprovider", "no:hypothesispytest") for word in ("-p", name)]
    return pytester.runpytest_subprocess("-q", "-W", "ignore", *plugins)


def test_a_contact_fails_the_test_that_made_it_though_it_caught_the_error(pytester: Pytester) -> None:
    tests = [
        f"def test_{n}():\n    try:\n        {body}\n    except OSError:\n        pass\n"
        for n, body in enumerate(CONTACTS)
    ]
    ended = session(pytester, "".join(tests) + "def test_without(): pass\n")
    ended.assert_outcomes(passed=len(CONTACTS) + 1, errors=len(CONTACTS))
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    for n, told in enumerate(CONTACTS.values()):
        ended.stdout.fnmatch_lines([f"*ERROR at teardown of test_{n} *", told, "  by *", "    *.py:* in *"])
    ended.stdout.fnmatch_lines(["    *.py:* in test_0"])


def test_a_contact_of_a_child_fails_the_test_that_started_it(pytester: Pytester) -> None:
    tests = [f"def test_{n}(monkeypatch):\n    {start}\n" for n, start in enumerate(CHILDREN)]
    ended = session(pytester, "".join(tests) + "def test_look_up(): python(LOOK_UP)\n")
    ended.assert_outcomes(passed=len(CHILDREN) + 1, errors=len(CHILDREN) + 1)
    for n in range(len(CHILDREN)):
        ended.stdout.fnmatch_lines([f"*ERROR at teardown of test_{n} *", "192.0.2.1 (socket.connect)", "  by *"])
    ended.stdout.fnmatch_lines(["judge.invalid (socket.getaddrinfo)", "  by *python* -c *, started in *test_look_up*"])


def test_a_child_that_would_not_load_the_guard_is_not_started(pytester: Pytester) -> None:
    body = """
@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-sE"])
def test_flag(flag):
    python("", "-X", "dev", flag)
def test_environment():
    os.posix_spawn(sys.executable, ["python"], {})
"""
    ended = session(pytester, body)
    ended.assert_outcomes(failed=5, errors=5)
    for flag in ("-I", "-E", "-S", "-sE"):
        ended.stdout.fnmatch_lines([f"python {flag} (starts without the guard)"])
    ended.stdout.fnmatch_lines(["python (starts without the guard)"])


def test_sessions_of_tests_that_a_test_starts_are_watched_too(pytester: Pytester) -> None:
    body = """
pytest_plugins = ["pytester"]
@pytest.mark.parametrize("run", ["runpytest_inprocess", "runpytest_subprocess"])
def test_session(pytester, run):
    pytester.makepyfile(f"def test_it():\\n    {REACH}")
    getattr(pytester, run)().assert_outcomes(failed=1)
"""
    session(pytester, body).assert_outcomes(passed=2, errors=2)


def test_loopback_and_what_a_test_names_are_let_pass_and_that_no_longer_than_the_test(pytester: Pytester) -> None:
    body = """
def test_here():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        assert not python(f"import socket; socket.create_connection({server.getsockname()})").returncode
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind("")  # under a name that the system chooses
        one.listen()
        other.connect(one.getsockname())
    for host in ("localhost", None, "::1"):
        socket.getaddrinfo(host, 80)
@pytest.mark.reaches("192.0.2.1")
def test_named():
    socket.getaddrinfo("192.0.2.1", 9)
    assert not python("import socket; socket.getaddrinfo('192.0.2.1', 9)").returncode
def test_not_named():
    python(REACH)
"""
    ended = session(pytester, body)
    ended.assert_outcomes(passed=3, errors=1)
    ended.stdout.fnmatch_lines(["ERROR *::test_not_named*"])


def test_a_contact_while_tests_are_collected_fails_the_session(pytester: Pytester) -> None:
    ended = session(pytester, "python(LOOK_UP)\n")
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    ended.stdout.fnmatch_lines(["judge.invalid (socket.getaddrinfo)"])


def test_pip_alone_is_let_pass_where_packages_are_fetched(pytester: Pytester) -> None:
    body = """
PIP = ("--no-deps", "--retries", "0", "--timeout", "0.01", "--index-url", "http://192.0.2.1/", "x")
pytestmark = pytest.mark.fetches_packages
def test_pip():
    subprocess.run([sys.executable, "-m", "pip", "download", *PIP])
def test_other():
    python(REACH)
"""
    ended = session(pytester, body)
    ended.assert_outcomes(passed=2, errors=1)
    ended.stdout.fnmatch_lines(["ERROR *::test_other*"])


def test_this_session_is_watched(guard: Guard) -> None:
    with pytest.raises(ConnectionRefusedError, match=r"192\.0\.2\.3"):
        socket.create_connection(("192.0.2.3", 9), timeout=1)
    code = "import socket\nsocket.getaddrinfo('example.invalid', 443)"
    subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, check=False)
    assert [one.host for one in guard.take()] == ["192.0.2.3", "example.invalid"]
