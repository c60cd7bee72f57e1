"""Non-private PC against other packages: time, memory, and whether the skeletons are the same.

    python -m benchmarks.peers [--quick] [--networks sachs alarm] [--tools pgmpy] [--seeds 1] [--limit 300]

PC with a G test at 0.01 on 100,000 rows, stable variant everywhere, each run in a process of its own. The
peers live in .venv-peers, made at the first run; the larger networks come from the pgmpy installed there.
What is timed is told in peer_run.py. dpcurate appears three times: from a frame of labels, from the integers
that the peers get (both with opening the curator), and on a curator that is already open.

Figures are printed and a person reads them: machines differ, and skeletons that differ are explained.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.pages.performance import Record
from benchmarks.peer_run import ALPHA, TOOLS
from dpcurate import networks
from dpcurate.networks import SHIPPED, Network

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".venv-peers"
PYTHON = HOME / "bin" / "python"
RUNNER = Path(__file__).with_name("peer_run.py")
# gCastle imports torch but does not declare it; below 2.14 an index with a CPU build is likely to have one.
PACKAGES = ("causal-learn", "pgmpy", "gcastle", "torch<2.14")
LARGER = ("insurance", "alarm", "hailfinder", "hepar2", "win95pts")
QUICK = ("sachs", "child")
PIVOT = "causal-learn"
R_TOOLS = ("bnlearn", "pcalg")
ROWS = 100_000
EXPLAIN = 900
"""Seconds to find out why a skeleton differs."""
GRACE = 120
"""Seconds for imports and for preparing the data, which do not count."""

R_PROGRAM = """
a <- commandArgs(TRUE); library(a[1], character.only = TRUE)
d <- read.csv(a[2], check.names = FALSE, colClasses = "factor"); alpha <- as.numeric(a[3])
if (a[1] == "bnlearn") {
  t <- system.time(g <- pc.stable(d, test = "mi-adf", alpha = alpha)); e <- arcs(skeleton(g))
} else {
  s <- list(dm = data.matrix(d) - 1L, nlev = sapply(d, nlevels), adaptDF = TRUE)
  t <- system.time(g <- pc(s, disCItest, alpha, labels = names(d), skel.method = "stable"))
  m <- as(g@graph, "matrix"); e <- which(m != 0, arr.ind = TRUE); e <- cbind(names(d)[e[, 1]], names(d)[e[, 2]])
}
peak <- as.numeric(gsub("[^0-9]", "", grep("VmHWM", readLines("/proc/self/status"), value = TRUE))) / 1024
pairs <- paste(sprintf('["%s","%s"]', e[, 1], e[, 2]), collapse = ",")
cat(sprintf('{"version":"%s","seconds":%f,"processor":%f,"first_call":%f,"peak_mb":%f,"skeleton":[%s]}\\n',
            packageVersion(a[1]), t[3], t[1] + t[2], t[3], peak, pairs))
"""
"""Not run by the authors: R was not to be had on their machine."""


def install() -> None:
    """Make the peers' environment, once."""
    stamp = HOME / ".installed"
    wanted = "\n".join(PACKAGES)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing {', '.join(PACKAGES)} into {HOME}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    (HOME / ".gitignore").write_text("*\n")
    subprocess.run([str(PYTHON), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    stamp.write_text(wanted)


def load(name: str) -> Network:
    if name in SHIPPED:
        return networks.load(name)
    (path,) = HOME.glob(f"lib/python*/site-packages/pgmpy/utils/example_models/{name}.bif.gz")
    return networks.load(path)


# --- running --------------------------------------------------------------------------------------


def write(folder: Path, network: Network, seed: int) -> None:
    codes = network.codes(ROWS, seed=seed)
    np.save(folder / "codes.npy", codes)
    facts = {"names": network.nodes, "levels": [v.levels for v in network.variables]}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def run(tool: str, folder: Path, limit: float, *more: str) -> Record:
    """What a fresh process says, or why it said nothing."""
    python = sys.executable if tool.startswith("dpcurate") or more else str(PYTHON)
    # -P: this folder holds modules with common names, which must not hide those of a peer.
    return _told([python, "-P", str(RUNNER), tool, str(folder), "--limit", str(limit), *more], limit, limit + GRACE)


def run_r(tool: str, folder: Path, limit: float) -> Record:
    """The same in R, if it is there."""
    if not shutil.which("Rscript"):
        return {"note": "not installed (no Rscript)"}
    found = f'quit(status = !requireNamespace("{tool}", quietly = TRUE))'
    if subprocess.run(["Rscript", "-e", found], capture_output=True).returncode:
        return {"note": "not installed"}
    names = json.loads((folder / "facts.json").read_text(encoding="utf-8"))["names"]
    table = folder / "codes.csv"
    np.savetxt(table, np.load(folder / "codes.npy"), fmt="%d", delimiter=",", header=",".join(names), comments="")
    program = folder / "run.R"
    program.write_text(R_PROGRAM, encoding="utf-8")
    # R sets no alarm of its own, so its limit counts reading too.
    return _told(["Rscript", str(program), tool, str(table), str(ALPHA)], limit, limit)


def _told(command: list[str], limit: float, patience: float) -> Record:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return {"note": f"> {limit:g} s"}
    if done.returncode == -signal.SIGALRM:
        return {"note": f"> {limit:g} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        return {"note": f"failed: {last[:160]}"}
    told: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def compare(name: str, tools: list[str], seed: int, limit: float) -> Iterator[tuple[Record, Record | None]]:
    """Each tool's row, with an account of its difference from causal-learn where there is one."""
    network = load(name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, network, seed)
        pivot: set[frozenset[str]] | None = None
        for tool in sorted(tools, key=lambda t: t != PIVOT):
            told = run_r(tool, folder, limit) if tool in R_TOOLS else run(tool, folder, limit)
            found = {frozenset(e) for e in told["skeleton"]} if "skeleton" in told else None
            pivot = found if tool == PIVOT else pivot
            row = {"network": name, "nodes": len(network.nodes), "seed": seed, "tool": tool, **told}
            row["edges"] = None if found is None else len(found)
            row["same_as_causal_learn"] = None if found is None or pivot is None else found == pivot
            differs = row["same_as_causal_learn"] is False and tool in TOOLS
            yield row, account(row, pivot or set(), folder) if differs else None


def account(row: Record, pivot: set[frozenset[str]], folder: Path) -> Record:
    """Which edges differ, whether the tool's rules give exactly its skeleton, and the tests that decide."""
    found = {frozenset(e) for e in row["skeleton"]}
    told = run(row["tool"], folder, EXPLAIN, "--explain")
    by_rules = None
    if "own" in told:
        by_rules = {frozenset(e) for e in told["own"]} == found and {frozenset(e) for e in told["plain"]} == pivot
    return {
        **{key: row[key] for key in ("network", "seed", "tool")},
        "only_causal_learn": sorted(sorted(e) for e in pivot - found),
        "only_tool": sorted(sorted(e) for e in found - pivot),
        "rules_give_both_skeletons": by_rules,
        "note": told.get("note"),
        "tests": told.get("tests", []),
    }


# --- telling --------------------------------------------------------------------------------------

HEAD = ("network", "nodes", "tool", "version", "seconds", "processor", "first call", "peak MB", "edges", "skeleton")
WIDTHS = (-11, 5, -17, -9, 9, 9, 10, 8, 6, 9)


def line(cells: tuple[str, ...]) -> str:
    return " ".join(f"{c:<{-w}}" if w < 0 else f"{c:>{w}}" for c, w in zip(cells, WIDTHS, strict=True))


def told_row(row: Record) -> str:
    same = {True: "same", False: "differs", None: "?"}[row["same_as_causal_learn"]]
    head = (row["network"], str(row["nodes"]), row["tool"])
    if "note" in row:
        return f"{line((*head, *HEAD[3:]))[:36]}{row['note']}"
    times = [f"{row[key]:.3f}" for key in ("seconds", "processor", "first_call")]
    return line((*head, row["version"], *times, f"{row['peak_mb']:.0f}", str(row["edges"]), same))


def told_account(found: Record) -> Iterator[str]:
    verdict = {True: "its rules give exactly this skeleton", False: "NOT EXPLAINED by its rules", None: found["note"]}
    missing, extra = len(found["only_causal_learn"]), len(found["only_tool"])
    yield f"\n{found['network']}, {found['tool']}: {missing} edges fewer, {extra} more than causal-learn; " + str(
        verdict[found["rules_give_both_skeletons"]]
    )
    for test in found["tests"]:
        edge, given = " - ".join(test["edge"]), ", ".join(test["given"]) or "nothing"
        values = ", ".join(f"{who} {'NaN' if p is None else f'{p:.3g}'}" for who, p in test["p"].items())
        # A tool that would have cut on this test as well never came to it.
        asked = "" if min(p or 0 for p in test["p"].values()) <= ALPHA else "; only one of them asked it"
        yield f"  {edge}: cut by {test['cut_by']} given {given}; p by {values}{asked}"


def ratios(rows: list[Record]) -> Iterator[str]:
    """The figures asked for: at least 10 times causal-learn on Sachs and Child, faster than all on all."""
    timed = [row for row in rows if "seconds" in row]
    ours = [row for row in timed if row["tool"].startswith("dpcurate")]
    others = [row for row in timed if row not in ours]
    for row in ours:
        beside = [
            f"{x['tool']} {x['seconds'] / row['seconds']:.1f} ({x['processor'] / row['processor']:.1f})"
            for x in others
            if (x["network"], x["seed"]) == (row["network"], row["seed"])
        ]
        asked = "; asked: 10 times causal-learn" if row["network"] in QUICK else ""
        if beside:
            yield f"{row['network']}, {row['tool']}: times as fast as {', '.join(beside)}{asked}"


def machine() -> Record:
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
    }


def save(path: Path, found: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine(), **found}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run, print, and write everything to a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}")
    parser.add_argument("--networks", nargs="+", choices=[*SHIPPED, *LARGER], metavar="NAME")
    parser.add_argument("--tools", nargs="+", choices=[*TOOLS, *R_TOOLS], default=[*TOOLS, *R_TOOLS], metavar="TOOL")
    parser.add_argument("--seeds", type=int, default=1, help="how many samples of each network")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a fit")
    parser.add_argument("-o", "--output", type=Path, default=Path("speed/peers.json"))
    given = parser.parse_args()
    install()
    chosen = given.networks or (QUICK if given.quick else [*SHIPPED, *LARGER])
    settings = {"rows": ROWS, "alpha": ALPHA, "limit": given.limit, "seeds": given.seeds}
    rows: list[Record] = []
    accounts: list[Record] = []
    print(line(HEAD), flush=True)
    for name in chosen:
        for seed in range(1, given.seeds + 1):
            for row, found in compare(name, given.tools, seed, given.limit):
                rows.append(row)
                accounts += [found] if found else []
                print(told_row(row), flush=True)
                # After every row: a run takes an hour, and one that is stopped keeps what it has.
                save(given.output, {"settings": settings, "rows": rows, "differences": accounts})
    print(*(text for found in accounts for text in told_account(found)), "", sep="\n")
    print("In wall time, and in brackets in processor time, which other work on the machine disturbs less:")
    print(*ratios(rows), sep="\n")
    print(f"\nwritten: {given.output}")


if __name__ == "__main__":
    main()
