"""airjudge in pytest: `assert_context_recall`, a judge for the whole session, a marker, and a summary at the end.

Every session of pytest loads this file, whether it judges or not; so what is heavy waits for the first test that does.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

try:
    import pytest
except ImportError as error:
    msg = "airjudge.integrations.pytest_plugin needs pytest: pip install 'airjudge[pytest]'"
    raise ImportError(msg) from error

from airjudge.errors import AirjudgeError, InputError

if TYPE_CHECKING:
    from airjudge.metrics import RecallResult
    from airjudge.resident import ResidentJudge

LEAST: Final = 0.8
"""The recall that an assertion asks for, where neither it nor the test's marker says another."""
MARKER: Final = "context_recall"
RECALL, FAILURE, SIGNATURE = "context_recall", "context_recall_error", "context_recall_signature"
"""Properties of a test: a recall, or the kind of what kept it from being known, an assertion; who judged."""

_OPTIONS: Final = {
    "judge": "the judge's profile, or a model served here; without one it is found as `airjudge score` finds it",
    "base-url": "where its server runs",
    "model": "the model to ask for there; without one, the only one that it serves",
    "api-key-env": "the environment variable that holds the server's key",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that name a judge, each on the command line and as a setting of the project."""
    group = parser.getgroup("airjudge", "context recall")
    for name, about in _OPTIONS.items():
        group.addoption(f"--airjudge-{name}", metavar="NAME", default=None, help=about)
        parser.addini(_setting(name), about, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and note what the session's assertions come to.

    Raises:
        UsageError: If the options contradict each other.
    """
    if not _option(config, "base-url") and (_option(config, "model") or _option(config, "api-key-env")):
        msg = "--airjudge-model and --airjudge-api-key-env need --airjudge-base-url"
        raise pytest.UsageError(msg)
    about = f"{MARKER}(min={LEAST}): the context recall that assertions in this test ask for unless they say another"
    config.addinivalue_line("markers", about)
    session = _Session(config)
    config.pluginmanager.register(session, "airjudge-session")
    _sessions.append(session)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Forget the session."""
    _sessions[:] = [one for one in _sessions if one.config is not config]


@pytest.fixture(scope="session")
def airjudge_judge() -> "ResidentJudge":
    """The judge that the options name, opened by the first sample; override it to take another."""
    return _sessions[-1].judge()


@pytest.fixture(scope="session", name="assert_context_recall")
def _assert_context_recall(airjudge_judge: "ResidentJudge") -> "ContextRecallAssertion":
    """`assert_context_recall` by the judge that the fixture `airjudge_judge` gives."""
    return ContextRecallAssertion(airjudge_judge)


@pytest.fixture(scope="session", name="aassert_context_recall")
def _aassert_context_recall(airjudge_judge: "ResidentJudge") -> "AsyncContextRecallAssertion":
    """`aassert_context_recall` by the judge that the fixture `airjudge_judge` gives."""
    return AsyncContextRecallAssertion(airjudge_judge)


def assert_context_recall(
    *, user_input: str, retrieved_contexts: Sequence[str], reference: str, min: float | None = None
) -> "RecallResult":
    """Assert that the contexts support at least a share of the reference's statements, by the judge of the options.

    Where nothing was retrieved recall is 0. Returns what was judged, for more assertions.

    Args:
        user_input: The question.
        retrieved_contexts: What was retrieved for it.
        reference: The right answer.
        min: The recall to ask for, in [0, 1]; None means what the test's marker says, else 0.8.

    Raises:
        AssertionError: If recall is lower; it lists the statements that were missed.
        ValueError: If a text is blank, the contexts are no list of strings, or the reference holds no statement.
        AirjudgeError: If a statement could not be judged, or the judge cannot be used.
        RuntimeError: If called inside a running event loop: await `aassert_context_recall` there.
    """
    __tracebackhide__ = True
    holds = ContextRecallAssertion(_sessions[-1].judge())
    return holds(user_input=user_input, retrieved_contexts=retrieved_contexts, reference=reference, min=min)


async def aassert_context_recall(
    *, user_input: str, retrieved_contexts: Sequence[str], reference: str, min: float | None = None
) -> "RecallResult":
    """`assert_context_recall` for asynchronous tests."""
    __tracebackhide__ = True
    holds = AsyncContextRecallAssertion(_sessions[-1].judge())
    return await holds(user_input=user_input, retrieved_contexts=retrieved_contexts, reference=reference, min=min)


class ContextRecallAssertion:
    """`assert_context_recall` by one judge."""

    def __init__(self, judge: "ResidentJudge") -> None:
        """Contact nothing yet."""
        self._judge = judge

    def __call__(
        self, *, user_input: str, retrieved_contexts: Sequence[str], reference: str, min: float | None = None
    ) -> "RecallResult":
        """Assert it, as the function does."""
        __tracebackhide__ = True
        from airjudge.integrations.recalling import recalling
        from airjudge.judge import refuse_running_loop

        refuse_running_loop("aassert_context_recall")
        least, use = _sessions[-1].least(min), recalling(user_input, retrieved_contexts, reference)
        try:
            result = self._judge.call(use)
        except AirjudgeError as error:
            raise _sessions[-1].failed(error) from None
        return _sessions[-1].held(result, least)


class AsyncContextRecallAssertion:
    """`aassert_context_recall` by one judge."""

    def __init__(self, judge: "ResidentJudge") -> None:
        """Contact nothing yet."""
        self._judge = judge

    async def __call__(
        self, *, user_input: str, retrieved_contexts: Sequence[str], reference: str, min: float | None = None
    ) -> "RecallResult":
        """Assert it, as the function does."""
        __tracebackhide__ = True
        from airjudge.integrations.recalling import recalling

        least, use = _sessions[-1].least(min), recalling(user_input, retrieved_contexts, reference)
        try:
            result = await self._judge.acall(use)
        except AirjudgeError as error:
            raise _sessions[-1].failed(error) from None
        return _sessions[-1].held(result, least)


class _Session:
    """What assertions need of the session that they run in, and what they come to.

    They leave properties on their tests, which reach the process that reports from all others, and JUnit XML.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._judge: ResidentJudge | None = None
        self._item: pytest.Item | None = None
        self._seen: dict[str, list[tuple[str, object]]] = {}

    def judge(self) -> "ResidentJudge":
        """The judge that the options name; nothing is contacted yet.

        Raises:
            UsageError: If the key that they name is not there.
            InputError: If a process of several would have to start it.
        """
        if self._judge is None:
            self._judge = _judge_of(self.config)
        return self._judge

    def least(self, asked: float | None) -> float:
        """The recall that an assertion asks for.

        Raises:
            UsageError: If the test's marker says something else than that.
            ValueError: If it is none.
        """
        __tracebackhide__ = True
        marker = self._item.get_closest_marker(MARKER) if self._item else None
        if marker and (marker.args or set(marker.kwargs) - {"min"}):
            msg = f"the marker {MARKER} takes nothing but min=…"
            raise pytest.UsageError(msg)
        told = marker.kwargs.get("min", LEAST) if marker else LEAST
        least = float(told if asked is None else asked)
        if not 0 <= least <= 1:
            msg = f"min must be in [0, 1]: got {least}"
            raise ValueError(msg)
        return least

    def failed(self, error: AirjudgeError) -> AirjudgeError:
        """Note that a recall could not be told, and give the error as a person wants to read it: without our frames."""
        self._note(FAILURE, error.kind)
        error.add_note(f"[{error.kind}] {error.hint}".rstrip())
        return error.with_traceback(None)

    def held(self, result: "RecallResult", least: float) -> "RecallResult":
        """Note a recall, and give it if it is high enough.

        Raises:
            AssertionError: If it is not.
            ValueError: If there is none.
        """
        __tracebackhide__ = True
        from airjudge.gates import TOLERANCE
        from airjudge.integrations.recalling import told

        if result.value is None:
            self._note(FAILURE, "undefined")
            raise ValueError(told(result))
        self._note(RECALL, result.value)
        self._note(SIGNATURE, str(result.signature))
        if result.value < least - TOLERANCE:
            msg = f"context recall {result.value:.2f} is below {least:.2f}: {told(result)}"
            raise AssertionError(msg)
        return result

    def _note(self, name: str, value: object) -> None:
        if self._item and (name, value) != (SIGNATURE, dict(self._item.user_properties).get(SIGNATURE)):
            self._item.user_properties.append((name, value))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Know the test that runs."""
        self._item = item
        try:
            return (yield)
        finally:
            self._item = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test's assertions came to; the last report of a test tells all of it."""
        own = [(name, value) for name, value in report.user_properties if name in {RECALL, FAILURE, SIGNATURE}]
        if own:
            self._seen[report.nodeid] = own

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the session's assertions came to, if there were any."""
        lines = _summary(self._seen)
        if lines:
            terminalreporter.section("context recall")
            for line in lines:
                terminalreporter.line(line)


_sessions: list[_Session] = []
"""Sessions of pytest in this process: one, but for plugins' tests, which run sessions inside their own."""


def _setting(name: str) -> str:
    return f"airjudge_{name.replace('-', '_')}"


def _option(config: pytest.Config, name: str) -> str | None:
    """An option of the command line, else of the project; None if neither says anything."""
    return config.getoption(_setting(name)) or config.getini(_setting(name)) or None


def _judge_of(config: pytest.Config) -> "ResidentJudge":
    from airjudge.judge import Judge, JudgeSettings
    from airjudge.resident import resident

    judge, base_url, variable = (_option(config, name) for name in ("judge", "base-url", "api-key-env"))
    if base_url is None:
        if hasattr(config, "workerinput"):
            _refuse_to_start(judge)
        return resident(judge)
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        msg = f"the environment variable {variable}, which --airjudge-api-key-env names, is not set"
        raise pytest.UsageError(msg)
    settings = JudgeSettings(profile=judge)
    return resident(Judge.connect(base_url, _option(config, "model"), api_key=key, settings=settings))


def _refuse_to_start(judge: str | None) -> None:
    """Refuse a judge that runs nowhere yet: each worker of pytest-xdist would start one of its own.

    Raises:
        InputError: If none runs.
    """
    from airjudge.profiles import default_profile_name, this_machine
    from airjudge.server import running, running_model

    name = judge or default_profile_name("gpu" if this_machine().gpus else "cpu")
    if not (os.environ.get("AIRJUDGE_BASE_URL") or running_model(name) or running(name)):
        msg = f"no judge {name} runs here, and each worker of pytest-xdist would start one"
        raise InputError(
            msg, f"Start it once, before the tests: airjudge serve {name}; or name one by --airjudge-base-url."
        )


def _summary(seen: dict[str, list[tuple[str, object]]]) -> list[str]:
    """Lines about all assertions; none if there were none."""
    noted = [(test, name, value) for test, properties in seen.items() for name, value in properties]
    recalls = [(float(str(value)), test) for test, name, value in noted if name == RECALL]
    n_failed = sum(name == FAILURE for _, name, _ in noted)
    if not recalls and not n_failed:
        return []
    counted = f"{len(recalls) + n_failed} assertions, {n_failed} of them without a score"
    signatures = dict.fromkeys(str(value) for _, name, value in noted if name == SIGNATURE)
    if not recalls:
        return [counted]
    mean, (lowest, test) = sum(recall for recall, _ in recalls) / len(recalls), min(recalls)
    spread = f"mean recall {mean:.3f}, lowest {lowest:.3f} in {test}"
    return [f"{counted}; {spread}", *(f"judged by {one}" for one in signatures)]
