"""The drawing on the first page: the gradient that README.md begins with."""

import symop as so


def svg() -> str:
    """Returns the drawing as SVG."""
    x = so.var("x", shape=(3,))
    return so.grad(so.sum(so.softmax(x) * so.sin(x)), x).to_svg(
        title="d/dx sum(softmax(x) * sin(x))"
    )
