"""Drawings of graphs, as SVG pictures and as interactive pages.

``outline`` arranges the boxes of a graph in blocks, ``view`` opens some of them, ``layout`` places
them, ``cards`` and ``svg`` render them. ``model`` and ``page`` write the page, whose scripts are in
``viewer``. This package imports ``symop.passes`` and below. Its entry points are ``draw`` and
``page``.
"""
