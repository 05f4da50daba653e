"""Puts the parts together: named problems, one launch on a backend, the comparison with the reference, the
verdict.
"""
