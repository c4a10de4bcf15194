"""Whether a calibration is this judge's."""

from airjudge.calibration import Calibration
from airjudge.errors import CalibrationDiffers
from airjudge.schema import Signature


def refuse_calibration_of_another(calibration: Calibration | None, signature: Signature) -> None:
    """Refuse a calibration that was fitted to the probabilities of another judge.

    Args:
        calibration: The one to be applied; None is any judge's.
        signature: The judge's, without calibration.

    Raises:
        CalibrationDiffers: With the difference field by field.
    """
    different = calibration.unlike(signature) if calibration else []
    if different:
        lines = "\n".join(f"  {field}: {_short(theirs)} there, {_short(ours)} now" for field, theirs, ours in different)
        msg = f"the calibration was made for another judge:\n{lines}"
        raise CalibrationDiffers(msg)


def _short(value: str) -> str:
    """A value of a signature for people; of a hash the first twelve digits."""
    return value[:12] if len(value) == 64 and value.isalnum() else value
