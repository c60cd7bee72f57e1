"""Methods of private causal discovery compared on tables whose true graph is known.

    from dpcurate import benchmark
    print(benchmark.compare(methods=["auto", "em-pc"], worlds=["cancer"], epsilons=[1.0], rows=20_000, seeds=2))

`benchmark_worlds` draws tables, `candidates` has what is compared, `measure` does one run, `method_comparison` all of
them, kept in a file (`run_file`), and prints means. A method of one's own is a recipe, or a `RowMethod`:
docs/benchmark.md.
"""

from dpcurate.benchmark.benchmark_worlds import FAMILIES, Case
from dpcurate.benchmark.candidates import Candidate, Guarantee, RowMethod, candidates
from dpcurate.benchmark.measure import Run
from dpcurate.benchmark.method_comparison import Comparison, compare
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.orient import orient
from dpcurate.result.fit import FitResult

__all__ = [
    "FAMILIES", "Candidate", "Case", "Comparison", "FitResult", "Guarantee", "RowMethod", "Run", "Skeleton",
    "candidates", "compare", "orient",
]  # fmt: skip
