"""Lookups in tables, whose gradients may hold rows alone."""

from typing import Any

import symop as so
from symop.interop.paddle.operators import operator

_REMOTE = (
    "is_test table_class is_distributed remote_prefetch trainer_id epmap height_sections "
    "table_names "
    "entry_config entry slot"
)


def _looked_up(table: Any, ids: Any, padding_idx: int, is_sparse: bool) -> Any:
    padding = None if padding_idx == -1 else padding_idx % table.shape[0]
    return so.lookup_table(table, ids, padding_idx=padding, sparse=is_sparse)


@operator(no_gradient="Ids", ignored=_REMOTE)
def lookup_table(W: Any, Ids: Any, *, is_sparse: bool = False, padding_idx: int = -1) -> Any:
    return _looked_up(W, so.reshape(Ids, shape=Ids.shape[:-1]), padding_idx, is_sparse)


@operator(no_gradient="Ids", ignored=_REMOTE)
def lookup_table_v2(W: Any, Ids: Any, *, is_sparse: bool = False, padding_idx: int = -1) -> Any:
    return _looked_up(W, Ids, padding_idx, is_sparse)


@operator()
def merge_selected_rows(X: Any) -> Any:
    return so.merge_selected_rows(X)


@operator()
def get_tensor_from_selected_rows(X: Any) -> Any:
    return so.get_tensor_from_selected_rows(X)
