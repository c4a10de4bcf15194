"""One folder that carries airjudge, its packages and its judges into a room without a network."""

from airjudge.bundle.making import Bundled, make_bundle
from airjudge.bundle.wanted import Wanted

__all__ = ["Bundled", "Wanted", "make_bundle"]
