"""Scopes that users enter belong to the task, or thread, that enters them."""

import asyncio
import contextlib
import contextvars
import threading

import pytest

import symop as so
import symop.interop.mxnet as mx
from registry.errors import ProgramError
from symop import nd
from symop.eager.segments import local
from symop.graph.origins import current_scope
from symop.graph.scoping import Scopes
from symop.interop.mxnet.scopes import current_names
from symop.passes.roll_loops.switch import is_rolling
from symop.program.current import current_program


def _program():
    """The identity of the current program: equal ones are not the same."""
    try:
        return id(current_program())
    except ProgramError:
        return None


def _mode():
    return so.autograd.is_recording(), so.autograd.is_training()


SCOPES = {
    "program_guard": (lambda _: so.program_guard(so.Program()), _program),
    "name_scope": (lambda i: so.name_scope(f"s{i}_"), lambda: so.var("x").list_arguments()),
    "rolling": (lambda i: so.rolling(bool(i % 2)), is_rolling),
    "remat": (lambda _: so.remat.scope(), current_scope),
    "names": (lambda i: mx.name.Prefix(f"p{i}_"), current_names),
    "attributes": (lambda i: mx.AttrScope(mood=str(i)), lambda: mx.sym.var("x").attr("mood")),
    "context": (lambda i: mx.Context("cpu", i + 1), mx.current_context),
    "record": (lambda i: so.autograd.record(bool(i % 2)), _mode),
    "direct": (lambda _: nd.direct(), lambda: local.state.rest < 0),
}


@pytest.fixture(params=SCOPES)
def scope(request):
    """A function that makes the scope of a number, and one that tells what holds at present."""
    return SCOPES[request.param]


def test_tasks_that_interleave(scope):
    make, present = scope
    outside = present()

    async def inside(i):
        for _ in range(i):
            await asyncio.sleep(0)
        with make(i):
            own = present()
            for _ in range(2 + 2 * i):
                await asyncio.sleep(0)
                assert present() == own
            with make(i + 1):
                inner = present()
                await asyncio.sleep(0)
                assert present() == inner
            assert present() == own
        assert present() == outside
        return own

    async def bystander():
        for _ in range(12):
            assert present() == outside
            await asyncio.sleep(0)

    async def main():
        return await asyncio.gather(inside(0), inside(1), bystander(), inside(2))

    first, second, _, _ = asyncio.run(main())
    assert (first == second) == (present is SCOPES["direct"][1])
    assert present() == outside


def test_a_task_begins_in_the_scope_of_its_maker(scope):
    make, present = scope

    async def main():
        with make(0):
            own = present()
            task = asyncio.create_task(inherited())
            await asyncio.sleep(0)
        return own, await task

    async def inherited():
        await asyncio.sleep(0)
        return present()

    own, found = asyncio.run(main())
    assert own == found


def test_a_new_thread_begins_outside(scope):
    make, present = scope
    found = []
    with make(0):
        thread = threading.Thread(target=lambda: found.append((present(), present())))
        thread.start()
        thread.join()
        inside = present()
    assert inside != found[0][0]
    assert found[0][0] == found[0][1]


@pytest.mark.parametrize("shared", [mx.Context("cpu", 7), mx.AttrScope(a="b"), mx.name.Prefix("p")])
def test_tasks_share_the_object_of_a_scope(shared):
    def present():
        return mx.current_context(), mx.sym.var("x").list_attr(), current_names()

    outside = present()

    async def enter(turns):
        with shared:
            own = present()
            assert own != outside
            for _ in range(turns):
                await asyncio.sleep(0)
                assert present() == own
        assert present() == outside

    async def main():
        await asyncio.gather(enter(3), enter(1), enter(2))

    asyncio.run(main())
    with shared, shared:
        inner = present()
    with shared:
        assert present() == inner
    assert present() == outside


class TestScopes:
    """The one place of all of them."""

    def test_scopes_left_out_of_order(self):
        kind = Scopes("kind", 0)

        def entered(value):
            with kind.entered(value):
                yield

        first, second, third = entered(1), entered(2), entered(2)
        for one in (first, second, third):
            next(one)
        assert kind.values() == [0, 1, 2, 2]
        first.close()
        assert kind.values() == [0, 2, 2]
        third.close()
        second.close()
        assert kind.current() == 0

    def test_a_scope_left_in_another_context(self):
        kind = Scopes("kind", 0)
        scope = kind.entered(1)

        def leave():
            with kind.entered(2):
                scope.__exit__(None, None, None)
                assert kind.current() == 2

        scope.__enter__()
        contextvars.Context().run(leave)
        assert kind.current() == 1

    def test_an_asynchronous_generator_that_another_task_closes(self):
        kind = Scopes("kind", 0)

        async def entered():
            with kind.entered(1):
                yield

        async def main():
            scope = entered()
            await asyncio.create_task(anext(scope))
            await asyncio.create_task(scope.aclose())
            return kind.current()

        assert asyncio.run(main()) == 0

    def test_a_scope_that_ends_with_an_error(self):
        kind = Scopes("kind", 0)
        with contextlib.suppress(ValueError), kind.entered(1):
            raise ValueError
        assert kind.current() == 0


def test_names_in_threads_of_one_scope():
    names = mx.name.NameManager()

    async def main():
        with names:
            return await asyncio.gather(*[asyncio.to_thread(many) for _ in range(4)])

    def many():
        return [current_names().get(None, "fc") for _ in range(200)]

    found = [name for some in asyncio.run(main()) for name in some]
    assert len(set(found)) == len(found) == 800
    assert mx.name.NameManager().get(None, "fc") == "fc0"


def test_a_switch_inside_of_direct_stays():
    before = so.autograd.is_recording()
    with nd.direct():
        so.autograd.set_recording(not before)
        with nd.direct():
            assert local.state.rest < 0
        assert local.state.rest < 0
    assert so.autograd.is_recording() is not before
    assert local.state.rest >= 0
    so.autograd.set_recording(before)


def test_modes_that_generators_leave_out_of_order():
    def inside(scope):
        with scope:
            yield

    first, second = inside(so.autograd.record()), inside(so.autograd.train_mode())
    third = inside(so.autograd.record(train_mode=False))
    next(first), next(second), next(third)
    assert _mode() == (True, False)
    first.close()
    assert _mode() == (True, False)
    third.close()
    assert _mode() == (False, True)
    second.close()
    assert _mode() == (False, False)


def test_a_mode_that_is_switched_in_a_scope_ends_with_it():
    with so.autograd.record():
        so.autograd.set_recording(False)
        assert _mode() == (False, True)
        with so.autograd.pause():
            so.autograd.set_training(True)
        assert _mode() == (False, True)
    assert _mode() == (False, False)


def test_a_scope_of_recording_within_one_goes_on_with_the_record():
    x = nd.ones((2,))
    x.attach_grad()
    with so.autograd.record():
        y = x * 2
        with so.autograd.record():
            z = y * 3
        loss = (z * y).sum()
    loss.backward()
    assert x.grad.tolist() == [24.0, 24.0]


def test_a_function_in_a_mode_may_call_itself():
    @so.autograd.pause()
    def count(n):
        """Count."""
        assert not so.autograd.is_recording()
        return n and 1 + count(n - 1)

    with so.autograd.record():
        assert count(3) == 3
        assert _mode() == (True, True)
    assert count.__doc__ == "Count."
