"""Exchange with other systems: models that they saved, and scripts that were written for them."""
