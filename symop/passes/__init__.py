"""Graph passes, which rewrite a graph before it is lowered.

``roll_loops`` finds repeated blocks and turns them into loops; ``remat`` makes a gradient recompute
values instead of keeping them; ``fusion`` makes one loop of loops that read what others write;
``collapse`` takes sums over directions before linear operators; ``mixed_precision`` computes
products in a narrow dtype. A pass maps nodes to nodes; ``uses`` and ``axis_factors`` tell passes
how variables are used and how axes correspond. This package imports ``symop.regions`` and below.
"""
