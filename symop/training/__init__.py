"""Parts of ``symop.optim`` (gradient clipping, loss scaling) and of ``symop.train`` (processes).

This package imports ``symop.program`` and lower layers.
"""
