"""Samples of sliding windows, Fourier transforms, the count sketch and of events that excite."""

import itertools

import numpy as np

from mxnet_samples.sample import Sample

WINDOWS = [  # lengths of the image, attributes with a number for each axis
    ((2, 2, 3, 4), {"kernel": (2, 2)}),
    ((1, 2, 5, 6), {"kernel": (3, 2), "stride": (2, 1), "dilate": (1, 2), "pad": (1, 0)}),
    ((1, 1, 4, 5), {"kernel": (1, 3), "pad": (0, 2), "stride": (2, 2)}),
    ((2, 2, 6), {"kernel": (3,), "stride": (2,)}),
]


def settings(axes, kernel, stride=None, dilate=None, pad=None):
    """All attributes of a window."""
    return kernel, stride or (1,) * axes, dilate or (1,) * axes, pad or (0,) * axes


def windows(lengths, **attributes):
    """What each entry of a window sees: a slice of the padded image for each axis."""
    kernel, stride, dilate, pad = settings(len(lengths), **attributes)
    counts = [
        (length + 2 * p - d * (k - 1) - 1) // s + 1
        for length, k, s, d, p in zip(lengths, kernel, stride, dilate, pad, strict=True)
    ]
    for at in itertools.product(*map(range, kernel)):
        yield tuple(
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(at, dilate, counts, stride, strict=True)
        )


def im2col(**attributes):
    """A row for each channel and entry of the window, a column for each of its places."""

    def reference(data):
        *_, pad = settings(data.ndim - 2, **attributes)
        padded = np.pad(data, [(0, 0), (0, 0), *[(p, p) for p in pad]])
        seen = [padded[(..., *one)] for one in windows(data.shape[2:], **attributes)]
        count, channels = data.shape[:2]
        return np.stack(seen, 2).reshape(count, channels * len(seen), -1)

    return reference


def col2im(lengths, **attributes):
    """The sum of all that windows see."""

    def reference(data):
        count, rows, _ = data.shape
        *_, pad = settings(len(lengths), **attributes)
        inside = list(windows(lengths, **attributes))
        channels = rows // len(inside)
        padded = np.zeros((count, channels, *np.add(lengths, 2 * np.asarray(pad))))
        for i, one in enumerate(inside):
            place = padded[(..., *one)]
            place += data.reshape(count, channels, len(inside), -1)[:, :, i].reshape(place.shape)
        return padded[(..., *[slice(p, p + n) for p, n in zip(pad, lengths, strict=True)])]

    return reference


def columns(lengths, attributes):
    """The lengths that ``im2col`` makes of an image."""
    return im2col(**attributes)(np.empty(lengths)).shape


def fft(data):
    """Real and imaginary parts take turns."""
    numbers = np.fft.fft(data)
    return np.stack([numbers.real, numbers.imag], -1).reshape(*data.shape[:-1], -1)


def ifft(data):
    """The real part, times the length."""
    numbers = data[..., ::2] + 1j * data[..., 1::2]
    return np.fft.ifft(numbers).real * numbers.shape[-1]


def count_sketch(length):
    """Entries with signs, added up at places."""

    def reference(data, places, signs):
        made = np.zeros((*data.shape[:-1], length))
        at = (..., places.reshape(-1).astype(int))
        np.add.at(made, at, data * signs.reshape(-1))
        return made

    return reference


def hawkesll(lda, alpha, beta, start, *events):
    """Log likelihood of events, and the state at the end."""
    lags, marks, valid_length, max_time = events
    total, state = np.zeros(len(lda)), start.copy()

    def pass_(i, kind, since):
        """The time that passes without an event of this kind."""
        fading = np.exp(-beta[kind] * since)
        expected = lda[i, kind] * since + alpha[kind] * state[i, kind] * (1 - fading)
        state[i, kind] *= fading
        return expected

    for i in range(len(lda)):
        last, time = np.zeros(len(alpha)), 0.0
        for lag, mark in list(zip(lags[i], marks[i], strict=True))[: int(valid_length[i])]:
            time += lag
            total[i] -= pass_(i, mark, time - last[mark])
            total[i] += np.log(lda[i, mark] + alpha[mark] * beta[mark] * state[i, mark])
            state[i, mark] += 1
            last[mark] = time
        for kind, one in enumerate(last):
            total[i] -= pass_(i, kind, max_time[i] - one)
    return total, state


EVENTS = {
    "lda": np.asarray([[0.7, 1.1], [1.6, 0.6], [0.9, 1.3]]),
    "alpha": np.asarray([0.2, 0.4]),
    "beta": np.asarray([0.8, 1.5]),
    "state": np.asarray([[0.0, 0.5], [0.3, 0.1], [0.2, 0.9]]),
    "lags": np.asarray([[0.6, 0.2, 0.9, 0.4], [0.3, 0.8, 0.5, 0.7], [0.2, 0.1, 0.4, 0.6]]),
    "marks": np.asarray([[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], "int32"),
    "valid_length": np.asarray([4.0, 2.0, 0.0]),
    "max_time": np.asarray([3.0, 2.5, 1.5]),
}

PLACES = np.asarray([[0.0, 3.0, 0.0, 4.0]])
SIGNS = np.asarray([[1.0, -1.0, -1.0, 1.0]])

SAMPLES = [
    *[Sample("im2col", {"data": image}, told, im2col(**told)) for image, told in WINDOWS],
    *[
        Sample(
            "col2im",
            {"data": columns(image, told)},
            {"output_size": image[2:], **told},
            col2im(image[2:], **told),
        )
        for image, told in WINDOWS
    ],
    Sample("_contrib_fft", {"data": (2, 6)}, {}, fft),
    Sample("_contrib_fft", {"data": (2, 1, 2, 3)}, {"compute_size": 64}, fft),
    Sample("_contrib_ifft", {"data": (2, 6)}, {}, ifft),
    Sample("_contrib_ifft", {"data": (2, 1, 2, 8)}, {}, ifft),
    Sample(
        "_contrib_count_sketch",
        {"data": (3, 4), "h": PLACES, "s": SIGNS},
        {"out_dim": 5},
        count_sketch(5),
        by=["data", "s"],
    ),
    Sample(
        "_contrib_count_sketch",
        {"data": (2, 1, 4), "h": PLACES, "s": SIGNS},
        {"out_dim": 6, "processing_batch_size": 16},
        count_sketch(6),
        by=["data"],
    ),
    Sample(
        "_contrib_hawkesll",
        EVENTS,
        {},
        hawkesll,
        by=["lda", "alpha", "beta", "state", "lags", "max_time"],
    ),
]
