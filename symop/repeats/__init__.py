"""Repeated blocks of a graph: found, and turned into loops that are compiled once."""
