"""
Several throw-away hosts as one place, for experiments whose factor is the server version.

A shape names the server that it is for; everything else is that server's own place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from pgheadroom.errors import LabError
from pgheadroom.lab.place import OwnPlace, Running, Shape


class SeveralPlaces:
    """Places by the level of the factor `server`; version and folder are those of the first."""

    throw_away = True

    def __init__(self, places: Mapping[str, OwnPlace]) -> None:
        self._places = dict(places)
        first = next(iter(self._places.values()))
        self.version = first.version
        self.folder = first.folder
        self.memory_bytes = first.memory_bytes
        contribs = [place.contrib for place in self._places.values()]
        self.contrib = frozenset.intersection(*contribs)

    def running(self, shape: Shape, settings: Mapping[str, str]) -> AbstractContextManager[Running]:
        """A server of the version that the shape names, with the shape loaded."""
        if shape.server is None or shape.server not in self._places:
            raise LabError(f"shape {shape.name} names server {shape.server}: not one of the run's")
        return self._places[shape.server].running(shape, settings)

    def drop(self, shape_name: str) -> None:
        """Free a shape wherever it is."""
        for place in self._places.values():
            place.drop(shape_name)
