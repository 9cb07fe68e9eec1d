"""Images resized by nearest neighbours or linear interpolation."""
