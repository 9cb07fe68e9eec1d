"""Lowering of graphs to functions on JAX values whose derivative rules are gradient makers.

``steps`` turns a graph into a list of kernel calls. ``rules`` turns an operator into a JAX function
whose derivative is its gradient maker. The barriers prevent fusions that XLA compiles poorly. This
package imports ``symop.autodiff`` and below. Its entry points are ``steps.Schedule`` and
``rules.with_rule``.
"""
