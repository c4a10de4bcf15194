"""Run the stub judge as a process of its own: python -m tests.stub [--port N].

Prints one JSON line, {"base_url", "model", "api_key"}, and serves until it is ended.
"""

import argparse
import contextlib
import json
import signal
import sys

from tests.stub.engine import StubConfig
from tests.stub.server import Stub


def main() -> None:
    """Read the options and serve until a signal ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.stub", description="A stub judge that plays vLLM.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each chat reply")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config = StubConfig(port=options.port, latency_s=options.latency)
    with contextlib.suppress(KeyboardInterrupt), Stub(config) as stub:
        line = {"base_url": stub.base_url, "model": stub.model, "api_key": stub.api_key}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main()
