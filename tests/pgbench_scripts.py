"""
pgbench's random numbers and its scripts' backslash commands, in Python: what a script draws.

Source: src/bin/pgbench/pgbench.c, exprparse.y and src/common/pg_prng.c (REL_18_STABLE).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

_BITS = 2**64 - 1
_TOKEN = re.compile(r"\s*(:?[a-z]\w*|\d+\.\d+(?:e[+-]?\d+)?|\d+(?:e[+-]?\d+)?|<=|[-+*/%(),<>=])")


class Prng:
    """xoroshiro128**, seeded by splitmix64."""

    def __init__(self, seed: int) -> None:
        self._state = []
        for n in (1, 2):
            value = (seed + n * 0x9E3779B97F4A7C15) & _BITS
            value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
            value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _BITS
            self._state.append(value ^ (value >> 31))

    def bits(self) -> int:
        """The next 64 bits."""
        s0, s1 = self._state
        mixed = s0 ^ s1
        value = (_left(s0 * 5 & _BITS, 7) * 9) & _BITS
        self._state = [_left(s0, 24) ^ mixed ^ (mixed << 16 & _BITS), _left(mixed, 37)]
        return value

    def random(self, low: int, high: int) -> int:
        """Evenly, both ends included."""
        assert low <= high, f"pgbench refuses random({low}, {high})"
        if low == high:
            return low
        size = (high - low).bit_length()
        while (value := self.bits() >> (64 - size)) > high - low:
            pass
        return low + value

    def fraction(self) -> float:
        """Below 1, of 52 bits."""
        return (self.bits() >> 12) / 2**52

    def random_gaussian(self, low: int, high: int, parameter: float) -> int:
        """Most in the middle."""
        assert low <= high
        while True:
            radius, angle = 1 - self.fraction(), 1 - self.fraction()
            normal = math.sqrt(-2 * math.log(radius)) * math.sin(2 * math.pi * angle)
            if -parameter <= normal < parameter:
                return low + int((high - low + 1) * ((normal + parameter) / (parameter * 2)))

    def random_zipfian(self, low: int, high: int, theta: float) -> int:
        """Most at the lower end."""
        assert low <= high
        count = high - low + 1
        if count <= 1:
            return low
        b = 2.0 ** (theta - 1)
        while True:
            u, v = self.fraction(), self.fraction()
            try:
                x = math.floor(u ** (-1 / (theta - 1)))
            except (OverflowError, ZeroDivisionError):
                continue  # without end: not below the count
            t = (1 + 1 / x) ** (theta - 1)
            if v * x * (t - 1) / (b - 1) <= t / b and x <= count:
                return low - 1 + int(x)


def _left(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _BITS


def permute(value: int, size: int, seed: int) -> int:
    """A bijection of 0 to size - 1."""
    if size < 2:
        return 0
    state, v, length = Prng(seed), value % size, size.bit_length() - 1
    mask = 2**length - 1

    def scramble(v: int, multiplier: int, flips: int) -> int:
        v = (v * multiplier ^ flips) & mask
        return (v << 1 & mask) | (v >> (length - 1))

    for _ in range(6):
        multiplier, flips = (state.bits() & mask) | 1, state.bits() & mask
        v = scramble(v, multiplier, flips) if v <= mask else v
        multiplier, flips = (state.bits() & mask) | 1, state.bits() & mask
        end = size - 1 - v
        v = size - 1 - scramble(end, multiplier, flips) if end <= mask else v
        v = (v + state.random(0, size - 1)) % size
    return v


Variables = MutableMapping[str, Any]
Evaluate = Callable[[], Any]


class _Expression:
    """One expression, evaluated as pgbench does: of a CASE only the branch that is taken."""

    def __init__(self, text: str, variables: Variables, prng: Prng) -> None:
        self._tokens = _TOKEN.findall(text)
        assert "".join(self._tokens) == re.sub(r"\s", "", text), f"not understood: {text}"
        self._variables, self._prng = variables, prng

    def value(self) -> Any:
        """Its value; draws what it draws."""
        found = self._compared()
        assert not self._tokens, f"left over: {self._tokens}"
        return found()

    def _next(self, *wanted: str) -> bool:
        if self._tokens and self._tokens[0] in wanted:
            del self._tokens[0]
            return True
        return False

    def _compared(self) -> Evaluate:
        left = self._sum()
        for name, apply in (
            ("<=", lambda a, b: a <= b),
            ("<", lambda a, b: a < b),
            (">", lambda a, b: a > b),
            ("=", lambda a, b: a == b),
        ):
            if self._next(name):
                right = self._sum()
                return lambda: apply(left(), right())
        return left

    def _sum(self) -> Evaluate:
        made = self._product()
        while self._tokens and self._tokens[0] in "+-":
            sign = 1 if self._tokens.pop(0) == "+" else -1
            made = _apply(lambda a, b, sign=sign: a + sign * b, made, self._product())
        return made

    def _product(self) -> Evaluate:
        made = self._atom()
        while self._tokens and self._tokens[0] in "*/%":
            operator = {"*": lambda a, b: a * b, "/": _quotient, "%": math.fmod}
            apply = operator[self._tokens.pop(0)]
            made = _apply(lambda a, b, apply=apply: int(apply(a, b)), made, self._atom())
        return made

    def _atom(self) -> Evaluate:
        if self._next("-"):
            of = self._atom()
            return lambda: -of()
        if self._next("("):
            made = self._compared()
            assert self._next(")")
            return made
        if self._next("case"):
            return self._case()
        token = self._tokens.pop(0)
        if token.startswith(":"):
            return lambda: self._variables[token[1:]]
        if token[0].isalpha():
            return self._call(token)
        number = float(token) if set(token) & {".", "e"} else int(token)
        return lambda: number

    def _case(self) -> Evaluate:
        branches = []
        while self._next("when"):
            condition = self._compared()
            assert self._next("then")
            branches.append((condition, self._compared()))
        assert self._next("else")
        otherwise = self._compared()
        assert self._next("end")

        def value() -> Any:
            taken = next((of for holds, of in branches if holds()), otherwise)
            return taken()

        return value

    def _call(self, name: str) -> Evaluate:
        assert self._next("(")
        arguments = [self._compared()]
        while self._next(","):
            arguments.append(self._compared())
        assert self._next(")")
        function = permute if name == "permute" else getattr(self._prng, name)
        return lambda: function(*(argument() for argument in arguments))


def _apply(function: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda: function(left(), right())


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def run(script: str, variables: Variables, prng: Prng) -> Iterator[str]:
    r"""Carry out a script's \set and \if; gives the SQL that is sent."""
    skips: list[bool] = []
    for line in script.splitlines():
        command, _, rest = line.partition(" ")
        if command == "\\if":
            skips.append(any(skips) or not _Expression(rest, variables, prng).value())
        elif command == "\\else":
            outer = any(skips[:-1])
            skips[-1] = outer or not skips[-1]
        elif command == "\\endif":
            skips.pop()
        elif any(skips):
            continue
        elif command == "\\set":
            name, _, text = rest.partition(" ")
            variables[name] = _Expression(text, variables, prng).value()
        else:
            yield line


class Chooser:
    """The generators of `--random-seed` with `-j 1`: one a client, and the choice of scripts."""

    def __init__(self, seed: int, clients: int) -> None:
        base = Prng(seed)
        self.clients = [Prng(base.bits()) for _ in range(clients)]
        base.bits()  # :default_seed
        self._choice = Prng(base.bits())

    def choose(self, weights: list[int]) -> int:
        """The number of the next script."""
        if len(weights) == 1:
            return 0
        left = self._choice.random(0, sum(weights) - 1)
        for n, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return n
        raise AssertionError("the draw is below the sum")
