"""For the tests of a kernel's own repository: options, fixtures and a header. Thin, since pytest loads it wherever this
package is installed; everything else is imported when a test asks for it.

A test that takes ``mqa_case`` runs once for each named problem; ``mqa_check(case)`` fails with what ``mqa-ref verify``
would print. docs/pytest.md tells the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mqa_ref.problem import Problem
    from mqa_ref.report import Report
    from mqa_ref.verification.problems import NamedProblem
    from mqa_ref.verification.session import Session

MARKER = "mqa"
ARGUMENTS = ("cases",)
"""What the marker takes."""
_CHOICES = {
    "kernel": (
        "builtin",
        "the kernel under test: builtin, sglang, flashinfer, FILE.py:CLASS or MODULE:CLASS",
    ),
    "on": ("emulator", "where it runs: emulator or cuda"),
    "flow": ("fp32-fp32-fp32", "accumulator, epilogue and output format, or all"),
    "seed": ("0", "of the interleavings random and systematic"),
    "level": ("quick", "which named problems: quick, full or ab"),
    "known": ("", "ledger of known findings, a TOML file"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Each choice is an option, ``--mqa-kernel``, and a line of the configuration file, ``mqa_kernel``."""
    group = parser.getgroup("mqa-ref", "FP8 paged MQA logits kernels")
    for name, (default, told) in _CHOICES.items():
        group.addoption(f"--mqa-{name}", metavar=name.upper(), help=f"{told} (default: {default or 'none'})")
        parser.addini(f"mqa_{name}", told)
    group.addoption("--mqa-case", action="append", metavar="NAME", help="only this problem; may be repeated")
    group.addoption(
        "--mqa-option", action="append", metavar="NAME=VALUE", help="a constructor argument of the kernel"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what is no problem of the level before anything is collected, with every fault."""
    config.addinivalue_line("markers", f"{MARKER}(cases): only these named problems, in place of the level's")
    if config.getoption("mqa_case"):
        known = {case.name for case in _problems(config)}
        unknown = [name for name in config.getoption("mqa_case") if name not in known]
        if unknown:
            raise pytest.UsageError(f"--mqa-case: no problem of this level is called {', '.join(unknown)}")


def chosen(config: pytest.Config, name: str) -> str:
    """What the command line says, else the configuration file, else the default."""
    told = config.getoption(f"mqa_{name}") or config.getini(f"mqa_{name}") or _CHOICES[name][0]
    return str(told)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Kernel, backend, flow and seed, and the hashes of the numbers that decide; only where a kernel is chosen."""
    if not (config.getoption("mqa_kernel") or config.getini("mqa_kernel")):
        return []
    from mqa_ref import __version__

    package = Path(__file__).parent
    tolerances = next(
        path for path in (package / "tolerances.toml", package.parent / "tolerances.toml") if path.is_file()
    )
    told = ", ".join(f"{name} {chosen(config, name)}" for name in ("flow", "level", "seed"))
    return [
        f"mqa-ref {__version__}: kernel {chosen(config, 'kernel')}, backend {chosen(config, 'on')}, {told}",
        f"mqa-ref: tolerances {digest([tolerances])}, goldens {digest((package / 'golden' / 'data').iterdir())}",
    ]


def digest(files: Sequence[Path] | Iterator[Path]) -> str:
    """16 hex digits of the SHA-256 over names and contents of files, in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def _problems(config: pytest.Config) -> tuple[NamedProblem, ...]:
    from mqa_ref.errors import MqaRefError
    from mqa_ref.verification.session import problems

    try:
        return problems(chosen(config, "kernel"), chosen(config, "level"), chosen(config, "flow"))
    except MqaRefError as error:
        raise pytest.UsageError(f"mqa-ref: {error}") from error


def _marked(definition: Any, known: Sequence[str]) -> list[str]:
    """The problems that a test's marker names; all of them without one. A name or an argument that is none is an
    error."""
    markers = list(definition.iter_markers(MARKER))
    names = [name for marker in markers for name in marker.kwargs.get("cases", ())]
    faults = [f"takes {', '.join(ARGUMENTS)} by name" for marker in markers if marker.args]
    faults += [
        f"has no argument {word}" for marker in markers for word in marker.kwargs if word not in ARGUMENTS
    ]
    faults += [f"no problem of this level is called {name}" for name in names if name not in known]
    if faults:
        raise pytest.UsageError(f"{definition.nodeid}: marker {MARKER}: {'; '.join(faults)}")
    return names or list(known)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``mqa_case`` is each problem in turn, with its name as the id."""
    if "mqa_case" not in metafunc.fixturenames:
        return
    cases = {case.name: case for case in _problems(metafunc.config)}
    wanted = _marked(metafunc.definition, list(cases))
    asked = metafunc.config.getoption("mqa_case")
    names = [name for name in wanted if not asked or name in asked]
    metafunc.parametrize("mqa_case", [cases[name] for name in names], ids=names)


class FaultItem(pytest.Item):
    """A test that fails with what is wrong with the collection: a worker of xdist can tell it in no other way."""

    faults: tuple[str, ...] = ()

    def runtest(self) -> None:
        """Fail."""
        pytest.fail("\n".join(self.faults), pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        """No file of anybody's."""
        return self.path, None, self.name


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """A marker that looks like this plugin's and is not, and a problem that was asked for and that no test runs, are
    errors: either means that something is not tested that somebody thinks is. Looked at before anything is deselected.
    """
    faults = [
        f"{item.nodeid}: there is no marker {marker.name}"
        for item in items
        for marker in item.iter_markers()
        if marker.name.startswith(f"{MARKER}_")
    ]
    ran = {case.name for item in items if (case := _params(item).get("mqa_case")) is not None}
    asked = config.getoption("mqa_case") or []
    faults += [f"--mqa-case {name}: no test that was collected runs it" for name in asked if name not in ran]
    yield
    if faults:
        item: FaultItem = FaultItem.from_parent(session, name="mqa-ref")
        item.faults = tuple(dict.fromkeys(faults))
        items.append(item)


def _params(item: pytest.Item) -> dict[str, Any]:
    params = dict(getattr(getattr(item, "callspec", None), "params", {}))
    return {name: value for name, value in params.items() if hasattr(value, "problem")}


@pytest.fixture(scope="session")
def mqa_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """One kernel on one backend, compiled and launched in one process for all tests of this pytest worker."""
    from mqa_ref.cli.selectors import options_of
    from mqa_ref.verification.session import Session

    config = request.config
    given = {name: chosen(config, name) for name in ("kernel", "on", "flow", "level")}
    known = chosen(config, "known")
    with Session(
        **given,
        seed=int(chosen(config, "seed")),
        known=config.rootpath / known if known else None,
        options=options_of(config.getoption("mqa_option") or ()),
    ) as session:
        yield session


@pytest.fixture
def mqa_verify(mqa_session: Session) -> Callable[..., Report]:
    """``mqa_verify(problem)``: the report of one problem, or of several, on the chosen kernel."""
    return mqa_session.verify


@pytest.fixture
def mqa_check(mqa_session: Session) -> Callable[[Problem | NamedProblem], Report]:
    """``mqa_check(problem)``: fails the test with the report's text unless every bit is right and nothing was found;
    skips it when the kernel says that it does not serve the problem."""

    def check(problem: Problem | NamedProblem) -> Report:
        report = mqa_session.verify(problem)
        statuses = {case.status for case in report.case_list}
        if statuses == {"unsupported"}:
            pytest.skip(report.case_list[0].message)
        if report.status != "pass" or "unsupported" in statuses:
            pytest.fail(mqa_session.text(report), pytrace=False)
        return report

    return check
