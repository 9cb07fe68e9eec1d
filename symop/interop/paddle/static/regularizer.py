"""Regularizers: terms that are added to gradients."""

from symop.interop.paddle.programs import Block, Variable


class Regularizer:
    """Adds a term to the gradient of a parameter."""

    def __call__(self, parameter: Variable, block: Block) -> Variable:
        """Appends calls to ``block`` and returns the term for ``parameter``."""
        # Abstract: defined by the penalties below.
        raise NotImplementedError


class L2Decay(Regularizer):
    """Adds the parameter times a factor."""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        """Takes the factor."""
        self.coeff = regularization_coeff

    def __call__(self, parameter: Variable, block: Block) -> Variable:
        """See ``Regularizer``."""
        return _scaled(parameter, self.coeff, block)


class L1Decay(Regularizer):
    """Adds the sign of the parameter times a factor."""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        """Takes the factor."""
        self.coeff = regularization_coeff

    def __call__(self, parameter: Variable, block: Block) -> Variable:
        """See ``Regularizer``."""
        return _scaled(
            block.call("sign", {"X": parameter}, name="_generated_var"), self.coeff, block
        )


def _scaled(variable: Variable, factor: float, block: Block) -> Variable:
    return block.call("scale", {"X": variable}, {"scale": factor}, name="_generated_var")


L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
