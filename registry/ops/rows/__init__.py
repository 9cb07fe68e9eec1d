"""Row-sparse values.

Embeddings, and operations on ``SelectedRows``.
"""

from registry.ops.rows import (
    embedding,
    row_accumulation,
    selected_rows,
)

__all__ = [
    "embedding",
    "row_accumulation",
    "selected_rows",
]
