"""Components of graph drawings: boxes, their text, their layout, and the SVG picture."""
