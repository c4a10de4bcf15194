"""A set of places that a million samples do not make large."""

from collections.abc import Iterable


class Places:
    """Places of samples, one bit each."""

    def __init__(self, places: Iterable[int] = ()) -> None:
        """Begin with these places."""
        self._bits = bytearray()
        for place in places:
            self.add(place)

    def add(self, place: int) -> None:
        """Add a place."""
        if place // 8 >= len(self._bits):
            self._bits.extend(bytes(place // 8 + 1 - len(self._bits)))
        self._bits[place // 8] |= 1 << place % 8

    def __contains__(self, place: int) -> bool:
        return place // 8 < len(self._bits) and bool(self._bits[place // 8] & 1 << place % 8)
