"""Calibrate a judge by a labelled run of it, and keep the calibration in a file."""

from airjudge.calibrate.files import read_calibration, write_calibration
from airjudge.calibrate.fitting import Wanted, calibrate_run
from airjudge.calibrate.observed import Observed, observe

__all__ = ["Observed", "Wanted", "calibrate_run", "observe", "read_calibration", "write_calibration"]
