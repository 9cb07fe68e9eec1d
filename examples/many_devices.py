"""Trains a perceptron on scikit-learn's digits: on one device, on many, by one process or several.

One device, and eight that the CPU plays:

    python examples/many_devices.py
    XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/many_devices.py

Two processes on this machine; on two machines, each starts one of them, and the coordinator is the
address of the first:

    for process in 0 1; do
        python examples/many_devices.py --coordinator 127.0.0.1:12321 --processes 2 \\
            --process $process &
    done; wait

Each process has all images and feeds the part of a batch that its devices hold; the first one
prints. The losses agree up to rounding, however many devices there are. Under Slurm, Open MPI,
Kubernetes or on Cloud TPU, the arguments may be left out.
"""

import argparse

import jax
import numpy as np
import optax
from sklearn.datasets import load_digits

import symop as so
from symop import train

RULES = {"hidden?_weight": ("data", None), "hidden?_bias": ("data",)}
"""Each device holds a part of the hidden layers, and of the moments of Adam."""


def network() -> so.Symbol:
    """Maps flat images to logits."""
    hidden = so.var("image")
    for layer in range(2):
        hidden = so.relu(so.fully_connected(hidden, units=128, name=f"hidden{layer}"))
    return so.fully_connected(so.dropout(hidden, rate=0.2), units=10, name="out")


def digits() -> dict[str, np.ndarray]:
    """1,797 images and their labels."""
    images, labels = load_digits(return_X_y=True)
    return {"image": (images / 16.0).astype(np.float32), "label": labels.astype(np.int32)}


def run(job: train.Job, epochs: int = 5, batch_size: int = 64) -> list[train.Arrays]:
    """Trains, and returns the metrics of each epoch; the job's first process prints them."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    logits, label = network(), so.var("label", dtype="int32")
    accuracy = so.mean(so.equal(so.argmax(logits, axis=-1), label))
    trainer = train.Trainer(
        so.mean(so.softmax_cross_entropy(logits, label)),
        optax.adam(2e-3),
        inputs=["image", "label"],
        metrics={"accuracy": accuracy},
        mesh=mesh,
        rules=RULES,
    )

    def report(epoch: int, state: train.TrainState, metrics: train.Arrays) -> None:
        if job.writes:
            print(f"epoch {epoch + 1}: " + ", ".join(f"{n} {v:.4f}" for n, v in metrics.items()))

    _, history = trainer.fit(
        trainer.init(0, image=(batch_size, 64), label=(batch_size,)),
        train.share(digits()),
        epochs=epochs,
        batch_size=batch_size,
        progress=False,
        after_epoch=report,
    )
    return history


def main() -> None:
    """Runs from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--coordinator", help="host:port at which process 0 listens")
    parser.add_argument("--processes", type=int, help="the number of processes")
    parser.add_argument("--process", type=int, help="the index of this process")
    parser.add_argument("--cache", help="a folder for compiled programs")
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    job = train.distributed(args.coordinator, args.processes, args.process, cache=args.cache)
    if job.writes:
        print(f"{jax.device_count()} devices, processes: {job.processes}")
    run(job, args.epochs)


if __name__ == "__main__":
    main()
