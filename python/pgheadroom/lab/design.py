"""
Design of an experiment: factors and options, cells, trials and their order.

A *factor* is varied and its levels span the cells; an *option* has one value for the whole run.
A *trial* is one repetition of one cell. Repetitions form blocks: block n holds repetition n of
every cell, in an order drawn from the seed, and every second block runs in the reverse of the
one before (ABBA), so that a drift of the machine weighs on all arms alike.
"""

from __future__ import annotations

import difflib
import itertools
import json
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pgheadroom.errors import InputError, ParameterError
from pgheadroom.forms import Expected, FieldError, Filed, Text, between, in_file, read, unframed
from pgheadroom.ranges import parse_range

LevelValue = str | int
Level = Annotated[LevelValue, Expected("a text or a whole number")]

SCALE_MAX = 100_000
_REPETITIONS_MAX = 10_000  # of merged records; arbitrary
_TRIALS_MAX = 100_000  # of all repetitions: a month of seconds-long ones; arbitrary
TrialCell = dict[str, LevelValue]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """
    Something that an experiment varies, or an option that it takes.

    `default` is None for a factor that takes part only when it is asked for. Integers lie in
    `bounds`; words are one of `words`, or anything when that is empty. Those in `only_by_name` are
    not among what `all` stands for. `form` is a further form that a level may have, a regular
    expression with what it means in words.
    """

    name: str
    description: str
    default: tuple[LevelValue, ...] | None = None
    unit: str | None = None
    bounds: tuple[int, int] | None = None
    words: tuple[str, ...] = ()
    only_by_name: tuple[str, ...] = ()
    form: tuple[str, str] | None = None
    single: bool = False

    def parse(self, text: str) -> tuple[LevelValue, ...]:
        """
        Levels out of `"100,80"`, `"50..100:10"`, `"on,off"`, or `"all"` for every word.

        Raises:
            InputError: An unknown word, a number out of bounds, a level twice, or several values
                for an option.
        """
        levels: list[LevelValue] = []
        # A single value may hold commas: a path, say.
        for part in [text] if self.single else text.split(","):
            levels.extend(self._parse_part(part.strip()))
        if len(set(levels)) != len(levels):
            raise InputError(f"{self.name}={text}: a level is given twice")
        if self.single and len(levels) > 1:
            raise InputError(f"{self.name}={text}: takes one value for the whole run")
        return tuple(levels)

    def _parse_part(self, part: str) -> Iterator[LevelValue]:
        if part == "all" and self.words and not self.single:
            yield from (word for word in self.words if word not in self.only_by_name)
        elif part in self.words:
            yield part
        elif self.bounds is not None and (numbers := parse_range(part, self.bounds)):
            yield from numbers
        elif part and self._is_free_text(part):
            yield part
        else:
            raise InputError(f"{self.name}={part}: expected {self.expected()}")

    def _is_free_text(self, part: str) -> bool:
        if self.form is not None:
            return re.fullmatch(self.form[0], part) is not None
        return not self.words and self.bounds is None

    def expected(self) -> str:
        """What a value may be, in words."""
        parts = []
        if self.words:
            parts.append("one of " + ", ".join(self.words))
        if self.bounds is not None:
            parts.append(f"a whole number from {self.bounds[0]} to {self.bounds[1]}")
        if self.form is not None:
            parts.append(self.form[1])
        return " or ".join(parts) or "some text"


_TIME_UNITS = ("ms", "s", "min", "h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """
    One measured quantity; `better` says which direction is good, if one is.

    `clock` is set where the unit does not tell that a machine's pace decides the value: a share of
    processors, a count of what happens in a window of fixed length.
    """

    name: Text
    description: str = ""
    unit: str | None = None
    evidence: str | None = "measured"
    better: Literal["higher", "lower"] | None = None
    clock: bool | None = field(default=None, metadata=in_file(only=lambda _: False))

    @property
    def is_clock(self) -> bool:
        """Whether values depend on how fast the machine was: a time, a rate, or as `clock` says."""
        if self.clock is not None:
            return self.clock
        return (self.unit or "").rpartition("/")[2] in _TIME_UNITS


_PERCENTILES = {
    "p50": "median",
    "p90": "90th percentile",
    "p99": "99th percentile",
    "max": "largest value",
}


def latency_measures(*names: str, of: str = "the transactions' latency") -> tuple[Measure, ...]:
    """Measures `latency_ms_<name>`; names are p50, p90, p99, max."""
    return tuple(
        Measure(
            name=f"latency_ms_{name}",
            description=f"{_PERCENTILES[name]} of {of}",
            unit="ms",
            better="lower",
        )
        for name in names
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One repetition of one cell; `arm` is `control` for the A/A arm."""

    cell: TrialCell
    repetition: int
    arm: str = "measured"

    @property
    def id(self) -> str:
        """Name that is stable between runs of the same plan, fit for a file name."""
        parts = [f"{name}={value}" for name, value in self.cell.items()]
        text = "_".join([f"r{self.repetition:03d}", self.arm, *parts])
        return re.sub(r"[^A-Za-z0-9_=.-]", "-", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Filed):
    """
    What was asked: everything that determines the plan of a run.

    `server` is for the record: a version, a folder, or a connection without its password.
    """

    KIND = "lab_request"
    VERSION = SCHEMA_VERSION

    experiment: str
    server: str
    scale: Annotated[int, between(0, SCALE_MAX)]
    seed: Annotated[int, between(0, 2**63 - 1)]
    repetitions: Annotated[int, between(0, _REPETITIONS_MAX)]
    levels: Mapping[str, Annotated[tuple[Level, ...], Expected("a list of levels")]]
    options: Mapping[str, Level] = field(default_factory=dict)

    def cells(self) -> list[TrialCell]:
        """Every combination of levels, the first factor varying slowest."""
        names = list(self.levels)
        return [
            dict(zip(names, combination, strict=True))
            for combination in itertools.product(*self.levels.values())
        ]

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Request:
        """
        A request out of `request.json`.

        Raises:
            InputError: A field is missing or of another type, or there are too many trials.
        """
        try:
            made = read(cls, unframed(form))
            cells = math.prod(map(len, made.levels.values()))
            if cells * made.repetitions > _TRIALS_MAX:
                text = f"found {cells} cells {made.repetitions} times, expected at most"
                raise FieldError("levels", f"{text} {_TRIALS_MAX} trials")
        except FieldError as error:
            raise InputError(
                f"a lab request is damaged: {error}; restore the record from a copy"
            ) from error
        return made


def cell_key(cell: Mapping[str, LevelValue]) -> str:
    """A string that identifies a cell, whatever the order of its factors."""
    return json.dumps(cell, sort_keys=True)


def check_request(request: Request, factors: Sequence[Factor], options: Sequence[Factor]) -> None:
    """
    Check a request that came out of a file against what its experiment knows.

    Raises:
        InputError: An unknown or missing factor or option, or a level that it cannot have.
    """
    known = {factor.name: factor for factor in (*factors, *options)}
    given: dict[str, tuple[LevelValue, ...]] = {
        **request.levels,
        **{name: (value,) for name, value in request.options.items() if not name.endswith("_text")},
    }
    missing = [name for name, each in known.items() if each.default and name not in given]
    if missing:
        raise InputError(f"a lab request is damaged: it lacks {', '.join(missing)}")
    for name, levels in given.items():
        if name not in known:
            raise InputError(f"a lab request is damaged: {name!r} is no factor of its experiment")
        for level in levels:
            if known[name].parse(str(level)) != (level,):
                raise InputError(f"a lab request is damaged: {name}={level!r}")


def parse_settings(
    settings: Iterable[str],
    factors: Sequence[Factor],
    options: Sequence[Factor],
    *,
    name: str,
    open_factors: str | None = None,
) -> tuple[dict[str, tuple[LevelValue, ...]], dict[str, LevelValue]]:
    """
    Turn `--set k=v` texts into levels and options, with the defaults for what is not set.

    Args:
        settings: Texts such as `"fillfactor=100,80"`.
        factors: The experiment's factors.
        options: Its options.
        name: The experiment's name, for messages.
        open_factors: What else it takes as a factor, for messages.

    Raises:
        InputError: No `=`, an unknown name (the nearest known is suggested), or a bad value.
    """
    known = {factor.name: factor for factor in (*factors, *options)}
    given: dict[str, tuple[LevelValue, ...]] = {}
    for setting in settings:
        key, separator, text = setting.partition("=")
        if not separator:
            raise ParameterError(
                "set", f"{setting}: expected NAME=VALUE, for example fillfactor=100,80"
            )
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            has = ", ".join(factor.name for factor in factors) or open_factors or "(none)"
            raise ParameterError(
                "set",
                f"{setting}: {name} has no factor or option {key!r}{hint}\n"
                f"It has the factors {has}"
                f" and the options {', '.join(o.name for o in options) or '(none)'}.",
            )
        if key in given:
            raise ParameterError("set", f"{setting}: {key} is set twice; give all levels at once")
        given[key] = known[key].parse(text)
    levels = {
        factor.name: chosen
        for factor in factors
        if (chosen := given.get(factor.name, factor.default)) is not None
    }
    chosen_options = {
        option.name: chosen[0]
        for option in options
        if (chosen := given.get(option.name, option.default)) is not None
    }
    return levels, chosen_options


def interleave(blocks: Sequence[Sequence[Trial]], *, seed: int) -> list[Trial]:
    """
    Order the trials: each block shuffled by the seed, every second one the reverse of the last.

    Args:
        blocks: One sequence of trials a repetition, all with the same cells in the same order.
        seed: Seed of the shuffle.

    Raises:
        ValueError: Blocks of different length.
    """
    ordered: list[Trial] = []
    generator = random.Random(seed)  # noqa: S311 - an order, not a secret
    permutation: list[int] = []
    for block_index, block in enumerate(blocks):
        if block_index % 2 == 0:
            permutation = list(range(len(block)))
            generator.shuffle(permutation)
        else:
            permutation = permutation[::-1]
        if len(permutation) != len(block):
            raise ValueError("blocks of one plan have equal length")
        ordered.extend(block[position] for position in permutation)
    return ordered
