"""What makes a run the same run: whether a folder's may be gone on with, and what keeps it from that."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from airjudge.datasets import Source
from airjudge.errors import InputError, RunDiffers
from airjudge.journal import JOURNAL, Reader, refuse_if_locked
from airjudge.judge.settings import LONG_CONTEXTS
from airjudge.run.folder import EXPORTS, RUN
from airjudge.run.settings import RunSettings

Identity = dict[str, JsonValue]
"""Field by field, all that two starts of one run have in common."""

DATA: Final = "data_sha256"
_SIGNATURE: Final = "signature."
_STATEMENTS: Final = "signature.statements"
_DECODING: Final = "signature.decoding"
_SPLIT: Final = re.compile(rf'{LONG_CONTEXTS}="split",')
"""In the decoding settings of a signature, where its name is never the last."""


def identity_of_input(source: Source, settings: RunSettings) -> Identity:
    """The part of a run's identity that is known before its judge is."""
    return {
        DATA: source.digest(),
        **{f"mapping.{field}": column for field, column in sorted(source.mapping.items())},
        "zero_if_empty": settings.zero_if_empty,
        "limit": settings.limit,
        "statements_from": _statements_digest(settings.statements_from),
        "keep": list[JsonValue](sorted(settings.carried)),
    }


def identity_of_judge(signature: Mapping[str, JsonValue], reasons: str, *, evidence: bool) -> Identity:
    """The part of a run's identity that its judge makes, and what it is asked beside verdicts."""
    beside: Identity = {"reasons": reasons, "evidence": evidence}
    return {**{_SIGNATURE + field: value for field, value in signature.items()}, **beside}


def check_run(source: Source, out: Path, settings: RunSettings) -> None:
    """Refuse a folder that a run with these settings cannot begin or go on in; nothing is written.

    Raises:
        InputError: With the path and the next step, or a column to carry that there is not.
        RunLocked: If another process writes into it.
        RunDiffers: If the run in it is another one, as far as that is known without its judge.
    """
    _check_folder(out)
    source.check_carried(settings.carried)
    if settings.fork is not None:
        _check_fork(settings.fork, out)
    if settings.statements_from is not None:
        _check_statements(settings.statements_from, out)
    if settings.overwrite:
        return
    if (out / JOURNAL).exists():
        with Reader(out) as journal:
            refuse_another(out, held_identity(journal), identity_of_input(source, settings), source=source)
        return
    _refuse_leftovers(out)


def check_fresh(out: Path, identity: Identity) -> None:
    """Refuse a folder that holds a run; one of the same identity that was never finished may be begun anew.

    Raises:
        InputError: With the path and the next step.
        RunLocked: If another process writes into it.
    """
    _check_folder(out)
    if not (out / JOURNAL).exists():
        _refuse_leftovers(out)
        return
    with Reader(out) as journal:
        refuse_held(out, journal, identity)


def refuse_held(out: Path, journal: Reader, identity: Identity) -> None:
    """Refuse a journal that holds a run, but for one of the same identity that was never finished.

    Raises:
        InputError: With the path and the next step.
    """
    if "finished" in journal.header() or held_identity(journal) not in (None, identity):
        msg = f"{out} holds a run already"
        raise InputError(msg, "Choose another folder with --out, or pass --overwrite to replace it.")


def _check_folder(out: Path) -> None:
    """Refuse what is no folder, or is written by another process."""
    if out.exists() and not out.is_dir():
        msg = f"cannot write to {out}: it is a file"
        raise InputError(msg, "Choose another folder with --out.")
    refuse_if_locked(out)


def _refuse_leftovers(out: Path) -> None:
    held = [name for name in (RUN, *EXPORTS) if (out / name).exists()]
    if held:
        msg = f"{out} holds files that a run would replace ({', '.join(held)}), and no {JOURNAL} to go on with"
        raise InputError(msg, "Choose another folder with --out, or pass --overwrite to replace them.")


def _check_fork(fork: Path, out: Path) -> None:
    """Refuse to take verdicts over from a folder without a run, or from the run itself."""
    if fork.resolve() == out.resolve():
        msg = f"{fork} cannot be a fork of itself"
        raise InputError(msg, "Name another folder with --out.")
    Reader(fork).__exit__()


def _check_statements(run: Path, out: Path) -> None:
    """Refuse to take statements from an unfinished run, whose statements may change, or from the run itself."""
    if run.resolve() == out.resolve():
        msg = f"{run} cannot take statements from itself"
        raise InputError(msg, "Name another folder with --out.")
    with Reader(run) as journal:
        if "finished" not in journal.header():
            msg = f"the run in {run} is not finished: its statements may change"
            raise InputError(msg, "Finish it by the command that began it.")


def _statements_digest(run: Path | None) -> str | None:
    if run is None:
        return None
    with Reader(run) as journal:
        return journal.statements_digest()


def held_identity(journal: Reader) -> Identity | None:
    """The identity of the run in a journal; None if no start got as far as writing it."""
    found = journal.header().get("identity")
    return found if isinstance(found, dict) else None


def refuse_another(out: Path, held: Identity | None, wanted: Identity, *, source: Source) -> None:
    """Refuse to go on with a run that differs in a field that both identities name.

    Raises:
        RunDiffers: With the difference field by field, and the next step.
    """
    if held is None:
        return
    different = [field for field in wanted if held.get(field) != wanted[field]]
    different += [field for field in held if field.startswith("mapping.") and field not in wanted]
    if not different:
        return
    if different == [DATA]:
        msg = f"{source.name} has changed since the run in {out} began\n{_lines(held, wanted, different)}"
    else:
        msg = f"the run in {out} is another one:\n{_lines(held, wanted, different)}"
    raise RunDiffers(msg, _next_step(out, different))


def differences_of_judge(held: Identity | None, wanted: Identity) -> list[str]:
    """Fields in which two runs have other judges; statements made otherwise are compared one by one."""
    judge = [field for field in wanted if field.startswith(_SIGNATURE) and field != _STATEMENTS]
    held = held or {}
    if not _splits(held):  # what it ruled on it read at once, as the same judge does that splits
        wanted = {**wanted, _DECODING: _SPLIT.sub("", str(wanted[_DECODING]))}
    return [field for field in judge if held.get(field) != wanted[field]]


def _splits(identity: Identity) -> bool:
    return bool(_SPLIT.search(str(identity.get(_DECODING))))


def refuse_foreign_verdicts(fork: Path, held: Identity | None, wanted: Identity) -> None:
    """Refuse to take verdicts over from a run of another judge.

    Raises:
        RunDiffers: With the difference field by field.
    """
    different = differences_of_judge(held, wanted)
    if different:
        msg = f"no verdict of {fork} is valid here, its judge is another one:\n{_lines(held or {}, wanted, different)}"
        raise RunDiffers(msg, "Start without --fork, or name a run of this judge without a calibration.")


def _lines(held: Identity, wanted: Identity, fields: list[str]) -> str:
    return "\n".join(f"  {field}: {_short(held.get(field))} there, {_short(wanted.get(field))} now" for field in fields)


def _short(value: JsonValue) -> str:
    """A value of an identity for people; of a hash the first twelve digits."""
    text = "none" if value is None or value == [] else str(value)
    return text[:12] if len(text) == 64 and text.isalnum() else text


def _next_step(out: Path, different: list[str]) -> str:
    another = "choose another folder with --out, or replace the run with --overwrite"
    if different == [_DECODING]:
        return f"If the calibration alone is another: --fork {out} --out NEW takes raw verdicts over; else {another}."
    if any(field.startswith(_SIGNATURE) and field != _STATEMENTS for field in different):
        return f"{another[0].upper()}{another[1:]}."
    return f"Take over what is still valid with --fork {out} --out NEW, {another}."
