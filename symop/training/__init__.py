"""Components of ``symop.optim``: gradient clipping and loss scaling.

This package imports ``symop.program`` and lower layers.
"""
