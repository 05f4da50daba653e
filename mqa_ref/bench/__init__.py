"""How fast the parts are, each beside a peer in the same run, and whether the targets are met.

A time means nothing by itself: machines differ and are shared. So two things are timed in turn, and their ratio is the
result, with its spread.
"""
