"""Turn a GGUF file into a folder that vLLM loads, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from airjudge.errors import WeightsError
from airjudge.weights.cache import Progress, disk_full

EXIT_NO_TEMPLATE = 65
EXIT_NO_CONVERTER = 69
NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|os error (?:28|122)")
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}
QUIET = {"TRANSFORMERS_VERBOSITY": "error", "CUDA_VISIBLE_DEVICES": ""}


def convert_gguf(gguf: Path, folder: Path, *, needed_bytes: int, progress: Progress) -> str:
    """Write the model of a GGUF file to a new folder and name the converter.

    Args:
        gguf: The file.
        folder: Made here; its parent exists.
        needed_bytes: What the error says if the disk is full.
        progress: Told each step, with total 0: transformers does not say how far it is.

    Raises:
        WeightsUnavailable: If the disk is full.
        WeightsError: If transformers is missing, or cannot convert the file.
    """
    folder.mkdir(mode=0o700)
    command = [sys.executable, "-P", "-m", "airjudge.weights.dequantise", str(gguf), str(folder)]
    converter = "transformers"
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints, ExitStack() as stack:
        environment = {**os.environ, **OFFLINE, **QUIET}
        process = stack.enter_context(
            subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        )
        stack.callback(process.kill)  # whatever ends this block ends the process
        for line in process.stdout or ():
            if line.startswith("converter: "):
                converter = line.removeprefix("converter: ").strip()
            elif line.startswith("convert: "):
                progress(line.strip(), 0, 0)
        process.wait()
        complaints.seek(0)
        said = complaints.read()
    if NO_SPACE.search(said) and process.returncode:
        raise disk_full(folder, needed_bytes)
    if process.returncode:
        raise _failed(gguf, process.returncode, said)
    return converter


def _failed(gguf: Path, status: int, said: str) -> WeightsError:
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
    if status == EXIT_NO_CONVERTER:
        msg = f"cannot convert {gguf.name}: {last}"
        return WeightsError(msg, "Install what converts weights: pip install 'airjudge[cpu]'")
    if status == -signal.SIGKILL:
        msg = f"the conversion of {gguf.name} was killed, most likely for lack of memory"
        return WeightsError(msg, "Free some memory, or choose a smaller judge: airjudge models list")
    msg = f"cannot convert {gguf.name} (status {status}): {last}"
    return WeightsError(msg, "See whether transformers and gguf have the versions that airjudge[cpu] asks for.")
