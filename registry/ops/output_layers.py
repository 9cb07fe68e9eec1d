"""Output layers: predictions forward, the gradient of a loss that is not computed backward."""
