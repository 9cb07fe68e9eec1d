"""Conversion of repeated blocks of a graph to loops, whose bodies are compiled once."""
