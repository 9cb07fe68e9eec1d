"""The parts of a drawing: which boxes, what is written in them, where they go, and the picture."""
