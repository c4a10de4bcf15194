"""Calibration files: one JSON object, written whole, refused where it is not one of ours."""

from pathlib import Path

from pydantic import ValidationError

from airjudge.calibration import Calibration
from airjudge.errors import InputError
from airjudge.journal import written_whole

_MAKE = "Make one: airjudge calibrate RUN --labels FILE"


def read_calibration(path: Path) -> Calibration:
    """Read a calibration.

    Raises:
        InputError: If the file cannot be read, or holds no calibration of this version of airjudge.
    """
    try:
        return Calibration.model_validate_json(path.read_bytes())
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}"
        raise InputError(msg, _MAKE) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(one) for one in first["loc"])
        msg = f"{path} is no calibration: {where + ': ' if where else ''}{first['msg']}"
        raise InputError(msg, _MAKE) from error


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration, whole.

    Raises:
        InputError: If its folder does not exist.
        StorageFailed: If it cannot be written.
    """
    if not path.parent.is_dir():
        msg = f"cannot write {path}: there is no folder {path.parent}"
        raise InputError(msg, "Choose another file with -o.")
    with written_whole(path) as file:
        file.write(calibration.model_dump_json(indent=2).encode() + b"\n")
