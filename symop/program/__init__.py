"""Programs: named variables and records of calls, with their backward and update.

``program.Program`` is the entry point, ``block`` keeps the records and the nodes they describe,
``backward`` appends gradients, ``run`` compiles a program into one function that donates its state.
This package imports ``symop.eager`` and lower layers.
"""
