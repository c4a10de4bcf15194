"""Why a vLLM process ended: its log's useful lines, the likely cause, the next step. Pure text."""

import re
from pathlib import Path

from airjudge.errors import ServerFailed

LINES_SHOWN = 6
LINE_LENGTH = 400

_PREFIX = re.compile(
    r"(\([\w-]+ pid=\d+\) )?((?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:]+ \[[^\]]+\] ?)?(?P<text>.*)"
)
_NOISE = re.compile(
    r"^\s*$|^\s+File \"|^Traceback|^\s*[\^~]+\s*$|^usage:|warnings\.warn|Warning:|^INFO:|[█▀▄]|\d+%|^\[?W\d+ "
    r"|^For further information|^During handling|^The above exception|^Process \w+:$|EngineCore failed"
)
_EXCEPTION = re.compile(
    r"^(?!\w*Warning)[\w.]*(Error|Exception|Interrupt|Exit)\b(: |$)|^[\w.-]+: error: |^\S+: No module named "
    r"|^Worker proc \S+ died unexpectedly"
)

_SMALLER = "End other programs, or choose a smaller judge: airjudge models list"
_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        r"No module named '?vllm",
        "vLLM is not installed",
        "pip install 'airjudge[cpu]', or 'airjudge[gpu]' on a machine with a GPU",
    ),
    (
        r"No module named '?airjudge",
        "its Python does not find airjudge, whose guard it has to load",
        "Install airjudge beside vLLM; of a path, PYTHONPATH reaches the server and sys.path does not.",
    ),
    (
        r"is less than (requested|desired)|failed to map segment",
        "not enough memory",
        _SMALLER,
    ),
    (
        r"Address already in use",
        "another program listens on the port",
        "Choose another one, or leave --port out to get a free one.",
    ),
    (
        r"(?i)out of ?memory|can(no|')t allocate memory|bad_alloc|MemoryError|KV cache is needed|for the cache blocks",
        "not enough memory",
        _SMALLER,
    ),
    (
        r"SafetensorError|find any model weights|local directory specified|config\.json|\.safetensors",
        "the prepared weights are incomplete or damaged",
        "airjudge models verify {profile}, then airjudge models pull {profile}",
    ),
    (
        r"(?i)NVIDIA driver|CUDA driver|no kernel image",
        "the GPU's driver does not suit this vLLM",
        "Update the driver, or look at vLLM's installation notes for your GPU.",
    ),
    (
        r"unrecognized arguments|invalid choice|error: argument",
        "this vLLM does not know an option of ours or of the judge's profile",
        "Install the version that airjudge was made for: pip install 'airjudge[cpu]' or 'airjudge[gpu]'",
    ),
)
_KILLED = (
    "one of its processes was killed, most likely by the system because memory ran out",
    _SMALLER,
)
_CAUSES_BY_CODE = {
    128 + 4: (
        "this CPU lacks instructions that the installed vLLM needs",
        "A CPU with AVX2 is needed, in a virtual machine also passed through to it.",
    ),
    128 + 9: _KILLED,
}
_UNKNOWN = "Read the whole log; report it if the cause is ours."


def explain(log: str, code: int, *, profile: str, path: Path) -> ServerFailed:
    """The error for a process that ended by itself.

    Args:
        log: All that it wrote.
        code: Its exit code; 128 + N after signal N.
        profile: The judge's id.
        path: Where the log lies.
    """
    lines = useful_lines(log)
    cause, hint = likely_cause("\n".join(lines), code)
    told = f"vLLM ended with exit code {code}" + (f": {cause}" if cause else "")
    shown = "".join(f"\n  {line}" for line in lines)
    return ServerFailed(f"{told}{shown}\nlog: {path}", hint.format(profile=profile))


def likely_cause(text: str, code: int) -> tuple[str, str]:
    """Cause and next step, from the useful lines and the exit code; the cause is empty if unknown."""
    for pattern, cause, hint in _CAUSES:
        if re.search(pattern, text):
            return cause, hint
    if re.search(r"died unexpectedly|in a background process|Engine core initialization failed|EngineDeadError", text):
        return _KILLED  # the first report is of the death itself: what died had no time to say why
    return _CAUSES_BY_CODE.get(code, ("", _UNKNOWN))


def useful_lines(log: str) -> list[str]:
    """The first error of a log with what explains it, else its last words; without noise.

    The first one is the cause: those after it are the reports of processes that waited for it.
    """
    matched = [_PREFIX.fullmatch(line.rstrip()) for line in log.splitlines()]
    lines = [(line["level"], line["text"]) for line in matched if line]
    first = next((i for i, (_, text) in enumerate(lines) if _EXCEPTION.search(text)), None)
    if first is None:
        said = [text for _, text in lines if not _NOISE.search(text)]
        return [_short(text) for text in said[-LINES_SHOWN:]]
    told = [lines[first][1]]
    for level, text in lines[first + 1 : first + LINES_SHOWN]:
        if level not in (None, "ERROR") or _NOISE.search(text) or _EXCEPTION.search(text):
            break
        told.append(text)
    return [_short(text) for text in told]


def stage(log: str) -> str:
    """What a starting server is busy with, as its log tells."""
    return next((name for sign, name in reversed(_STAGES) if sign in log), "loading vLLM")


_STAGES = (
    ("Initializing a V1 LLM engine", "starting the engine"),
    ("Starting to load model", "loading weights"),
    ("Loading weights took", "making room for the KV cache"),
    ("KV cache size", "warming up"),
    ("Starting vLLM server", "opening the port"),
)


def _short(line: str) -> str:
    return line if len(line) <= LINE_LENGTH else line[: LINE_LENGTH - 1] + "…"
