"""Broken kernels: what the checks of this project notice, measured.

``select`` breaks the PTX of a kernel in one place at a time, ``sources`` the text of the builtin kernel, ``schedules``
the builder of schedules. ``judge`` runs a mutant on a ladder of problems until something fails; ``ledger`` holds those
that no launch can tell from the kernel, each with the reason.
"""
