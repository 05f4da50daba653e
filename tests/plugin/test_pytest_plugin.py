"""The pytest plugin in the tests of another repository: each test here runs pytest there, in a process of its own."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mqa_ref
from mqa_ref.kernel.contract import CALL, CONSTRUCTOR
from mqa_ref.pytest_plugin import digest

pytest_plugins = ["pytester"]

CHECK = "def test_bits(mqa_case, mqa_check):\n    mqa_check(mqa_case)\n"
KERNEL = f"""
from mqa_ref.errors import Unsupported


class Kernel:
    def __init__(self, {", ".join(CONSTRUCTOR)}):
        {{body}}

    def __call__(self, {", ".join(CALL)}):
        pass
"""
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def there(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest with the plugin on the files given as ``name=text``."""
    monkeypatch.setenv("PYTHONPATH", str(Path(mqa_ref.__file__).parents[1]))

    def run(*arguments: str, **files: str) -> pytest.RunResult:
        pytester.makepyfile(**files)
        return pytester.runpytest_subprocess("-p", "mqa_ref.pytest_plugin", *arguments)

    return run


def test_it_costs_nothing_where_nobody_asks(there: Run) -> None:
    """Loading it imports pytest alone, and the header of a repository without a kernel is as it was."""
    heavy = "{'numpy', 'cutlass', 'torch', 'llvmlite', 'click'}"
    program = f"import sys, mqa_ref.pytest_plugin; print(sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    told = there(test_a="def test_a():\n    pass\n")
    assert told.ret == 0
    lines = [line for line in told.stdout.str().splitlines() if not line.startswith("plugins: ")]
    assert "mqa-ref" not in "\n".join(lines)


def test_named_problems_of_the_builtin_kernel_pass_under_xdist(there: Run) -> None:
    line = [
        "--mqa-kernel",
        "builtin",
        "--mqa-case",
        "one-token",
        "--mqa-case",
        "small-pages",
        "-n",
        "2",
        "-v",
    ]
    told = there(*line, test_a=CHECK)
    told.assert_outcomes(passed=2)
    told.stdout.fnmatch_lines(
        ["*mqa-ref*: kernel builtin, backend emulator, flow fp32-fp32-fp32, level quick, seed 0"]
    )
    assert {"one-token", "small-pages"} == set(re.findall(r"test_bits\[([\w-]+)\]", told.stdout.str()))


def test_the_header_has_the_hashes_of_what_decides(there: Run, tmp_path: Path) -> None:
    told = there("--mqa-kernel", "sglang", "--mqa-seed", "7", test_a="def test_a():\n    pass\n").stdout.str()
    (tolerances,), (goldens,) = (
        re.findall(rf"{word} (\w{{16}})\b", told) for word in ("tolerances", "goldens")
    )
    root = Path(mqa_ref.__file__).parents[1]
    assert tolerances == digest([root / "tolerances.toml"])
    assert goldens == digest((root / "mqa_ref" / "golden" / "data").iterdir())
    assert "kernel sglang" in told
    assert "seed 7" in told
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    total = hashlib.sha256(
        b"".join(n + b"\0" + hashlib.sha256(c).digest() for n, c in ((b"a", b"1"), (b"b", b"2")))
    )
    assert digest(tmp_path.iterdir()) == total.hexdigest()[:16]


def test_the_configuration_file_chooses_too_and_the_command_line_wins(
    there: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nmqa_kernel = kernel.py:Kernel\nmqa_flow = fp32-fp16-bf16\n")
    text = "def test_a(mqa_session):\n    print(vars(mqa_session))\n"
    told = there(
        "-s", "--mqa-flow", "fp16-fp16-fp16", test_a=text, kernel=KERNEL.format(body="pass")
    ).stdout.str()
    assert "kernel kernel.py:Kernel" in told
    assert "'flow': 'fp16-fp16-fp16'" in told


def test_a_kernel_that_fails_shows_what_verify_shows(there: Run) -> None:
    kernel = KERNEL.format(body="raise RuntimeError('a bad day')")
    told = there("--mqa-kernel", "kernel.py:Kernel", "--mqa-case", "one-token", test_a=CHECK, kernel=kernel)
    told.assert_outcomes(failed=1)
    text = told.stdout.str()
    assert "RuntimeError: a bad day" in text
    assert "REPRO: mqa-ref verify --kernel kernel.py:Kernel" in text


def test_a_problem_that_the_kernel_does_not_serve_is_skipped_with_its_reason(there: Run) -> None:
    kernel = KERNEL.format(body="raise Unsupported('heads come in dozens')")
    line = ["--mqa-kernel", "kernel.py:Kernel", "--mqa-case", "one-token", "-rs"]
    told = there(*line, test_a=CHECK, kernel=kernel)
    told.assert_outcomes(skipped=1)
    assert "heads come in dozens" in told.stdout.str()


ERRORS = {
    "a problem that is none": (["--mqa-case", "nope"], CHECK, "no problem of this level is called nope"),
    "a flow that is none": (["--mqa-flow", "fp8"], CHECK, "fp8"),
    "a level that is none": (["--mqa-level", "slow"], CHECK, "slow"),
    "a marker that is none": (
        ["--mqa-case", "one-token"],
        "import pytest\n@pytest.mark.mqa_slow\n" + CHECK,
        "there is no marker mqa_slow",
    ),
    "an argument that is none": (
        [],
        "import pytest\n@pytest.mark.mqa(case='x')\n" + CHECK,
        "has no argument case",
    ),
    "a marked problem that is none": (
        [],
        "import pytest\n@pytest.mark.mqa(cases=['nope'])\n" + CHECK,
        "no problem of this level is called nope",
    ),
    "a problem that no test runs": (
        ["--mqa-case", "one-token"],
        "import pytest\n@pytest.mark.mqa(cases=['long'])\n" + CHECK,
        "no test that was collected runs it",
    ),
}


@pytest.mark.parametrize(
    ("name", "workers"),
    [*((name, "0") for name in ERRORS), ("a marker that is none", "1"), ("a problem that no test runs", "1")],
)
def test_what_would_hide_something_is_an_error(there: Run, name: str, workers: str) -> None:
    line, text, message = ERRORS[name]
    told = there(*line, "-n", workers, test_a=text)
    assert told.ret not in (0, 5)
    assert message in told.stdout.str() + told.stderr.str()


def test_a_marker_chooses_problems(there: Run) -> None:
    text = "import pytest\n@pytest.mark.mqa(cases=['long', 'one-token'])\n" + CHECK
    told = there("--collect-only", "-q", test_a=text).stdout.str()
    assert re.findall(r"test_bits\[([\w-]+)\]", told) == ["long", "one-token"]
    assert len(re.findall(r"test_bits\[", there("--collect-only", "-q", test_a=CHECK).stdout.str())) > 20


def test_a_problem_of_ones_own(there: Run) -> None:
    text = """
        from mqa_ref.verification.given import given

        def test_own(mqa_verify):
            report = mqa_verify(given([5], num_sms=1, heads=16), orders=["eager"])
            assert (report.status, report.logits) == ("pass", 5)
    """
    there(test_a=text).assert_outcomes(passed=1)
