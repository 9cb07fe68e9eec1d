"""Any, all, how many are nonzero, and where the smallest entry stands."""
