"""Mutates the Python of some modules and says of every mutant which test notices it.

    OPENBLAS_NUM_THREADS=1 python tools/mutate_python --out found.jsonl mqa_ref/compare mqa_ref/numerics \\
        -- tests/compare tests/numerics tests/meta/test_comparator_fails.py
    python tools/mutate_python --table found.jsonl

The mutants are those of mutmut, and what mutmut leaves out: decorated functions (properties) and the code of modules
and classes. The tests are collected once. A first child runs them all and notes how long each takes and which functions
it reaches; then every mutant of a function gets a child of its own, forked from the process that has collected: the
function's code object is replaced, and the tests that reach it are run, those that caught something there before first,
then quick ones, to the first failure. What changes when modules are imported (module code, and functions called by it)
gets a child that imports the package anew.

Hypothesis draws from a fixed seed and does not shrink. A test that takes ten times as long as it should is a time-out,
which counts as caught. Every outcome is a line of JSON in ``--out``, and what is there is not run again. The tree must
not change meanwhile: run it in a copy. ``--table`` holds survivors against docs/mutmut-survivors.toml; exit status 1
when one has no entry.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from judge import OPTIONS, Judge
from outcomes import table

PRELOADED = "numpy,ml_dtypes,gmpy2,hypothesis,pydantic,pytest"
LEDGER = Path("docs/mutmut-survivors.toml")


def main() -> int:
    """Collect, measure, mutate; or tell what was found."""
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given = _parser().parse_args(sys.argv[1:cut])
    if given.table:
        told, open_ones = table(given.table, LEDGER)
        print(told)
        for mutant in open_ones:
            print(json.dumps({name: mutant[name] for name in ("id", "outcome", "tests", "of")}))
        return int(bool(open_ones))
    if given.out is None or not given.paths:
        raise SystemExit("modules and --out, or --table")
    given.files = [
        file for path in given.paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    given.roots = tuple(str(Path.cwd() / path) for path in given.paths)
    given.profile = given.profile or given.out.with_suffix(".profile.json")
    os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    for name in given.preload.split(","):
        importlib.import_module(name)
    import pytest

    return int(pytest.main([*OPTIONS, *sys.argv[cut + 1 :]], plugins=[Judge(given)]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", type=Path, nargs="*", help="modules, or folders of modules")
    parser.add_argument("--out", type=Path, help="outcomes, a line of JSON each")
    parser.add_argument(
        "--but", type=Path, nargs="*", default=[], help="outcomes: what was caught there is left out"
    )
    parser.add_argument(
        "--profile", type=Path, help="times and reach of the tests; measured when it is not there"
    )
    parser.add_argument("--budget", type=float, default=1e9, help="seconds of tests a mutant may take")
    parser.add_argument("--quick", action="store_true", help="leave out what takes an import of its own")
    parser.add_argument("--preload", default=PRELOADED, help="imported before anything is forked")
    parser.add_argument("--table", type=Path, nargs="+", help="outcomes to tell, of one run or of several")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
