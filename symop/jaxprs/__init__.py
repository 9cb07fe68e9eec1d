"""JAX functions as graphs: ``so.from_jax`` in ``functions``, ``so.transform`` in ``transforming``.

``tracing`` traces a function with JAX, ``reading`` walks its jaxpr and builds a node for each
equation, by the tables in ``primitives`` (operators), ``control_flow`` (bodies) and
``custom_rules`` (derivative rules of the user). ``opaque`` holds what no operator expresses. This
package imports ``symop.symbol`` and below.
"""
