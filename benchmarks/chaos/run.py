"""Kill runs at random moments, and hold what they end with against a run that nothing killed.

    python benchmarks/chaos/run.py --kills 200

The judge is the tests' stub. What is checked after every run: all exports equal those of the uninterrupted
one, no statement was asked again after its verdict was committed, and `airjudge verify` finds nothing.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.killing import chaos
from tests.stub import Stub

RESULTS = Path(__file__).parents[1] / "results" / "chaos.json"


def main() -> None:
    """Kill, and exit with 1 if something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    began = time.monotonic()
    with TemporaryDirectory() as folder, Stub() as stub:
        ended = chaos(stub, Path(folder), kills=options.kills, rng=random.Random(options.seed))
    figures = ended._asdict() | {"seed": options.seed, "seconds": round(time.monotonic() - began)}
    options.results.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures))
    sys.exit(bool(ended.wrong))


if __name__ == "__main__":
    main()
