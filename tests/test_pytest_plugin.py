"""airjudge in pytest: sessions inside this one, with the plugin, against a stub."""

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from xml.etree import ElementTree as ET

import pytest

from tests.stub import Stub

pytest_plugins = ["pytester"]

PLUGIN = "airjudge.integrations.pytest_plugin"
# A checkout whose entry points were installed has the plugin already; naming it twice is an error of pytest.
LOADED = () if any(one.value == PLUGIN for one in entry_points(group="pytest11")) else ("-p", PLUGIN)

HALF = """
HALF = dict(
    user_input="Where is the boat?",
    retrieved_contexts=["The red boat lies in Bergen harbour."],
    reference="The red boat lies in Bergen harbour. Captain Thomas sings loudly.",
)
"""
IMPORTED = """
import pytest
from airjudge.integrations.pytest_plugin import aassert_context_recall, assert_context_recall
"""
INI = """
[pytest]
filterwarnings = error
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""

Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(pytester: pytest.Pytester, stub: Stub) -> Session:
    """Run tests in a session of their own, whose judge is the stub."""

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makeini(INI)
        pytester.makepyfile(IMPORTED + HALF + source)
        served = ("--airjudge-base-url", stub.base_url, "--airjudge-api-key-env", "STUB_KEY")
        return pytester.runpytest(*LOADED, *served, "--strict-markers", *arguments)

    return run


def test_a_failing_assertion_tells_score_bound_and_what_was_missed_and_shows_no_code_of_ours(session: Session) -> None:
    ended = session("def test_it():\n    assert_context_recall(**HALF)\n")
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(
        [
            "*AssertionError: context recall 0.50 is below 0.80: 1 of 2 statements missed",
            "*missed (probability 0.??): Captain Thomas sings loudly.",
            "*context recall*",
            "1 assertions, 0 of them without a score; mean recall 0.500, lowest 0.500 in *::test_it",
            "judged by *enforced=outlines*",
        ]
    )
    told = ended.stdout.str()
    assert "missed (probability 0.50): The red boat" not in told
    assert "pytest_plugin.py" not in told
    assert "resident.py" not in told


def test_an_assertion_that_holds_gives_what_was_judged(session: Session) -> None:
    ended = session(
        """
def test_function():
    assert [one.attributed for one in assert_context_recall(**HALF, min=0.5).statements] == [True, False]

def test_fixture(assert_context_recall):
    assert assert_context_recall(**HALF, min=0).value == 0.5

async def test_async(aassert_context_recall):
    assert (await aassert_context_recall(**HALF, min=0.5)).value == 0.5
    with pytest.raises(AssertionError, match="is below 0.60"):
        await globals()["aassert_context_recall"](**HALF, min=0.6)
"""
    )
    ended.assert_outcomes(passed=3)
    ended.stdout.fnmatch_lines(["4 assertions, 0 of them without a score; mean recall 0.500*"])


def test_inside_a_loop_the_synchronous_function_names_the_other(session: Session) -> None:
    ended = session("async def test_it():\n    assert_context_recall(**HALF)\n")
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(["*RuntimeError: an event loop is running here: await aassert_context_recall instead"])


def test_the_marker_says_what_its_test_asks_for_and_selects_it(session: Session) -> None:
    source = """
@pytest.mark.context_recall(min=0.5)
def test_lower():
    assert_context_recall(**HALF)

@pytest.mark.context_recall
def test_as_ever():
    assert_context_recall(**HALF)

@pytest.mark.context_recall(min=0.1)
def test_of_its_own():
    assert_context_recall(**HALF, min=0.7)

def test_unmarked():
    raise SystemError
"""
    ended = session(source, "-m", "context_recall")
    ended.assert_outcomes(passed=1, failed=2, deselected=1)
    ended.stdout.fnmatch_lines(["*is below 0.80*", "*is below 0.70*"])


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("0.5", "the marker context_recall takes nothing but min="),
        ("minimum=0.5", "the marker context_recall takes nothing but min="),
        ("min=50", "min must be in [[]0, 1[]]: got 50.0"),
    ],
)
def test_a_marker_that_says_nothing_of_use_is_an_error(session: Session, stub: Stub, marker: str, told: str) -> None:
    ended = session(f"@pytest.mark.context_recall({marker})\ndef test_it():\n    assert_context_recall(**HALF)\n")
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines([f"*{told}*"])
    assert not stub.chats


def test_nothing_retrieved_is_recall_0(session: Session) -> None:
    ended = session('def test_it():\n    assert_context_recall(**HALF | {"retrieved_contexts": []})\n')
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(["*context recall 0.00 is below 0.80: 2 of 2*", "*missed: The red boat lies*"])


def test_a_sample_that_cannot_be_judged_never_passes_and_says_why(session: Session) -> None:
    source = 'def test_it():\n    assert_context_recall(**HALF | {"retrieved_contexts": ["boat " * 100_000]}, min=0)\n'
    ended = session(source)
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(
        ["*PromptTooLong: *", "*[[]prompt_too_long[]]*", "1 assertions, 1 of them without a score"]
    )
    assert "resident.py" not in ended.stdout.str()


def test_a_blank_reference_is_a_misuse(session: Session) -> None:
    ended = session('def test_it():\n    assert_context_recall(**HALF | {"reference": " "})\n')
    ended.stdout.fnmatch_lines(["*ValueError: reference cannot be empty"])


def test_recall_and_judge_are_properties_in_junit_xml(session: Session, pytester: pytest.Pytester) -> None:
    source = "def test_it():\n    assert_context_recall(**HALF, min=0)\n    assert_context_recall(**HALF, min=0.1)\n"
    session(source, "--junitxml=out.xml")
    found = ET.parse(pytester.path / "out.xml").iter("property")
    told = [(one.get("name"), one.get("value") or "") for one in found]
    assert [name for name, _ in told] == ["context_recall", "context_recall_signature", "context_recall"]
    assert told[0][1] == told[2][1] == "0.5"
    assert "enforced=outlines" in told[1][1]


def test_a_judge_is_proved_once_a_session(session: Session, stub: Stub) -> None:
    session("@pytest.mark.parametrize('n', range(3))\ndef test_it(n):\n    assert_context_recall(**HALF, min=0)\n")
    assert len(stub.bodies("Reply with the single word")) == 1


def test_the_project_names_the_judge_too(pytester: pytest.Pytester, stub: Stub) -> None:
    ini = f"airjudge_base_url = {stub.base_url}\nairjudge_api_key_env = STUB_KEY\nairjudge_model = {stub.model}\n"
    pytester.makeini(INI + ini)
    pytester.makepyfile(IMPORTED + HALF + "def test_it():\n    assert_context_recall(**HALF, min=0.5)\n")
    pytester.runpytest(*LOADED).assert_outcomes(passed=1)


def test_a_project_may_bring_a_judge_of_its_own(pytester: pytest.Pytester, stub: Stub) -> None:
    pytester.makeini(INI)
    pytester.makeconftest(
        f"""
import os, pytest
@pytest.fixture(scope="session")
def airjudge_judge():
    from airjudge import Judge
    from airjudge.resident import resident
    return resident(Judge.connect({stub.base_url!r}, api_key=os.environ["STUB_KEY"]))
"""
    )
    pytester.makepyfile(HALF + "def test_it(assert_context_recall):\n    assert_context_recall(**HALF, min=0.5)\n")
    pytester.runpytest(*LOADED).assert_outcomes(passed=1)


@pytest.mark.parametrize("option", ["--airjudge-model=x", "--airjudge-api-key-env=KEY"])
def test_options_that_lack_their_other_half_are_refused_at_once(pytester: pytest.Pytester, option: str) -> None:
    pytester.makeini(INI)
    ended = pytester.runpytest(*LOADED, option)
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(["*need --airjudge-base-url*"])


def test_a_key_that_is_not_there_is_named(session: Session) -> None:
    ended = session("def test_it():\n    assert_context_recall(**HALF)\n", "--airjudge-api-key-env", "NO_SUCH_KEY")
    ended.stdout.fnmatch_lines(["*the environment variable NO_SUCH_KEY, *is not set*"])


def test_a_session_that_judges_nothing_loads_nothing_and_says_nothing(pytester: pytest.Pytester, stub: Stub) -> None:
    pytester.makepyfile(
        """
import sys
def test_it():
    heavy = {"aiohttp", "airjudge.judge", "airjudge.resident", "numpy", "outlines_core", "pydantic", "scipy"}
    assert "airjudge.integrations.pytest_plugin" in sys.modules
    assert not heavy & set(sys.modules)
"""
    )
    bare = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--airjudge-base-url", stub.base_url)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *LOADED, *bare, str(pytester.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "context recall" not in ended.stdout
    assert not stub.requests


def test_the_plugin_is_named_in_the_help_and_its_marker_is_listed(pytester: pytest.Pytester) -> None:
    pytester.makeini(INI)
    pytester.runpytest(*LOADED, "--help").stdout.fnmatch_lines(["*--airjudge-base-url=NAME*", "*airjudge_base_url*"])
    pytester.runpytest(*LOADED, "--markers").stdout.fnmatch_lines(["@pytest.mark.context_recall(min=0.8): *"])
