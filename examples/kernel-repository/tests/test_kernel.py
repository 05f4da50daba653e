"""Every named problem, bit for bit, and one of our own."""

from mqa_ref.verification.given import given


def test_named_problem(mqa_case, mqa_check):
    """One test for each problem of the level."""
    mqa_check(mqa_case)


def test_the_shape_that_we_serve(mqa_check):
    """Two speculative tokens over contexts around one split."""
    mqa_check(given([255, 256, 257], num_sms=3, heads=64, next_n=2))
