"""Graph passes, which rewrite a graph before it is lowered.

``roll_loops`` finds repeated blocks and turns them into loops; ``remat`` makes a gradient recompute
values instead of keeping them; ``fusion`` makes one loop of loops that read what others write;
``collapse`` takes sums over directions before linear operators. A pass maps nodes to nodes. This
package imports ``symop.regions`` and below.
"""
