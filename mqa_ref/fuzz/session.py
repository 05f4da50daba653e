"""A process's part in a campaign: the kernel, loaded once, and the judging of one description or one case."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from mqa_ref.cuda.launch import Settings
from mqa_ref.errors import Unsupported
from mqa_ref.fuzz.bugs import BUGS
from mqa_ref.fuzz.campaign import PROCESS_DIED, Campaign, Found, declared_by
from mqa_ref.fuzz.casefile import Case, description_text, encode_case
from mqa_ref.fuzz.coverpoints import hits
from mqa_ref.fuzz.description import Description, expand
from mqa_ref.fuzz.edits import write_kernel
from mqa_ref.fuzz.model import NAME, reference_launch
from mqa_ref.fuzz.properties import PROPERTIES, Outcome, examine
from mqa_ref.fuzz.subject import Subject
from mqa_ref.fuzz.trial import Failure, Trial
from mqa_ref.kernel.targets import resolve
from mqa_ref.reference import SUM_ORDERS, own_order_bounds, reference_logits
from mqa_ref.verification.ledger import Ledger
from mqa_ref.verification.runner import Launcher, launcher
from mqa_ref.verification.worker import Limits


@dataclass(frozen=True)
class Judged:
    """An example with its outcome. ``covered``: the coverpoints it met."""

    subject: Subject
    outcome: Outcome
    launches: int
    logits: int
    covered: tuple[str, ...] = field(default=(), repr=False)


class Session(AbstractContextManager["Session"]):
    """Judges examples of one campaign. ``launch``: in place of the campaign's kernel (tests, mutants)."""

    def __init__(self, campaign: Campaign, launch: Launcher | None = None) -> None:
        self.campaign = campaign
        self.ledger = _anywhere(campaign.known) if campaign.known else None
        self._stack = ExitStack()
        self._launch = launch

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def launch(self) -> Launcher:
        """The kernel's launcher, opened when first needed."""
        if self._launch is None:
            campaign = self.campaign
            limits = Limits(campaign.seconds, campaign.memory_bytes)
            made: Launcher = reference_launch
            if campaign.kernel != NAME:
                native = Settings() if campaign.backend == "cuda" else None
                made = self._stack.enter_context(launcher(resolve(self._source()), limits, native))
            if campaign.bug:
                made = BUGS[campaign.bug].wrap(made)
            self._launch = made
        return self._launch

    def _source(self) -> str:
        """The name of what is launched: the campaign's kernel, or a copy of the builtin one with a bug in it."""
        campaign = self.campaign
        faults = BUGS[campaign.bug].source if campaign.bug else ()
        if not faults:
            return campaign.kernel
        folder = self._stack.enter_context(TemporaryDirectory(prefix="mqa-bug-"))
        return write_kernel(Path(folder), faults)

    def judge(self, description: Description, *, brief: bool = False) -> Judged:
        """Expand, launch, and check; ``brief``: see ``Trial``. Raises NotAvailable and OracleError as they come."""
        return self.judge_subject(subject_of(description), description.check, label_of(description), brief)

    def judge_subject(self, subject: Subject, check: str, label: str, brief: bool = False) -> Judged:
        """The same for a launch that is already there."""
        campaign = self.campaign
        try:
            subject = self._scheduled(subject)
        except Unsupported as error:
            return Judged(subject, Outcome(unsupported=str(error)), 0, 0)
        sums: Any = declared_by(campaign.kernel).order or SUM_ORDERS[0]
        trial = Trial(
            *(
                self.launch,
                subject,
                campaign.kernel,
                campaign.machine,
                _generation(campaign),
                self.ledger,
                brief,
            ),
            sums=sums,
        )
        outcome = examine(trial, check, label)
        return Judged(subject, outcome, trial.launches, trial.logits, hits(subject))

    def _scheduled(self, subject: Subject) -> Subject:
        """The launch with the schedule that the kernel is really given: some compute their own."""
        if self.campaign.kernel == NAME:
            return subject
        target = resolve(self.campaign.kernel)
        return subject if target.raw is None else replace(subject, problem=target.scheduled(subject.problem))

    def fatal(self, description: Description, message: str) -> Judged:
        """The outcome of an example that ended a process: it is not run."""
        promise, kind = PROCESS_DIED.split(":")
        failure = Failure(promise, kind, message)
        return Judged(subject_of(description), Outcome((failure,)), 0, 0)

    def found(self, description: Description, judged: Judged, block: int, number: int) -> list[Found]:
        """The failures of an example, each with its case file."""
        plain = description.as_plain()
        told = []
        for failure in judged.outcome.failures:
            case = self.case(description, judged.subject, failure.name, failure.message)
            data = encode_case(case)
            told.append(Found(failure.name, failure.message, block, number, plain, data, case.file_name))
        return told

    def case(self, description: Description, subject: Subject, name: str, message: str) -> Case:
        """The case of a failure."""
        campaign = self.campaign
        return Case(
            subject,
            check=description.check,
            label=label_of(description),
            machine=campaign.machine,
            generation=_generation(campaign),
            kernel=campaign.kernel,
            failure=name,
            message=message.encode("ascii", "replace").decode()[:1000],
            description=description_text(description.as_plain()),
        )


def _anywhere(text: str) -> Ledger:
    """A ledger in JSON, for launches that have no names: an entry's ``cases`` say which of the named problems must show
    it, not that no other launch may. Cases that are properties stay: what is known of stale schedules is known of no
    other launch."""
    ledger = Ledger.model_validate_json(text)
    known = [
        one if one.cases and any(map(one.in_case, PROPERTIES)) else one.model_copy(update={"cases": []})
        for one in ledger.known
    ]
    return Ledger(known=known)


def subject_of(description: Description) -> Subject:
    """The launch of a description."""
    return Subject(
        expand(description),
        description.flow,
        dict(description.shape.options),
        description.interleaving,
        description.interleaving_seed,
    )


def label_of(description: Description) -> str:
    """The label that chooses the variant of its property."""
    return f"check/{description.check_seed}"


def ratio_of(subject: Subject, campaign: Campaign) -> float:
    """The greatest error of a right logit as a share of its bound: of the launch alone, whatever the kernel does, so
    that what it steers is the same for every kernel."""
    generation = _generation(campaign)
    arguments: Any = (subject.problem, subject.flow, campaign.machine)
    bits, _ = reference_logits(*arguments, generation=generation)
    bounds = own_order_bounds(*arguments, generation=generation)
    return float(bounds.ratios(bits, subject.flow.out).max(initial=0.0))


def _generation(campaign: Campaign) -> Any:
    return campaign.generation
