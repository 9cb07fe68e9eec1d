"""The dictionary of operators: what each one means."""
