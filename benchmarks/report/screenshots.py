"""Screenshots of a report in a real Chromium, for the README: light, dark, an opened sample, a phone.

    python -m benchmarks.report.screenshots RUN... [--labels FILE] [--data DATA] [--out FOLDER]

Needs Chromium and its driver, as the tests marked `browser` do.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.browsing import Browser, missing_browser

_MOST_CONFIDENT = """
const sort = document.getElementById('sort');
if (sort.querySelector('[value=gap]')) { sort.value = 'gap'; sort.dispatchEvent(new Event('change')); }
"""
LARGEST_BYTES = 150_000
"""Of one image: a README is read over slow lines too."""


@dataclass(frozen=True)
class Shot:
    """One image: its window, the part of the page that stands at its top, the place of the sample opened before."""

    name: str
    part: str = ""
    width: int = 1100
    height: int = 820
    dark: bool = False
    opened: int | None = None


SHOTS = (
    Shot("recall"),
    Shot("judges", part="judges"),
    Shot("judges-dark", part="judges", dark=True),
    Shot("people", part="people"),
    Shot("sample", part="samples", opened=0),
    Shot("phone", part="sample-list", width=360, height=760, opened=0),
)


def main(words: Sequence[str]) -> None:
    """Write a report of the runs, and its images."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--labels")
    parser.add_argument("--data")
    parser.add_argument("--out", type=Path, default=Path(".github/images"))
    asked = parser.parse_args(words)
    missing = missing_browser()
    if missing:
        sys.exit(missing)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        given = [("--labels", asked.labels), ("--data", asked.data)]
        options = [word for name, value in given if value for word in (name, value)]
        subprocess.run([sys.executable, "-m", "airjudge", "report", *asked.runs, *options, "-o", str(page)], check=True)
        asked.out.mkdir(parents=True, exist_ok=True)
        with Browser(Path(folder, "profile")) as browser:
            for shot in SHOTS:
                take(browser, page, shot, out=asked.out)


def take(browser: Browser, page: Path, shot: Shot, *, out: Path) -> None:
    """Take one image, if the report has the part that it shows."""
    browser.open(page, width=shot.width, height=shot.height, dark=shot.dark)
    if shot.opened is not None:
        browser.script(_MOST_CONFIDENT)
        browser.script(f"document.querySelectorAll('.sample h3 button')[{shot.opened}].click()")
    if shot.part and not browser.all(f"#{shot.part}"):
        print(f"{shot.name}: the report has no part {shot.part}")
        return
    browser.script("document.getElementById(arguments[0])?.scrollIntoView()", shot.part)
    path = out / f"report-{shot.name}.png"
    path.write_bytes(browser.driver.get_screenshot_as_png())
    size = path.stat().st_size
    print(f"{path}: {size / 1e3:.0f} kB")
    if size > LARGEST_BYTES:
        sys.exit(f"{path} is larger than {LARGEST_BYTES / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
