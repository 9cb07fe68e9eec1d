"""Input and output: graphs and programs as records, JSON and text; arrays as files.

Every written form goes through the records of a ``ProgramDesc``, and everything read is validated
first: counts, depths and sizes have bounds. This package imports ``symop.regions`` and lower
layers. Its public modules are ``records``, ``serialize``, ``text`` and ``files``.
"""
