"""The grammar of operators."""
