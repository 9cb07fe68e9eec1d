"""Random draws, differentiable in their parameters where the draw can be reparameterized."""
