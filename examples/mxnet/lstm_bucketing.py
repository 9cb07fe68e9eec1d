"""Trains a language model of stacked LSTMs on sentences of any length, as a script for MXNet does.

The sentences are made up by a small grammar in which verbs agree with subjects that stand far
before them. ``mx.rnn`` numbers the words and puts sentences of like length into buckets; cells are
unrolled for each of these. Only the import differs from what runs on MXNet.
"""

import argparse
import logging
import random
from collections.abc import Sequence

import numpy as np

import symop.interop.mxnet as mx

NOUNS = ("dog", "cat", "bird", "horse", "child", "teacher")
VERBS = ("see", "like", "follow", "help")
ADJECTIVES = ("old", "small", "happy", "quiet", "young")
BUCKETS = [8, 16]
EMBED = 24
START_LABEL, INVALID_LABEL = 1, 0


def phrase(plural: bool, relative: bool) -> list[str]:
    """A noun with what stands around it, perhaps a relative clause."""
    words = ["the", *random.sample(ADJECTIVES, random.choice((0, 1, 2)))]
    words.append(random.choice(NOUNS) + "s" * plural)
    if relative:
        other = random.random() < 0.5
        words += ["that", *phrase(other, False), random.choice(VERBS) + "s" * (not other)]
    return words


def sentence() -> list[str]:
    """Somebody does something with somebody."""
    plural, relative = random.random() < 0.5, random.random() < 0.3
    verb = random.choice(VERBS) + "s" * (not plural)
    return [*phrase(plural, relative), verb, *phrase(random.random() < 0.5, False), "."]


def bucket_iter(
    text: Sequence[Sequence[int]], batch_size: int, layout: str
) -> mx.rnn.BucketSentenceIter:
    """Batches of sentences, each of one bucket."""
    return mx.rnn.BucketSentenceIter(
        text, batch_size, buckets=BUCKETS, invalid_label=INVALID_LABEL, layout=layout
    )


def main(
    epochs: int = 6,
    sentences: int = 3000,
    batch_size: int = 32,
    num_layers: int = 2,
    num_hidden: int = 48,
    lr: float = 0.01,
    fused: bool = False,
) -> dict[str, float]:
    """Train; the perplexity of sentences that were not trained on, before and after."""
    mx.random.seed(3)
    np.random.seed(3)
    random.seed(3)  # orders the buckets, and makes the sentences
    train_text, vocab = mx.rnn.encode_sentences(
        [sentence() for _ in range(sentences)],
        invalid_label=INVALID_LABEL,
        start_label=START_LABEL,
    )
    val_text, _ = mx.rnn.encode_sentences([sentence() for _ in range(500)], vocab=vocab)
    layout = "TN" if fused else "NT"
    data_train = bucket_iter(train_text, batch_size, layout)
    data_val = bucket_iter(val_text, batch_size, layout)

    stack = mx.rnn.SequentialRNNCell()
    if fused:
        stack.add(mx.rnn.FusedRNNCell(num_hidden, num_layers, mode="lstm", prefix="lstm_"))
    for i in range(0 if fused else num_layers):
        stack.add(mx.rnn.LSTMCell(num_hidden=num_hidden, prefix=f"lstm_l{i}_"))

    def sym_gen(seq_len: int) -> tuple[mx.sym.Symbol, tuple[str], tuple[str]]:
        data = mx.sym.Variable("data")
        label = mx.sym.Variable("softmax_label")
        embed = mx.sym.Embedding(data, input_dim=len(vocab), output_dim=EMBED, name="embed")
        stack.reset()
        outputs, _ = stack.unroll(seq_len, embed, layout=f"{layout}C", merge_outputs=True)
        pred = mx.sym.Reshape(outputs, shape=(-1, num_hidden))
        pred = mx.sym.FullyConnected(data=pred, num_hidden=len(vocab), name="pred")
        label = mx.sym.Reshape(label, shape=(-1,))
        pred = mx.sym.SoftmaxOutput(
            data=pred, label=label, use_ignore=True, ignore_label=INVALID_LABEL, name="softmax"
        )
        return pred, ("data",), ("softmax_label",)

    model = mx.mod.BucketingModule(
        sym_gen, default_bucket_key=data_train.default_bucket_key, context=mx.cpu()
    )
    model.bind(data_shapes=data_train.provide_data, label_shapes=data_train.provide_label)
    model.init_params(mx.init.Xavier(factor_type="in", magnitude=2.34))
    ((_, before),) = model.score(data_val, mx.metric.Perplexity(INVALID_LABEL))
    model.fit(
        train_data=data_train,
        eval_data=data_val,
        eval_metric=mx.metric.Perplexity(INVALID_LABEL),
        kvstore="device",
        optimizer="adam",
        optimizer_params={"learning_rate": lr, "wd": 1e-5, "clip_gradient": 5.0},
        num_epoch=epochs,
        batch_end_callback=mx.callback.Speedometer(batch_size, 40, auto_reset=False),
    )
    ((_, after),) = model.score(data_val, mx.metric.Perplexity(INVALID_LABEL))
    print(f"{len(vocab)} words, perplexity {before:.2f} before and {after:.2f} after")
    return {"words": len(vocab), "before": float(before), "after": float(after)}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)-15s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--sentences", type=int, default=3000, help="how many to train on")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-layers", type=int, default=2, help="stacked LSTMs")
    parser.add_argument("--num-hidden", type=int, default=48)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--fused", action="store_true", help="one operator for all time steps")
    main(**vars(parser.parse_args()))
