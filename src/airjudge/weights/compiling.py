"""What our reply schemas cost to compile for a judge: outlines, over the judge's own vocabulary.

A server compiles a schema when it first meets it, and gives up after a few seconds with a bare HTTP 500.
The cost grows with the vocabulary, so it is measured per judge, before a server is started. Run as
`python -m airjudge.weights.compiling FOLDER`, it is a process of its own, for outlines brings transformers.
"""

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from airjudge.decoding import ALL_SCHEMAS
from airjudge.errors import WeightsError


def compile_seconds(folder: Path) -> dict[str, float] | None:
    """Seconds that each of our schemas takes to compile for the judge in a folder, by schema name.

    Returns:
        None where transformers is not installed, as on a client without a server.

    Raises:
        WeightsError: If the tokenizer cannot be read, or a schema not be compiled.
    """
    if find_spec("transformers") is None:
        return None
    command = [sys.executable, "-P", "-m", "airjudge.weights.compiling", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        msg = f"outlines cannot compile the reply schemas for {folder}: {last}"
        raise WeightsError(msg, "Pull the judge again: airjudge models pull NAME")
    return {str(name): float(seconds) for name, seconds in json.loads(ended.stdout).items()}


def main() -> None:
    """Compile each schema once and print its seconds as one JSON object."""
    from outlines.backends.outlines_core import OutlinesCoreBackend  # noqa: PLC0415 - heavy
    from outlines.models.transformers import TransformerTokenizer  # noqa: PLC0415
    from outlines.types import JsonSchema  # noqa: PLC0415
    from outlines.types.dsl import to_regex  # noqa: PLC0415
    from outlines_core import Index  # noqa: PLC0415
    from transformers import AutoTokenizer  # noqa: PLC0415

    tokenizer = TransformerTokenizer(AutoTokenizer.from_pretrained(sys.argv[1]))
    vocabulary = OutlinesCoreBackend.create_outlines_core_vocabulary(
        tokenizer.vocabulary, tokenizer.eos_token_id, tokenizer.eos_token, tokenizer.convert_token_to_string
    )
    seconds = {}
    for schema in ALL_SCHEMAS:
        regex = to_regex(JsonSchema(dict(schema.json_schema)))
        start = time.perf_counter()
        Index(regex, vocabulary)
        seconds[schema.name] = time.perf_counter() - start
    sys.stdout.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    main()
