"""Sample calls of MXNet's operators, with what NumPy and SciPy compute of them.

A file for each family; ``SAMPLES`` holds those of all. MXNet's own recorded values are compared in
``test_mxnet_operators``; here every operator is compared with its definition.
"""

import importlib
import pkgutil

from mxnet_samples.sample import Sample

SAMPLES: list[Sample] = []
for _module in pkgutil.iter_modules(__path__):
    if _module.name.startswith("of_"):
        SAMPLES += importlib.import_module(f"{__name__}.{_module.name}").SAMPLES
