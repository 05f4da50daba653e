"""Generated launches: strategies that draw them, properties that must hold, a runner that finds, shrinks and keeps
what does not, and coverpoints that say what was reached.

``strategies`` needs the extra ``fuzz`` (hypothesis); everything that runs a launch or reads a case file does not.
"""
