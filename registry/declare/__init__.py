"""Other spellings of a declaration: each makes the one ``Operator`` that ``@op`` makes."""
