"""Base classes of optimizers: MXNet's rates, decays and update counts of parameters by index."""

import contextlib
import functools
import logging
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from symop.interop.mxnet.arrays import NDArray, array_of, hold_together
from symop.interop.mxnet.classes import Classes
from symop.interop.mxnet.context import Context
from symop.interop.mxnet.errors import MXNetError, MXNetUserWarning
from symop.interop.mxnet.row_steps import run, stepped
from symop.interop.mxnet.sparse_arrays import assign, zeros_stored
from symop.interop.mxnet.storage import warn_fallback
from symop.runtime.donation import DonatingStep

Index = int | str
Numbers = Sequence[Any]
How = dict[str, Any]
"""Attributes shared by the operators of all steps: ``lr``, ``wd``, ``rescale_grad``,
``clip_gradient``."""
Found = tuple[Any, Any]
Plan = tuple[Hashable, tuple[float, ...]]


class Optimizer:
    """Updates parameters by their gradients; subclasses implement ``update``.

    Biases and similar parameters do not decay: ``wd_mult`` defaults to zero for names that do not
    end in one of ``decaying``.

    Attributes:
        rescale_grad: a factor applied to all gradients; ``Module`` sets it to one over the batch
            size.
        lr: the learning rate, if there is no scheduler.
        wd: the weight decay.
        clip_gradient: the bound on each entry of a gradient, or None.
        lr_scheduler: a function from the number of updates to the rate, or None.
        num_update: the largest update count of any parameter.
        idx2name: names of parameters by index.
        decaying: the endings of names of parameters that decay by default.
    """

    decaying: ClassVar[tuple[str, ...]] = ("_weight", "_gamma")

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[Index, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: Any = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: Mapping[Index, Any] | None = None,
    ) -> None:
        """Initializes the optimizer.

        Args:
            rescale_grad: see the class.
            param_idx2name: names of parameters by index.
            wd: see the class.
            clip_gradient: see the class.
            learning_rate: the rate, or the base rate of a scheduler; defaults to 0.01.
            lr_scheduler: see the class.
            sym: the symbol whose variables may set factors of their rates and decays.
            begin_num_update: the initial update count.
            multi_precision: whether half-precision parameters are also kept in single precision.
            param_dict: objects with ``lr_mult`` and ``wd_mult``, by index.
        """
        self.rescale_grad, self.clip_gradient, self.wd = rescale_grad, clip_gradient, wd
        self.lr_scheduler = lr_scheduler
        self.lr = 0.01 if learning_rate is None else learning_rate
        if lr_scheduler is not None and learning_rate is not None:
            if lr_scheduler.base_lr != learning_rate:
                logging.info("learning_rate takes the place of the scheduler's base_lr")
            lr_scheduler.base_lr = learning_rate
        self.begin_num_update = self.num_update = begin_num_update
        self._index_update_count: dict[Index, int] = {}
        self.multi_precision = multi_precision
        self.idx2name = dict(param_idx2name or {})
        self.sym_info: tuple[Any, ...] = ()
        if sym is not None:
            self.sym_info = (sym.attr_dict(), sym.list_arguments())
        self.param_dict = dict(param_dict or {})
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass: type["Optimizer"]) -> type["Optimizer"]:
        """Registers a class by its name; a decorator."""
        return _classes.register(klass)

    @staticmethod
    def create_optimizer(name: Any, **kwargs: Any) -> "Optimizer":
        """The optimizer called ``name``."""
        return _classes.create(name, **kwargs)

    # Rates and decays

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return self.lr if self.lr_scheduler is None else float(self.lr_scheduler(self.num_update))

    def set_learning_rate(self, lr: float) -> None:
        """Sets the learning rate.

        Raises:
            MXNetUserWarning: a scheduler determines the rate.
        """
        if self.lr_scheduler is not None:
            raise MXNetUserWarning(
                "set_learning_rate: there must be no lr_scheduler, which says the rate"
            )
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Sets factors of the rate by name or index; these override variables' ``__lr_mult__``."""
        self.lr_mult: dict[Any, float] = {**self._said("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Sets factors of the decay by name or index; these override variables' ``__wd_mult__``."""
        still = [n for n in self.idx2name.values() if not n.endswith(self.decaying)]
        self.wd_mult: dict[Any, float] = {
            **dict.fromkeys(still, 0.0),
            **self._said("__wd_mult__"),
            **args_wd_mult,
        }

    def _said(self, key: str) -> dict[str, float]:
        """The values of the variables' attribute ``key``."""
        if not self.sym_info:
            return {}
        attributes, names = self.sym_info
        found = {name: attributes.get(name, {}).get(key) for name in names}
        return {name: float(one) for name, one in found.items() if one is not None}

    def _factor(self, index: Index, own: Mapping[Any, float], attribute: str) -> float:
        if index in self.param_dict:
            return float(getattr(self.param_dict[index], attribute))
        return own.get(index, own.get(self.idx2name.get(index), 1.0))

    def _get_lrs(self, indices: Sequence[Index]) -> list[float]:
        """The rates of the parameters ``indices``."""
        rate = self.learning_rate
        if not (self.lr_mult or self.param_dict):
            return [rate] * len(indices)
        return [rate * self._factor(index, self.lr_mult, "lr_mult") for index in indices]

    def _get_wds(self, indices: Sequence[Index]) -> list[float]:
        """The decays of the parameters ``indices``."""
        if not self.wd:
            return [0.0] * len(indices)
        return [self.wd * self._factor(index, self.wd_mult, "wd_mult") for index in indices]

    def _get_lr(self, index: Index) -> float:
        """The rate of a parameter, for use by subclasses."""
        return self._get_lrs([index])[0]

    def _get_wd(self, index: Index) -> float:
        """The decay of a parameter, for use by subclasses."""
        return self._get_wds([index])[0]

    def _update_count(self, index: Any) -> None:
        """Counts an update of one or more parameters, for use by subclasses."""
        counts, most = self._index_update_count, self.num_update
        for one in index if isinstance(index, (list, tuple)) else [index]:
            count = counts[one] = counts.get(one, self.begin_num_update) + 1
            most = max(most, count)
        self.num_update = most

    @contextlib.contextmanager
    def counted_if_changed(self, arrays: Sequence[NDArray]) -> Iterator[None]:
        """A context that updates ``arrays``; restores counts if an error leaves them unchanged."""
        # Strong references to values would force copies instead of donation.
        old = [weakref.ref(one.stored.value) for one in arrays[:1] if not one.is_sparse]
        before = {**vars(self), "_index_update_count": dict(self._index_update_count)}
        try:
            yield
        except BaseException:
            if all(ref() is one.stored.value for ref, one in zip(old, arrays, strict=False)):
                vars(self).update(before)
            raise

    # Updates

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates the state of a parameter: an array, a tuple of arrays, or None."""

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> Any:
        """Creates the state, with a single-precision copy if ``multi_precision`` requires it."""
        if not self.is_mixed(weight.dtype):
            return self.create_state(index, weight)
        wide = weight.value.astype(jnp.float32) if not weight.is_sparse else None
        master = weight.astype(np.float32) if wide is None else array_of(wide)
        return master, self.create_state(index, master)

    def is_mixed(self, dtype: Any) -> bool:
        """Whether parameters of ``dtype`` are also kept in single precision."""
        return self.multi_precision and np.dtype(dtype).itemsize == 2

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Writes the updated parameter to ``weight``, and the updated state to ``state``."""
        # Abstract, as in MXNet: defined by subclasses.
        raise NotImplementedError(f"{type(self).__name__} must say how it updates")

    def update_multi_precision(
        self, index: Index, weight: NDArray, grad: NDArray, state: Any
    ) -> None:
        """``update`` for a parameter that may be kept in single precision."""
        if not self.is_mixed(weight.dtype):
            self.update(index, weight, grad, state)
            return
        master, own = state
        self.update(index, master, array_of(grad.value.astype(jnp.float32)), own)
        weight.hold(master.value.astype(weight.dtype))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "param_dict": {}}


_classes: Classes[Optimizer] = Classes("optimizer", Optimizer)
register = _classes.register


def create(name: Any, **kwargs: Any) -> Optimizer:
    """Creates the optimizer called ``name``.

    Raises:
        MXNetError: there is no such optimizer.
    """
    return _classes.create(name, **kwargs)


# Compiled steps ----------------------------------------------------------------------------------

_SCALE = 1
"""The number of leading entries of a plan: the factor of the gradients."""


class Formula(Optimizer):
    """An optimizer whose step is an MXNet operator, compiled for all parameters at once.

    Rates and numbers that depend on counts are arguments of the compiled step; decays and
    ``settings`` are constants in it.

    Attributes:
        settings: names of the attributes that ``step`` reads.
        slots: the number of state arrays of a parameter; several form a tuple.
        master_last: whether the single-precision parameter follows the state.
        on_rows: what a row-sparse gradient does: ``"lazy"`` updates its rows alone if the optimizer
            has ``lazy_update`` and all rows otherwise, ``"rows"`` always updates its rows alone,
            ``"stored"`` does so if the parameter is row-sparse, and ``""`` makes it dense, with a
            warning.
    """

    settings: ClassVar[tuple[str, ...]] = ()
    slots: ClassVar[int] = 1
    master_last: ClassVar[bool] = False
    on_rows: ClassVar[str] = ""

    # Methods for subclasses

    def numbers(self, index: Index, rate: float) -> tuple[float, ...]:
        """The rate and other arguments of ``step`` for the parameter ``index``, after counting."""
        return (rate,)

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """The updated parameter and state, computed on JAX arrays in at least single precision.

        Args:
            weight: the parameter.
            grad: its gradient, not yet rescaled.
            state: its state.
            how: attributes of the operator.
            more: the results of ``numbers`` after the rate.
        """
        # Abstract: defined by every optimizer with a formula.
        raise NotImplementedError(f"{type(self).__name__} must say its step")

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates a state of zeros, in the storage type of the parameter where rows are updated."""
        stype = weight.stype if self._keeps_stype else "default"
        like = (weight.shape, weight.dtype, weight.context)
        made = [zeros_stored(stype, *like) for _ in range(self.slots)]
        return made[0] if self.slots == 1 else tuple(made)

    @property
    def _keeps_stype(self) -> bool:
        """Whether states have the storage type of their parameter."""
        return bool(self.on_rows) and getattr(self, "lazy_update", True)

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> Any:
        """Creates a state of zeros, with the single-precision parameter if it is kept."""
        state = super().create_state_multi_precision(index, weight)
        return state[::-1] if self.master_last and self.is_mixed(weight.dtype) else state

    # All parameters at once

    def plan(self, indices: Sequence[Index]) -> Plan:
        """Counts an update of ``indices``; returns the key and arguments of the compiled step."""
        self._update_count(indices)
        found, rates = [self.rescale_grad], self._get_lrs(indices)
        if type(self).numbers is Formula.numbers:
            found += rates
        else:
            for index, rate in zip(indices, rates, strict=True):
                found += self.numbers(index, rate)
        own = tuple([getattr(self, name) for name in self.settings])
        key = tuple(self._get_wds(indices)), self.clip_gradient or None, self.multi_precision, own
        return key, tuple(found)

    def apply(
        self, key: Any, numbers: Any, weights: Sequence[Any], grads: Sequence[Any], states: Any
    ) -> tuple[list[Any], list[Any]]:
        """The updated parameters and states, computed inside a compiled step.

        Args:
            key: the key of the plan.
            numbers: the numbers of the plan, as one array.
            weights: parameters.
            grads: their gradients.
            states: their states.
        """
        decays, count = key[0], (len(numbers) - _SCALE) // max(len(weights), 1)
        scalars = [numbers[i] for i in range(len(numbers))]
        new_weights, new_states = [], []
        for i, (weight, grad, state) in enumerate(zip(weights, grads, states, strict=True)):
            own = scalars[_SCALE + i * count : _SCALE + (i + 1) * count]
            made = self._stepped(weight, grad, state, [scalars[0], *own], decays[i])
            new_weights.append(made[0])
            new_states.append(made[1])
        return new_weights, new_states

    def _stepped(
        self, weight: Any, grad: Any, state: Any, numbers: Sequence[Any], decay: float
    ) -> tuple[Any, Any]:
        if self.is_mixed(weight.dtype):
            at = 1 if self.master_last else 0
            master, kept = self._stepped(state[at], grad, state[1 - at], numbers, decay)
            return master.astype(weight.dtype), (kept, master) if at else (master, kept)
        dtype = weight.dtype if weight.dtype.itemsize > 2 else jnp.dtype(jnp.float32)
        scale, rate, *more = [one.astype(dtype) for one in numbers]
        wide = jax.tree.map(lambda one: one.astype(dtype), (weight, state))
        how = {"lr": rate, "wd": decay, "rescale_grad": scale}
        how["clip_gradient"] = self.clip_gradient or -1.0
        found = self.step(wide[0], grad.astype(dtype), wide[1], how, more)
        like = jax.tree.map(lambda old, new: new.astype(old.dtype), (weight, state), found)
        result: tuple[Any, Any] = like
        return result

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one parameter, or several, given as lists.

        Raises:
            MXNetError: a gradient does not have the shape of its parameter; nothing is updated.
        """
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        _require_same_shapes(weight, grad)
        groups = _by_device(weight)
        if len(groups) > 1:  # a compiled step runs on one device
            for array in (*weight, *jax.tree.leaves(list(state))):
                array.require_changeable()
            for places in groups:
                parts = [[one[i] for i in places] for one in (index, weight, grad, state)]
                Formula.update(self, *parts)
            return
        if any(one.is_sparse for one in (*weight, *grad)):
            self._update_stored(index, weight, grad, state)
            return
        arrays = [*weight, *jax.tree.leaves(list(state))]
        for array in arrays:
            array.require_changeable()
        with self.counted_if_changed(arrays):
            key, numbers = self.plan(index)
            given = [one.value for one in weight], [one.value for one in grad]
            old = [jax.tree.map(lambda one: one.value, own) for own in state]
            new = self._compiled(key)(told(numbers), *given, old)
            hold_together(arrays, jax.tree.leaves(new))

    def _update_stored(
        self,
        indices: Sequence[Index],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
    ) -> None:
        """Updates parameters by the rows of their gradients, where one of either is sparse."""
        leaves, trees = zip(*map(jax.tree.flatten, states), strict=True)
        groups = [[one, *own] for one, own in zip(weights, leaves, strict=True)]
        if len(set(map(id, chain.from_iterable(groups)))) < sum(map(len, groups)):
            # A parameter that is named again is updated again, from its new value.
            for index, weight, grad, state in zip(indices, weights, grads, states, strict=True):
                self._update_stored([index], [weight], [grad], [state])
            return
        if any(one.stype == "csr" for one in chain.from_iterable(groups)):
            self._update_as_dense(indices, groups, grads, trees)
            return
        lazy = tuple(map(self._is_lazy, weights, grads, leaves))
        with self.counted_if_changed(list(chain.from_iterable(groups))):
            key, numbers = self.plan(indices)
            sizes = tuple(map(len, groups))
            stepped(groups, grads, told(numbers), self._rows_compiled((key, trees), sizes, lazy))

    def _update_as_dense(
        self,
        indices: Sequence[Index],
        groups: Sequence[Sequence[NDArray]],
        grads: Sequence[NDArray],
        trees: Sequence[Any],
    ) -> None:
        """Updates parameters of which some are csr arrays, or have such states."""
        stypes = sorted({one.stype for one in chain(*groups, grads)})
        warn_fallback(f"{type(self).__name__}.update", stypes, "csr", level=5)
        dense = [[_without_csr(one) for one in group] for group in groups]
        states = [tree.unflatten(own[1:]) for tree, own in zip(trees, dense, strict=True)]
        slopes = [
            one.tostype("default") if any(part.stype == "csr" for part in group) else one
            for one, group in zip(grads, groups, strict=True)
        ]
        Formula.update(self, indices, [own[0] for own in dense], slopes, states)
        for one, new in zip(chain(*groups), chain(*dense), strict=True):
            if one is not new:
                assign(one, new)

    def _is_lazy(self, weight: NDArray, grad: NDArray, states: Sequence[NDArray]) -> bool:
        """Whether only the rows of the gradient are updated; warns if it becomes dense."""
        kind = self.on_rows
        if kind == "stored":
            kind = "rows" if weight.stype == "row_sparse" else ""
        if self.master_last and self.is_mixed(weight.dtype):
            kind = ""  # MXNet's mp_sgd_update and mp_sgd_mom_update are dense
        if not kind or grad.stype == "csr" or (weight.is_sparse and not grad.is_sparse):
            stypes = [one.stype for one in (weight, grad, *states)]
            warn_fallback(f"{type(self).__name__}.update", stypes, weight.stype, level=6)
            return False
        alike = all(one.stype == weight.stype for one in states)
        return alike and (kind == "rows" or getattr(self, "lazy_update", False))

    def _rows_compiled(
        self, key: Hashable, sizes: tuple[int, ...], lazy: tuple[bool, ...]
    ) -> DonatingStep:
        """The compiled step on the rows of parameters and their states."""
        known: dict[Hashable, DonatingStep] = self.__dict__.setdefault("_known", {})
        which = key, sizes, lazy
        if which not in known:
            known[which] = DonatingStep(functools.partial(run, self._row_step, *which))
        return known[which]

    def _row_step(
        self, key: Any, groups: Sequence[Sequence[Any]], grads: Sequence[Any], numbers: Any
    ) -> list[list[Any]]:
        own, trees = key
        states = [tree.unflatten(one[1:]) for tree, one in zip(trees, groups, strict=True)]
        weights, moved = self.apply(own, numbers, [one[0] for one in groups], grads, states)
        leaves = map(jax.tree.leaves, moved)
        return [[new, *one] for new, one in zip(weights, leaves, strict=True)]

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """``update``, or a subclass's own, in single precision if the parameter is kept so."""
        if type(self).update is Formula.update:
            self.update(index, weight, grad, state)
            return
        turned = self.master_last and self.is_mixed(weight.dtype)
        super().update_multi_precision(index, weight, grad, state[::-1] if turned else state)

    def _compiled(self, key: Hashable) -> Callable[..., Any]:
        """The compiled step; the attributes it reads are part of ``key``."""
        known = self.__dict__.setdefault("_known", {})
        if key not in known:

            def run(numbers: Any, weights: Any, grads: Any, states: Any) -> Any:
                return self.apply(key, numbers, weights, grads, states)

            known[key] = jax.jit(run)
        result: Callable[..., Any] = known[key]
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {k: one for k, one in super().__getstate__().items() if k != "_known"}


def _without_csr(array: NDArray) -> NDArray:
    """The array, or a dense copy of a csr array."""
    return array.tostype("default") if array.stype == "csr" else array


def _require_same_shapes(weights: Sequence[NDArray], grads: Sequence[NDArray]) -> None:
    """Raises an error unless each gradient has the shape of its parameter."""
    for weight, grad in zip(weights, grads, strict=True):
        if weight.shape != grad.shape:
            raise MXNetError(
                "update: a gradient must have the shape of its parameter, got "
                f"{grad.shape} for {weight.shape}"
            )


def _by_device(weights: Sequence[NDArray]) -> list[list[int]]:
    """The positions of the arrays on each device."""
    groups: dict[Context, list[int]] = {}
    for i, one in enumerate(weights):
        groups.setdefault(one.context, []).append(i)
    return list(groups.values())


def told(numbers: Sequence[float]) -> Any:
    """The numbers of a plan as an array for the compiled step."""
    return np.asarray(numbers, jax.dtypes.canonicalize_dtype(np.float64))
