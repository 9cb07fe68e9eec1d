"""The commands of ``symop``, one module each: its ``run`` takes the parsed arguments.

They may import everything but ``symop.cli``, which loads the module of the chosen command.
"""
