"""Running sums, maxima and logarithms of sums of exponentials along an axis."""
