"""From what a user names to rows: paths, patterns, compression, standard input, digests."""

import gzip
import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from airjudge.datasets import open_source
from airjudge.errors import DatasetError, InputError
from tests.inputs import GOOD, entries_of, good, never, samples_of, write_lines


class StandardInput(NamedTuple):
    """Stands for sys.stdin: its bytes, and whether it is a terminal."""

    buffer: io.BytesIO
    terminal: bool = False

    def isatty(self) -> bool:
        return self.terminal


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes, *, terminal: bool = False) -> None:
    monkeypatch.setattr(sys, "stdin", StandardInput(io.BytesIO(content), terminal=terminal))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n\r\n", "holds blank lines only"),
        (b"\xef\xbb\xbf\n", "holds blank lines only"),
        (json.dumps(GOOD).encode("utf-16"), "is UTF-16"),
        (json.dumps([GOOD], indent=1).encode(), "is one JSON document"),
        (json.dumps([GOOD]).encode(), "is one JSON document"),
        (json.dumps(GOOD, indent=1).encode(), "is one JSON document"),
        (b"\x1f\x8bxxxxxxxx", "cannot be read"),
        (gzip.compress(b""), "is empty"),
    ],
)
def test_a_file_without_any_line_of_ours_is_an_input_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_source([str(path)])
    assert caught.value.hint


@pytest.mark.parametrize(
    "name", ["absent.jsonl", "folder", "pipe", "table.csv", "table.PARQUET", "data.jsonl.gz", "none-*.csv", "a.xlsx"]
)
def test_a_path_that_cannot_be_read_is_refused_at_once_with_a_next_step(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "table.csv").write_text("a,b\n")
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(InputError) as caught:
        open_source([str(tmp_path / name)])
    assert name in str(caught.value)
    assert caught.value.hint


def test_a_file_below_a_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Not a directory"):
        open_source([str(write_lines(tmp_path, GOOD) / "data.jsonl")])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_input_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path, GOOD)
    path.chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        open_source([str(path)])


def test_a_file_that_is_taken_away_meanwhile_is_an_input_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path, GOOD)
    source = open_source([str(path)])
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        list(source.entries(never))


@pytest.mark.parametrize("suffix", [".gz", ".zst", ""])
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_lines_are_read_whatever_the_file_is_called(tmp_path: Path, codec: str, suffix: str) -> None:
    plain = write_lines(tmp_path, good(id="a"), "{", good(id="b"))
    packed = tmp_path / f"packed.jsonl{suffix}"
    packed.write_bytes(pa.compress(plain.read_bytes(), codec, asbytes=True))
    found = [(one.line, type(one.value)) for one in entries_of(packed)]
    assert found == [(one.line, type(one.value)) for one in entries_of(plain)]
    assert open_source([str(packed)]).digest() == hashlib.sha256(packed.read_bytes()).hexdigest()


def test_a_stream_of_several_compressed_parts_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(b"".join(gzip.compress(json.dumps(good(id=name)).encode() + b"\n") for name in "abc"))
    assert [one.id for one in samples_of(path)] == ["a", "b", "c"]


def test_a_compressed_file_that_was_cut_is_an_input_error_behind_what_could_be_read(tmp_path: Path) -> None:
    # Random texts compress all alike, so half of the file holds about half of its 4000 lines.
    rows = [json.dumps(good(id=str(n), note=os.urandom(200).hex())).encode() + b"\n" for n in range(4000)]
    path = tmp_path / "data.jsonl.gz"
    packed = gzip.compress(b"".join(rows))
    path.write_bytes(packed[: len(packed) // 2])
    entries = open_source([str(path)]).entries(never)
    places: list[int] = []
    with pytest.raises(InputError, match="cannot be read"):
        places.extend(entry.place for entry in entries)
    assert places == list(range(len(places)))
    assert 1500 < len(places) < 2500


def test_a_json_object_in_the_first_line_is_json_lines_whatever_the_file_is_called(tmp_path: Path) -> None:
    assert len(samples_of(write_lines(tmp_path, GOOD, name="data.csv"))) == 1
    assert len(samples_of(write_lines(tmp_path, GOOD, name="export"))) == 1


def test_several_files_are_read_in_the_order_named_and_patterns_in_that_of_their_names(tmp_path: Path) -> None:
    b, a = (write_lines(tmp_path, good(id=name), GOOD, name=f"part-{name}.jsonl") for name in "ba")
    entries = entries_of(b, a)
    assert [(one.place, one.path, one.line) for one in entries] == [
        (0, str(b), 1), (1, str(b), 2), (2, str(a), 1), (3, str(a), 2)
    ]  # fmt: skip
    assert [one.id for one in samples_of(b, a)] == ["b", f"{b}:line-2", "a", f"{a}:line-2"]
    assert [one.id for one in samples_of(tmp_path / "part-*.jsonl")] == ["a", f"{a}:line-2", "b", f"{b}:line-2"]
    assert open_source([str(tmp_path / "**" / "part-*")]).name == "2 files"
    assert open_source([str(a)]).name == "part-a.jsonl"


def test_a_name_with_marks_of_a_pattern_is_that_file_if_it_exists(tmp_path: Path) -> None:
    assert len(samples_of(write_lines(tmp_path, GOOD, name="part[1].jsonl"))) == 1


def test_a_file_that_is_named_twice_would_count_double_and_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path, GOOD)
    (tmp_path / "link.jsonl").symlink_to(path)
    for paths in ([path, path], [path, tmp_path / "*.jsonl"], [tmp_path / "link.jsonl", path]):
        with pytest.raises(InputError, match=r"twice|again"):
            open_source([str(one) for one in paths])


def test_files_that_call_one_field_differently_are_refused_with_both_names(tmp_path: Path) -> None:
    asked = {"question" if key == "user_input" else key: value for key, value in GOOD.items()}
    paths = [write_lines(tmp_path, GOOD, name="a.jsonl"), write_lines(tmp_path, asked, name="b.jsonl")]
    with pytest.raises(InputError, match="2 columns could be user_input: user_input, question"):
        open_source([str(path) for path in paths])


def test_formats_may_be_mixed_if_their_columns_are_called_alike(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text('user_input,reference,retrieved_contexts\nWho?,She.,"[""It was she.""]"\n')
    samples = samples_of(write_lines(tmp_path, GOOD, name="a.jsonl"), tmp_path / "b.csv")
    assert [one.user_input for one in samples] == ["Where?", "Who?"]


def test_the_digest_is_that_of_the_bytes_and_of_several_files_depends_on_their_order_and_limits(
    tmp_path: Path,
) -> None:
    line = json.dumps(GOOD) + "\n"
    for name, n_lines in (("a", 1), ("b", 2), ("c", 2), ("d", 1)):
        (tmp_path / name).write_text(line * n_lines)

    def digest(names: str) -> str:
        return open_source([str(tmp_path / name) for name in names]).digest()

    assert digest("b") == hashlib.sha256((line * 2).encode()).hexdigest()
    assert digest("b") == digest("c")
    assert len({digest("ab"), digest("ba"), digest("a"), digest("b")}) == 4
    (tmp_path / "b").write_text(line * 3)
    assert digest("b") != digest("c")


def test_standard_input_is_saved_and_read_as_often_as_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps(GOOD).encode() + b"\n{\n"
    pipe(monkeypatch, content)
    source = open_source(["-"], spool=tmp_path / "run" / "input")
    for _ in range(2):
        assert [(one.path, one.line, type(one.value)) for one in source.entries(never)][1] == ("-", 2, DatasetError)
    assert (tmp_path / "run" / "input").read_bytes() == content
    assert source.name == "standard input"
    assert source.digest() == hashlib.sha256(content).hexdigest()


def test_a_saved_input_is_used_again_when_nothing_is_piped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, json.dumps(GOOD).encode())
    digest = open_source(["-"], spool=tmp_path / "input").digest()
    pipe(monkeypatch, b"")
    assert open_source(["-"], spool=tmp_path / "input").digest() == digest
    pipe(monkeypatch, json.dumps(GOOD).encode())
    assert open_source(["-"], spool=tmp_path / "input").digest() == digest
    assert [path.name for path in tmp_path.iterdir()] == ["input"]


def test_other_data_do_not_replace_a_saved_input_unless_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, json.dumps(GOOD).encode())
    digest = open_source(["-"], spool=tmp_path / "input").digest()
    other = json.dumps(good(id="other")).encode()
    pipe(monkeypatch, other)
    with pytest.raises(InputError, match="is not what the run in"):
        open_source(["-"], spool=tmp_path / "input")
    assert (tmp_path / "input").read_bytes() == json.dumps(GOOD).encode()
    pipe(monkeypatch, other)
    assert open_source(["-"], spool=tmp_path / "input", overwrite=True).digest() != digest
    assert [path.name for path in tmp_path.iterdir()] == ["input"]


def test_a_table_may_come_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"question,ground_truth,contexts\nWhere?,Here.,[]\n")
    (entry,) = open_source(["-"], spool=tmp_path / "input").entries(never)
    assert not isinstance(entry.value, DatasetError)
    assert entry.value.user_input == "Where?"


def test_standard_input_that_is_empty_or_a_terminal_or_has_no_place_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, b"")
    with pytest.raises(InputError, match="- is empty"):
        open_source(["-"], spool=tmp_path / "input")
    with pytest.raises(InputError, match="no place to save it"):
        open_source(["-"])
    pipe(monkeypatch, b"", terminal=True)
    with pytest.raises(InputError, match="is a terminal"):
        open_source(["-"], spool=tmp_path / "other")
    pipe(monkeypatch, b"x")
    with pytest.raises(InputError, match="cannot be saved"):
        open_source(["-"], spool=tmp_path / "input" / "below")
    with pytest.raises(InputError, match="no data set is named"):
        open_source([])
