"""Connectionist temporal classification: the loss of a label sequence without an alignment."""
