"""Linear recurrences over time and their adjoints, which recurrent layers differentiate into."""
