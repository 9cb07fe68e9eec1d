"""Rematerialization: what a gradient keeps of the forward graph, and what it computes again."""

from symop.recomputing.loops import chosen
from symop.recomputing.pulling import pulled, sealed

__all__ = ["chosen", "pulled", "sealed"]
