"""Interoperability with other systems: loading their models, and running their scripts."""
