"""What people and programs read after a run: the report as an object, as JSON, and as text."""

from mqa_ref.report.environment import environment
from mqa_ref.report.model import VERSION, BaselineResult, CaseResult, Report

__all__ = ["VERSION", "BaselineResult", "CaseResult", "Report", "environment"]
