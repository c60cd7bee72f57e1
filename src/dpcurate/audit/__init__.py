"""Privacy audits: lower bounds on what a mechanism really tells, beside what it is charged."""

from dpcurate.audit.pairs import Pair
from dpcurate.audit.run import Audit, Bound, all_controls, audit, audit_published, forecast, power_sentence
from dpcurate.audit.targets import Control, Sampled, Script
from dpcurate.audit.targets import OpenedGate as Gate

__all__ = [
    "Audit",
    "Bound",
    "Control",
    "Gate",
    "Pair",
    "Sampled",
    "Script",
    "all_controls",
    "audit",
    "audit_published",
    "forecast",
    "power_sentence",
]
