import jax.numpy as jnp
import pytest

import registry
from registry import Array, Derivative, OpDesc, OperatorBase, State, case, op
from registry.audit import entry_of
from registry.cases import booleans, integers

pytestmark = pytest.mark.usefixtures("temporary_operators")


@pytest.fixture(scope="module")
def found():
    """The audit of the catalogue."""
    return registry.audit()


def test_catalogue_has_no_gap(found):
    assert not found.gaps, "\n".join(map(str, found.gaps.values()))
    assert list(found.entries) == registry.names()


def test_entry_tells_what_the_gradients_are_made_of(found):
    entry = found["sin"]
    assert entry.derivative is Derivative.MAKER
    assert entry.every_order
    assert {"cos", "multiply", "negative", "sin"} <= set(entry.reaches)
    assert "exp" not in entry.reaches


def test_operator_whose_maker_names_its_output_reaches_itself(found):
    assert "tanh" in found["tanh"].reaches


def test_declared_derivatives_are_no_gaps(found):
    assert found["floor"].every_order
    assert "zero by definition" in str(found["floor"])
    assert not found["argmax"].every_order
    assert found["argmax"].gap is None


def test_table_names_every_operator_and_counts(found):
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[:-2]] == registry.names()
    assert lines[-1].startswith(f"{len(registry.names())} operators, ")
    assert lines[-1].endswith("0 with a gap")


# Operators that are declared with a gap on purpose ----------------------------------------------


def declare(name, maker=None, **options):
    def kernel(x: Array) -> Array:
        """``x``."""
        return x

    declared = op(name=name, cases=[case(x=(3,))], **options)(kernel)
    if maker is not None:
        declared.gradient(maker)
    return declared


def gap(name):
    """The gap of one operator: the audit of all takes seconds."""
    return entry_of(registry.get(name)).gap


def test_missing_derivative_is_a_gap():
    declare("bare")
    assert str(gap("bare")) == "bare: no gradient maker is registered"


def test_what_has_nothing_to_differentiate_is_no_gap():
    @op(cases=[case(length=3)])
    def ramp(*, length: int) -> Array:
        """``0, 1, ...``."""
        return jnp.arange(float(length))

    @op(cases=[case(x=integers(3, high=5)), case(x=booleans(2))])
    def whole(x: Array) -> Array:
        """``x``."""
        return x

    @op(cases=[case(x=(3,))])
    def rank(x: Array) -> Array:
        """Positions in order."""
        return jnp.argsort(x)

    for one in (ramp, whole, rank):
        assert gap(one.name) is None
        assert str(entry_of(one)).startswith("not implemented: ")


def test_gap_is_found_behind_other_makers_with_the_path_to_it():
    bare = declare("bare")
    middle = declare("middle", lambda x, d_out: {"x": d_out * bare(x)})
    declare("top", lambda x, d_out: {"x": d_out * middle(x)})
    assert gap("top").path == ("top", "middle", "bare")
    assert "top -> middle -> bare: no gradient maker" in str(entry_of(registry.get("top")))


def test_undefined_derivative_on_the_way_is_a_gap():
    rough = declare("rough")
    rough.no_gradient("it is rough")
    declare("top", lambda x, d_out: {"x": d_out * rough(x)})
    assert str(gap("top")) == "top -> rough: it is rough"
    assert gap("rough") is None


def test_zero_derivative_ends_the_way():
    bare = declare("bare")
    flat = declare("flat")
    flat.zero_gradient("it is flat")
    declare("top", lambda x, d_out: {"x": d_out * flat(bare(x))})
    assert gap("top") is None


def test_booleans_carry_no_derivative():
    bare = declare("bare")
    declare("top", lambda x, d_out: {"x": registry.get("where")(bare(x) > 0, d_out, 0.0)})
    assert gap("top") is None


def test_what_the_gradient_does_not_use_is_no_gap():
    bare = declare("bare")

    def maker(x, d_out):
        bare(x)
        return {"x": d_out}

    declare("top", maker)
    assert gap("top") is None


def test_branch_that_only_another_makers_call_takes_is_looked_into():
    bare = declare("bare")
    branchy = declare("branchy", lambda x, d_out: {"x": bare(d_out) if x.ndim == 2 else d_out})
    reshape = registry.get("reshape")

    def maker(x, d_out):
        grown = branchy(reshape(x, shape=(1, *x.shape)))
        return {"x": d_out * reshape(grown, shape=x.shape)}

    declare("top", maker)
    assert gap("top").path == ("top", "branchy", "bare")


def test_maker_that_fails_is_a_gap():
    declare("broken", lambda x, d_out: {"x": d_out @ x.there_is_no_such_operator()})
    reason = gap("broken").reason
    assert reason.startswith("its maker fails: ")
    assert "'there_is_no_such_operator'" in reason


def declare_pair(name, maker, second=Array):
    def kernel(x, y):
        return x * 1.0

    kernel.__annotations__ = {"x": Array, "y": second}
    made = op(name=name, cases=[case(x=(3,), y=(3,))])(kernel)
    made.gradient(maker)


class TestSlotThatIsLeftOut:
    def test_is_a_gap(self):
        declare_pair("forgetful", lambda d_out: {"x": d_out})
        reason = gap("forgetful").reason
        assert reason.startswith("its maker fails: it must give a gradient for slot 'y': an array,")
        assert "one that defines y@GRAD (zeros_like, for zero); got x" in reason

    def test_none_is_a_zero(self):
        declare_pair("careful", lambda d_out: {"x": d_out, "y": None})
        assert gap("careful") is None

    def test_state_may_be_left_out(self):
        declare_pair("stateful", lambda d_out: {"x": d_out}, State)
        assert gap("stateful") is None

    def test_integers_may_be_left_out(self):
        @op(cases=[case(x=(3,), ids=integers(2, high=3))])
        def picked(x: Array, ids: Array) -> Array:
            """``x``."""
            return x

        picked.gradient(lambda d_out: {"x": d_out})
        assert gap("picked") is None

    def test_makers_of_descs(self):
        class Left(OperatorBase):
            def kernel(self, X, Y):
                return X + 0 * Y

        def forgetful(desc):
            return OpDesc("scale", {"X": ["Out@GRAD"]}, {"Out": ["X@GRAD"]}, {"scale": 1.0})

        def careful(desc):
            zero = OpDesc("zeros_like", {"X": desc.inputs["Y"]}, {"Out": ["Y@GRAD"]})
            return [forgetful(desc), zero]

        cases = [case(X=(3,), Y=(3,))]
        registry.register_operator("left_forgetful", Left, forgetful, cases=cases)
        registry.register_operator("left_careful", Left, careful, cases=cases)
        assert "for slot 'Y'" in gap("left_forgetful").reason
        assert gap("left_careful") is None


def test_maker_that_no_case_runs_is_a_gap():
    @op(name="untried", cases=[])
    def untried(x: Array) -> Array:
        """``x``."""
        return x

    untried.gradient(lambda d_out: {"x": d_out})
    assert gap("untried").reason == "no case runs its maker"


def test_temporary_operators_are_gone():
    assert not {"bare", "middle", "top", "rough", "flat"} & set(registry.names())
