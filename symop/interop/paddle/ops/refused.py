"""Operators that are not defined, with the reason and what to use."""

from symop.interop.paddle.operators import refuse

refuse(
    "c_allreduce_sum c_allreduce_max c_allreduce_min c_allreduce_prod c_allgather c_broadcast "
    "c_reducescatter c_concat c_split c_embedding c_identity allreduce broadcast all_reduce "
    "all_gather send_v2 recv_v2 barrier c_comm_init c_comm_init_all c_gen_nccl_id",
    "collective operators join the processes of Paddle's own runs; export the program of one "
    "process, and spread it by so.shard or the meshes of docs/scale.md",
)
refuse(
    "send recv send_barrier fetch_barrier listen_and_serv prefetch distributed_lookup_table "
    "checkpoint_notify split_ids merge_ids split_byref pull_sparse pull_sparse_v2 push_dense",
    "parameter servers are not part of a program here; export the program of one process",
)
refuse(
    "read create_py_reader create_double_buffer_reader read_file decode_jpeg load load_combine "
    "save save_combine",
    "files and readers are read outside of programs; feed arrays, and use load_vars and save_vars",
)
refuse(
    "py_func run_program pylayer",
    "Python functions are not in the file; write the function with operators",
)
refuse(
    "tdm_sampler tdm_child pyramid_hash rank_attention match_matrix_tensor var_conv_2d "
    "filter_by_instag",
    "the operator needs state of Paddle's own servers or kernels",
)
refuse(
    "sparse_conv3d sparse_coalesce sparse_matmul sparse_add sparse_to_dense",
    "Paddle's sparse tensors are not supported; use dense ones",
)
