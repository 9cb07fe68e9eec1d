"""Parts of ``symop.train`` and ``symop.optim``, which are the entry points.

Of ``train.Trainer``: the ``state``, a ``step`` as a pure function, the ``loop`` of ``fit`` with its
callbacks and logs, batches (``feeding``, ``streams``) and ``evaluation``; ``joining`` connects the
processes of a job. Of ``optim``: ``clipping`` and ``loss_scaling``. This package imports
``symop.program`` and below.
"""
