"""Rematerialization: which forward values a gradient keeps, and which it recomputes."""

from symop.passes.remat.loops import chosen
from symop.passes.remat.pulling import pull_back, seal

__all__ = ["chosen", "pull_back", "seal"]
