"""The pages for those who come from another system, read by the tests: their snippets, commands and tables."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github" / "docs"

_TOLD = re.compile(r"^ *print\(.*\)  # (\S+)$", re.MULTILINE)


class Page(NamedTuple):
    """One page of .github/docs, by the name of the other system."""

    name: str

    @property
    def text(self) -> str:
        """The page as written."""
        return (FOLDER / f"from-{self.name}.md").read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        """The code blocks in a language, in order."""
        return re.findall(rf"```{language}\n(.*?)```", self.text, re.DOTALL)

    def snippets(self, *, ours: bool) -> list[str]:
        """The Python blocks of a script after the change, which import airjudge alone, or those before it."""
        return [
            block for block in self.blocks("python") if ("airjudge.compat" in block) is ours and not _is_mixed(block)
        ]

    def mixed(self) -> list[str]:
        """The Python blocks in which the original has our judge."""
        return [block for block in self.blocks("python") if _is_mixed(block)]

    def tests(self) -> list[str]:
        """The tests that the tables name, in the last cell of each row."""
        rows = [line for line in self.text.splitlines() if line.startswith("|") and "---" not in line]
        return [name for row in rows for name in re.findall(r"`(test_\w+)`", row.split("|")[-2])]

    def rows_without_a_test(self) -> list[str]:
        """Rows of tables that name no test, headings aside."""
        rows = re.findall(r"(?<=\n)\|[-|]+\|\n((?:\|.*\n)+)", self.text)
        return [row for table in rows for row in table.splitlines() if "`test_" not in row]


def _is_mixed(block: str) -> bool:
    return "airjudge.integrations" in block


PAGES = (Page("ragas"), Page("opik"), Page("deepeval"))


def told(snippet: str) -> list[str]:
    """What a snippet says that it prints: single words behind a print."""
    return _TOLD.findall(snippet)


def printed(snippet: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run a snippet as a script in a folder, and give the lines that it prints."""
    ended = subprocess.run(
        [sys.executable, "-c", snippet],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def in_order(said: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether lines hold all that was said, in that order, others between them."""
    rest = iter(lines)
    return all(one in rest for one in said)


def commands(page: Page) -> list[list[str]]:
    """The commands of a page's shell blocks, as words; comments are left out."""
    lines = [line.split(" #")[0] for block in page.blocks("sh") for line in block.splitlines()]
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]
