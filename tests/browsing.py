"""A real Chromium for tests: Debian's, driven through its own driver, with nothing to say to any network."""

import json
import shutil
from pathlib import Path
from typing import Any, Final, Self

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

HOW_TO_GET_IT: Final = "apt-get install --no-install-recommends chromium chromium-driver"
_FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


def missing_browser() -> str:
    """Say what is missing, and how to get it; nothing where Chromium and its driver are there."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(missing)} not found; {HOW_TO_GET_IT}" if missing else ""


class Browser:
    """Chromium with a profile of its own; a context manager."""

    def __init__(self, profile: Path) -> None:
        """Start nothing yet; `profile` is an empty folder."""
        self._options = webdriver.ChromeOptions()
        self._options.binary_location = shutil.which("chromium") or ""
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            self._options.add_argument(flag)
        self._options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})

    def __enter__(self) -> Self:
        """Start it; the driver is named, so selenium looks for none and downloads none."""
        self.driver = webdriver.Chrome(options=self._options, service=Service(shutil.which("chromedriver")))
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.driver.quit()

    def open(
        self,
        page: Path,
        *,
        width: int = 1200,
        height: int = 1000,
        dark: bool = False,
        fragment: str = "",
        media: str = "",
    ) -> None:
        """Open a file afresh, in a window of this size; what earlier pages logged is forgotten."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(f"{page.absolute().as_uri()}{fragment}")

    def all(self, selector: str) -> list[WebElement]:
        """All elements that a CSS selector finds."""
        found: list[WebElement] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def one(self, selector: str) -> WebElement:
        """The first element that a CSS selector finds."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def script(self, code: str, *values: object) -> Any:
        """What a script returns."""
        return self.driver.execute_script(code, *values)

    def console(self) -> list[str]:
        """What the page has written to the console since it was opened, errors of the policy among it."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [str(one["request"]["url"]) for one in sent]
