"""Which arithmetic a tensor core follows, found from its results alone.

``vectors`` has the crafted inputs, ``arithmetic`` what each thinkable machine makes of them, ``rules`` the questions
and their answers, ``analysis`` the verdicts; ``programs`` and ``tiles`` bring vectors to the hardware, ``emulated`` and
``native`` run them; ``calibration`` does all of it and reports.
"""

from mqa_ref.calibrate.calibration import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
