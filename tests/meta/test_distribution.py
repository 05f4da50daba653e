"""The wheel has what a user needs and nothing of the tests; the project's own files agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import mqa_ref

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, made by the build backend that is installed."""
    folder = tmp_path_factory.mktemp("dist")
    line = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--sdist",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_what_is_in_the_wheel(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        told = Parser().parsestr(archive.read(metadata).decode())
        (points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        entry_points = archive.read(points).decode()
    package = {
        f"mqa_ref/{path.relative_to(ROOT / 'mqa_ref').as_posix()}"
        for path in (ROOT / "mqa_ref").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert package <= names
    for needed in (
        "mqa_ref/py.typed",
        "mqa_ref/tolerances.toml",
        "mqa_ref/report/schema/report-1.json",
        "mqa_ref/report/templates/report.html.j2",
        "mqa_ref/kernel/sm100.py",
        "mqa_ref/golden/silicon/data/programs.safetensors",
    ):
        assert needed in names
    assert (
        sum(name.startswith("mqa_ref/golden/data/") and name.endswith(".safetensors") for name in names)
        == 110
    )
    others = {name for name in names if not name.startswith("mqa_ref/") and ".dist-info/" not in name}
    assert others == set()
    assert (told["Name"], told["Version"]) == ("mqa-ref", mqa_ref.__version__)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "mqa-ref = mqa_ref.cli:main" in entry_points
    assert "mqa_ref.pytest_plugin = mqa_ref.pytest_plugin" in entry_points


def test_what_is_in_the_sdist(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "LICENSE",
        "constraints.txt",
        "tolerances.toml",
        "dev",
    ):
        assert needed in names
    for needed in (
        "docs/tutorial.md",
        "mkdocs.yml",
        "tests/meta/test_distribution.py",
        "examples/kernel-repository/kernel.py",
    ):
        assert needed in names
    assert not any(name.startswith((".git/", "site/", "dist/")) or name.endswith(".pyc") for name in names)


def names_of(requirements: list[str]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {match[0].lower().replace("_", "-") for match in found if match}


def test_every_requirement_is_pinned() -> None:
    """Those that CI installs: the runtime's, the developer's, and the packages of which only files are read."""
    pins = names_of([line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line])
    wanted = names_of(PROJECT["dependencies"]) | names_of(PROJECT["optional-dependencies"]["dev"])
    bare = re.search(r"^BARE = \[(.*)\]$", (ROOT / "dev").read_text(), re.MULTILINE)
    assert bare is not None
    wanted |= set(re.findall(r'"([^"]+)"', bare[1]))
    assert wanted <= pins, sorted(wanted - pins)


def test_the_developer_has_every_extra() -> None:
    """So that CI runs what each extra is for; what only a GPU uses, and what is read from a file, apart."""
    extras = PROJECT["optional-dependencies"]
    dev = names_of(extras["dev"])
    bare = {"sgl-deep-gemm"}
    for name, requirements in extras.items():
        assert names_of(requirements) - bare - {"cuda-python"} <= dev, name


def test_the_readme_names_every_extra() -> None:
    text = (ROOT / "README.md").read_text()
    assert all(
        f"`{name}`" in text or f"[{name}]" in text
        for name in PROJECT["optional-dependencies"]
        if name != "dev"
    )
