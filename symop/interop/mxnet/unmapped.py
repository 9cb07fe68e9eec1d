"""Operators of MXNet that are not mapped, by name prefix, with the reasons."""

UNMAPPED = {
    "_contrib_quantized": "arithmetic of 8-bit integers; load the model before it was quantized",
    "_contrib_quantize_asym": "integers around another number than zero, of Intel's CPUs",
    "_contrib_calibrate_entropy": "chooses ranges for 8-bit integers",
    "_contrib_intgemm": "arithmetic of 8-bit integers, of Intel's CPUs",
    "_sg_mkldnn": "made by a rewrite for Intel's CPUs; load the model before it",
    "_TensorRT": "made by a rewrite for TensorRT; load the model before it",
    "_FusedOp": "made by a rewrite for GPUs; no file holds it",
    "_contrib_tvm": "a kernel of a build of MXNet with TVM; dot and broadcast_add compute the same",
    "_contrib_dgl": "samples a graph that is stored as csr, so shapes depend on the entries",
    "_contrib_edge_id": "reads edges of a graph that is stored as csr; take them from its parts",
    "_contrib_mrcnn_mask_target": "makes targets of training from masks; compute them with NumPy",
    "_image_": "prepares images; compute it with NumPy (to_tensor and normalize are mapped)",
    "_Native": "calls C code of a process that is gone; write an mx.operator.CustomOp",
    "_NDArray": "calls C code of a process that is gone; write an mx.operator.CustomOp",
    "_npi_": "of mx.np; use symop.nd, a namespace of the Python array API",
    "_npx_": "of mx.npx; use symop.nd, a namespace of the Python array API",
    "_np_": "of mx.np; use symop.nd, a namespace of the Python array API",
}


def reason(name: str) -> str:
    """The reason why the operator ``name`` is not mapped; empty if none is recorded."""
    told = next((why for start, why in UNMAPPED.items() if name.startswith(start)), None)
    return "" if told is None else f": {told}"
