"""The package's front door: cheap to import, and its public names are what they should be."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mqa_ref
from mqa_ref.problem import Problem
from mqa_ref.verification.verify import verify

ROOT = Path(mqa_ref.__file__).parent


def test_importing_it_loads_nothing_else() -> None:
    heavy = "{'numpy', 'cutlass', 'torch', 'llvmlite', 'click'}"
    program = f"import sys, mqa_ref; print(sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names() -> None:
    assert mqa_ref.Problem is Problem
    assert mqa_ref.verify is verify
    assert inspect.isfunction(mqa_ref.verify)
    assert inspect.isfunction(mqa_ref.reference_logits)
    assert str(mqa_ref.Flow.parse("fp32-fp32-fp32")) == "fp32-fp32-fp32"
    assert set(mqa_ref.__all__) <= set(dir(mqa_ref))
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", mqa_ref.__version__)


def test_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = mqa_ref.nope


def test_every_module_says_what_it_is_and_stays_short() -> None:
    modules = sorted(ROOT.rglob("*.py"))
    assert len(modules) > 50
    for path in modules:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""'), path
        assert len(text.splitlines()) <= 300, path
