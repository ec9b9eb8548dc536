"""
An experiment that compares its cells with a reference cell, by paired ratios.

Blocks are interleaved, the reference has an A/A control, and the summary has a ratio for each cell
and measure that is compared. What is left to an experiment is its declarations, one trial, and the
sentences that are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgheadroom.lab import rounds
from pgheadroom.lab.contrast import blocks, contrast
from pgheadroom.lab.design import Request, Trial, TrialCell
from pgheadroom.lab.experiment import (
    Experiment,
    Summary,
    require_own_server,
    require_wal_counters,
    summarise_cells,
)
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.types import PgVersion


class Comparing(Experiment):
    """Declares what is compared; an experiment overrides what differs."""

    compared: tuple[str, ...]
    """Measures that get a ratio."""
    documents: tuple[Reference, ...] = ()
    """What a document says, as `references` of a result."""
    steps: tuple[str, ...] = ()
    """What one trial goes through, where each is a cell: the levels of the factor `step`."""
    own_server: str | None = None
    """What only a server of ours allows, as `require_own_server` has it; None: any will do."""

    def check(
        self,
        request: Request,  # noqa: ARG002 - for those that look at it
        version: PgVersion,
        *,
        throw_away: bool,
    ) -> None:
        """Refuse a server that does not count its WAL, or is not ours where it has to be."""
        require_wal_counters(version)
        if self.own_server is not None:
            require_own_server(throw_away, self.own_server)

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:  # noqa: ARG002
        """The cell that a cell is compared with: the first level of every factor."""
        return {name: levels[0] for name, levels in request.levels.items()}

    def pairs(self, request: Request) -> list[tuple[TrialCell, TrialCell]]:
        """Cells with what each is compared with; a cell beside itself stands for its control."""
        return [(cell, self.reference(request, cell)) for cell in request.cells()]

    def is_controlled(self, request: Request, cell: TrialCell) -> bool:
        """Whether a cell has a second arm in each block, its A/A control."""
        return cell == self.reference(request, cell)

    def trials(self, request: Request) -> list[Trial]:
        """Interleaved blocks, with a control arm where there is one."""
        cells = rounds.trial_cells(request, "step") if self.steps else None
        return blocks(request, lambda cell: self.is_controlled(request, cell), cells=cells)

    def expand(self, request: Request, samples: Sequence[TrialSample]) -> list[TrialSample]:
        """One sample a step."""
        if not self.steps:
            return list(samples)
        return rounds.asked(request, samples, "step", self.steps)

    def findings(
        self,
        request: Request,  # noqa: ARG002
        cells: Sequence[dict[str, Any]],  # noqa: ARG002
        comparisons: Sequence[ComparedCells],  # noqa: ARG002
    ) -> list[str]:
        """What was found, in sentences."""
        return []

    def warnings(
        self,
        request: Request,  # noqa: ARG002
        samples: Sequence[TrialSample],  # noqa: ARG002
    ) -> list[str]:
        """What a reader has to beware of."""
        return []

    def summarise(
        self,
        request: Request,
        version: PgVersion,  # noqa: ARG002 - for those whose predictions depend on it
        samples: Sequence[TrialSample],
    ) -> Summary:
        """Cells, their ratios to the references, the controls, findings."""
        expanded = self.expand(request, samples)
        cells = summarise_cells(expanded, request.cells(), self.measures)
        found = contrast(
            expanded,
            self.pairs(request),
            self.compared,
            control=lambda against: self.reference(request, against),
        )
        return Summary(
            cells=cells,
            comparisons=found.comparisons,
            controls=found.controls,
            references=list(self.documents),
            findings=self.findings(request, cells, found.comparisons),
            warnings=self.warnings(request, samples),
        )
