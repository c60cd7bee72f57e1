"""What a question was answered with: tables of estimates, what they cost, and who asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dpcurate._files import NO_INPUTS, Inputs, check_suffix, save_text
from dpcurate._messages import printable
from dpcurate.accounting import Privacy
from dpcurate.graphs.formats.jsontext import one_a_line
from dpcurate.queries import Estimates
from dpcurate.result.run_record import RunRecord

NEW_LINE = "\n"


@dataclass(frozen=True)
class Asked:
    """What came back: a table (of Tables several), what it cost, and the run that the ledger logs."""

    SUFFIXES: ClassVar[tuple[str, ...]] = (".csv", ".json", ".txt")
    """Of the files that `report` writes."""
    tables: tuple[Estimates, ...]
    privacy: Privacy
    run: RunRecord
    inputs: Inputs = field(default=NO_INPUTS, repr=False, compare=False)

    def __str__(self) -> str:
        return printable("\n\n".join([*map(str, self.tables), str(self.privacy)]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the first table with matplotlib, with error bars; returns the axes."""
        return self.tables[0].plot(ax)

    def to_csv(self) -> str:
        """The tables, one after the other."""
        return "\n".join(table.to_csv() for table in self.tables)

    def to_json(self) -> str:
        """Everything public: tables, privacy, and who asked what for."""
        p = self.privacy
        told = {"private": p.private, "statement": str(p), "neighbours": p.neighbours, "unit": p.unit}
        return one_a_line({"tables": [t.to_dict() for t in self.tables], "privacy": told, "run": self.run.to_dict()})

    def report(self, path: str | Path) -> Path:
        """Write it; the suffix says how: .csv, .json or .txt."""
        save_text(path, self.report_text(path), self.inputs)
        return Path(path)

    def report_text(self, path: str | Path) -> str:
        """What `report` writes to a file of this name."""
        suffix = check_suffix(path, self.SUFFIXES).suffix.lower()
        text = {".csv": self.to_csv, ".json": self.to_json, ".txt": self.__str__}[suffix]()
        return f"{text.rstrip(NEW_LINE)}{NEW_LINE}"
