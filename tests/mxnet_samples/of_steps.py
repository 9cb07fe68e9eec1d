"""Samples of the steps of optimizers: what becomes of the weights."""

import numpy as np

from mxnet_samples.sample import Sample

DRAW = np.random.default_rng(12)
SHAPE = (3, 4)


def single(number):
    """What an attribute in single precision is."""
    return float(np.float32(number))


LR, WD, HALF, BOUND, MOMENTUM = map(single, (0.1, 0.01, 0.5, 0.8, 0.9))
BETA1, BETA2, TINY = map(single, (0.9, 0.999, 1e-8))
RATE = {"lr": 0.1}
ALL = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.8}
FREE = {key: one for key, one in ALL.items() if key != "lr"}


def clip(array, bound=BOUND):
    """``array`` within bounds."""
    return np.clip(array, -bound, bound)


def moment(old, new, rate):
    """An average that forgets."""
    return rate * old + (1 - rate) * new


def sgd(weight, grad, *states, rate=LR, decay=WD):
    """A step; a first state that is not the weight again is a momentum."""
    del states
    return weight - rate * (clip(HALF * grad) + decay * weight)


def sgd_momentum(weight, grad, mom, *copy, rate=LR, decay=WD):
    """A step with momentum."""
    del copy
    return MOMENTUM * mom + sgd(weight, grad, rate=rate, decay=decay)


def nesterov(weight, grad, mom, *copy):
    """A step with Nesterov's momentum."""
    del copy
    moved = MOMENTUM * mom + sgd(weight, grad) - weight
    return weight - MOMENTUM * mom + (MOMENTUM + 1) * moved


def signum(weight, grad, mom):
    """A step by the sign of the momentum."""
    moved = moment(mom, -(clip(HALF * grad) + WD * weight), MOMENTUM)
    return (1 - LR * single(0.02)) * weight + LR * np.sign(moved)


def adam(weight, grad, mean, var):
    """A step of Adam."""
    slope = clip(HALF * grad + WD * weight)
    first, second = moment(mean, slope, BETA1), moment(var, slope**2, BETA2)
    return weight - LR * first / (np.sqrt(second) + TINY)


def adamw(weight, grad, mean, var, scale, *copy):
    """A step of Adam with decay apart; none where the scale is not a number."""
    del copy
    if not np.all(np.isfinite(scale)) or not np.all(scale):
        return weight
    slope = clip(scale * grad)
    first, second = moment(mean, slope, BETA1), moment(var, slope**2, BETA2)
    return weight - HALF * (LR * first / (np.sqrt(second) + TINY) + WD * weight)


def rmsprop(weight, grad, n):
    """A step of RMSProp, with bounds for the weight."""
    slope = clip(HALF * grad + WD * weight)
    square = moment(n, slope**2, single(0.95))
    return clip(weight - LR * slope / np.sqrt(square + TINY), single(0.3))


def rmspropalex(weight, grad, n, g, delta):
    """A step of centered RMSProp."""
    slope, rate = clip(HALF * grad + WD * weight), single(0.95)
    square, mean = moment(n, slope**2, rate), moment(g, slope, rate)
    return weight + single(0.9) * delta - LR * slope / np.sqrt(square - mean**2 + TINY)


def ftrl(weight, grad, z, n):
    """A step that leaves small sums at zero."""
    slope, least = clip(HALF * grad), single(0.3)
    root, before = np.sqrt(n + slope**2), np.sqrt(n)
    total = z + slope - (root - before) * weight / LR
    moved = (np.sign(total) * least - total) / ((1 + root) / LR + WD)
    return np.where(np.abs(total) > least, moved, 0)


def ftml(weight, grad, d, v, z):
    """The third step."""
    slope, rate = clip(HALF * grad + WD * weight), single(0.6)
    square = moment(v, slope**2, BETA2)
    scale = (1 - rate**3) / LR * (np.sqrt(square / (1 - BETA2**3)) + TINY)
    return -(moment(z, slope, rate) - (scale - rate * d) * weight) / scale


def adagrad(weight, grad, history):
    """A step by the sum of squares."""
    slope = clip(HALF * grad)
    return weight - LR * slope / np.sqrt(history + slope**2 + single(1e-7))


def lamb_direction(bias_correction):
    """The direction of the fourth step."""

    def reference(weight, grad, mean, var, *copy):
        del copy
        slope = clip(HALF * grad)
        first, second = moment(mean, slope, BETA1), moment(var, slope**2, BETA2)
        if bias_correction:
            first, second = first / (1 - BETA1**4), second / (1 - BETA2**4)
        return first / (np.sqrt(second) + single(1e-6)) + WD * weight

    return reference


def lamb_step(lower_bound=None, upper_bound=None):
    """A step as long as the ratio of two lengths, one of which has bounds."""

    def reference(weight, g, r1, r2, *copy):
        del copy
        bounds = [one and single(one) for one in (lower_bound, upper_bound)]
        length = np.clip(r1, *bounds) if any(bounds) else r1
        ratio = length / r2 if length[0] and r2[0] else 1.0
        return weight - LR * ratio * g

    return reference


def states(*names):
    """Positive numbers."""
    return {name: DRAW.uniform(0.1, 1, SHAPE) for name in names}


def step(op, reference, told, *names, **others):
    """A sample of one weight."""
    if op.startswith(("mp_", "_mp")):
        others["weight32"] = WEIGHT
    second = "g" if "phase2" in op else "grad"
    inputs = {"weight": WEIGHT, second: GRAD, **states(*names), **others}
    return made(op, inputs, told, reference)


def made(op, inputs, told, reference, **others):
    """A sample without a gradient."""
    return Sample(op, inputs, told, reference, "zero", by=(), why="an update", **others)


def lengths(first, second):
    """Lengths of a weight and of a step."""
    return {"r1": np.asarray([first]), "r2": np.asarray([second])}


WEIGHT, GRAD = DRAW.normal(size=SHAPE), DRAW.normal(size=SHAPE) * 3
MOVING, SECOND = {**ALL, "momentum": 0.9}, np.asarray([0.4, -1.2])
SCALED = {"lr": 0.1, "eta": 0.5, "wd": 0.01, "clip_gradient": 0.8}
PHASES = ({}, {"bias_correction": False})
RATIOS = [
    ((2.0, 0.5), {}),
    ((2.0, 0.5), {"upper_bound": 1.5}),
    ((0.1, 0.5), {"lower_bound": 0.4}),
    ((2.0, 0.0), {}),
    ((0.0, 0.5), {}),
]
SCALES = (0.25, 0.0, np.nan)


def several(op, has_momentum, is_mixed):
    """A sample of two weights at once."""
    own, inputs = (sgd_momentum if has_momentum else sgd), []
    for weight in (WEIGHT, SECOND):
        momentum = [DRAW.normal(size=weight.shape)] if has_momentum else []
        copy = [weight] if is_mixed else []
        inputs += [weight, DRAW.normal(size=weight.shape), *momentum, *copy]
    half = len(inputs) // 2

    def reference(*arrays):
        second = {"rate": single(0.2), "decay": 0.0}
        return [own(*arrays[:half]), own(*arrays[half:], **second)]

    told = {"lrs": (0.1, 0.2), "wds": (0.01, 0.0), "num_weights": 2, "rescale_grad": 0.5}
    told |= {"clip_gradient": 0.8, **({"momentum": 0.9} if has_momentum else {})}
    named = {f"arg{i}": one for i, one in enumerate(inputs)}
    return made(op, named, told, reference)


def preloaded(op, has_momentum, is_mixed):
    """The same with rates and decays in arrays."""
    plain = several(op, has_momentum, is_mixed)
    count, told = len(plain.inputs), dict(plain.attributes)
    more = {f"arg{count}": np.asarray([LR, single(0.2)]), f"arg{count + 1}": np.asarray([WD, 0.0])}
    del told["lrs"], told["wds"]

    def reference(*arrays):
        return plain.reference(*arrays[:-2])

    return made(f"preloaded_{op}", {**plain.inputs, **more}, told, reference)


def two_of_adamw(op, scale):
    """A step of AdamW of two weights."""
    inputs = []
    for weight in (WEIGHT, SECOND):
        moments = [DRAW.uniform(0.1, 1, weight.shape) for _ in "mv"]
        copy = [weight] if "_mp" in op else []
        inputs += [weight, DRAW.normal(size=weight.shape) * 3, *moments, *copy]
    half = len(inputs) // 2

    def reference(*arrays):
        given = arrays[:half], arrays[half:-1]
        return [adamw(*one[:4], arrays[-1]) for one in given]

    named = {f"arg{i}": one for i, one in enumerate([*inputs, np.asarray([scale])])}
    told = {"lrs": (0.1, 0.1), "wds": (0.01, 0.01), "etas": (0.5, 0.5), "num_weights": 2}
    return made(op, named, {**told, "clip_gradient": 0.8}, reference)


def two_of_lamb(op, **told):
    """A step of LAMB of two weights, the fourth one of both."""
    inputs = []
    for weight in (WEIGHT, SECOND):
        moments = [DRAW.uniform(0.1, 1, weight.shape) for _ in "mv"]
        copy = [weight] if "_mp" in op else []
        inputs += [weight, DRAW.normal(size=weight.shape) * 3, *moments, *copy]
    half = len(inputs) // 2
    bounds = {key: one for key, one in told.items() if "bound" in key}

    def reference(*arrays):
        found = []
        for one in (arrays[:half], arrays[half:]):
            way = lamb_direction(told.get("bias_correction", True))(*one)
            lengths = [np.linalg.norm(each)[None] for each in (one[0], way)]
            found.append(lamb_step(**bounds)(one[0], way, *lengths))
        return found

    named = {f"arg{i}": one for i, one in enumerate(inputs)}
    own = {"learning_rates": (0.1, 0.1), "wds": (0.01, 0.01), "step_count": (4, 4)}
    own |= {"num_tensors": 2, "rescale_grad": 0.5, "clip_gradient": 0.8}
    return made(op, named, {**own, **told}, reference)


def group_adagrad(weight, grad, history):
    """A step by the sums of mean squares of rows."""
    slope = clip(HALF * grad)
    total = history + (slope**2).mean(1, keepdims=True)
    return weight - LR * slope / np.sqrt(total + single(1e-5))


def rates_of_lars(lrs, weights, grads, wds):
    """Rates that follow two lengths, as far as there are some."""
    length, slope = np.sqrt(weights), np.sqrt(grads)
    moved = lrs * single(0.3) * length / (slope * HALF + wds * length + single(0.02))
    return np.where((length > 0) & (slope > 0), moved, lrs)


SAMPLES = [
    step("sgd_update", sgd, ALL),
    step("sgd_update", lambda weight, grad: weight - LR * grad, RATE),
    step("mp_sgd_update", sgd, ALL),
    step("sgd_mom_update", sgd_momentum, {**MOVING, "lazy_update": False}, "mom"),
    step("mp_sgd_mom_update", sgd_momentum, MOVING, "mom"),
    step("nag_mom_update", nesterov, MOVING, "mom"),
    step("mp_nag_mom_update", nesterov, MOVING, "mom"),
    step(
        "signsgd_update",
        lambda weight, grad: (1 - LR * WD) * weight - LR * np.sign(grad),
        ALL,
    ),
    step("signum_update", signum, {**MOVING, "wd_lh": 0.02}, "mom"),
    step("adam_update", adam, ALL, "mean", "var"),
    *[
        step(op, adamw, SCALED, "mean", "var", rescale_grad=np.asarray([scale]))
        for op in ("_adamw_update", "_mp_adamw_update")
        for scale in SCALES
    ],
    step("rmsprop_update", rmsprop, {**ALL, "clip_weights": 0.3}, "n"),
    step("rmspropalex_update", rmspropalex, ALL, "n", g=DRAW.normal(size=SHAPE) / 9, delta=GRAD),
    step("ftrl_update", ftrl, {**ALL, "lamda1": 0.3}, z=GRAD / 100, n=GRAD**2),
    step(
        "ftml_update",
        ftml,
        {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_grad": 0.8, "t": 3},
        "d",
        "v",
        "z",
    ),
    step(
        "_sparse_adagrad_update",
        adagrad,
        {"lr": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.8},
        "history",
    ),
    *[
        step(op, lamb_direction(not more), {**FREE, "t": 4, **more}, "mean", "var")
        for op in ("lamb_update_phase1", "mp_lamb_update_phase1")
        for more in PHASES
    ],
    *[
        step(
            op,
            lamb_step(**told),
            {**RATE, **told},
            **lengths(*both),
        )
        for op in ("lamb_update_phase2", "mp_lamb_update_phase2")
        for both, told in RATIOS
    ],
    several("multi_sgd_update", has_momentum=False, is_mixed=False),
    several("multi_sgd_mom_update", has_momentum=True, is_mixed=False),
    several("multi_mp_sgd_update", has_momentum=False, is_mixed=True),
    several("multi_mp_sgd_mom_update", has_momentum=True, is_mixed=True),
    *[
        preloaded(op, has_momentum=op.endswith("mom_update"), is_mixed="_mp" in op)
        for op in (
            "multi_sgd_update",
            "multi_sgd_mom_update",
            "multi_mp_sgd_update",
            "multi_mp_sgd_mom_update",
        )
    ],
    *[
        two_of_adamw(op, scale)
        for op in ("_multi_adamw_update", "_multi_mp_adamw_update")
        for scale in SCALES
    ],
    *[
        two_of_lamb(op, **told)
        for op in ("_multi_lamb_update", "_multi_mp_lamb_update")
        for told in ({}, {"bias_correction": False}, {"upper_bound": 0.5}, {"lower_bound": 9.0})
    ],
    step(
        "_contrib_group_adagrad_update",
        group_adagrad,
        {"lr": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.8},
        history=DRAW.uniform(0.1, 1, (3, 1)),
    ),
    made(
        "multi_sum_sq",
        {"arg0": WEIGHT, "arg1": SECOND},
        {"num_arrays": 2},
        lambda *arrays: np.asarray([np.sum(one**2) for one in arrays], np.float32),
        rtol=1e-6,
    ),
    made(
        "multi_lars",
        {
            "lrs": np.asarray([0.1, 0.2, 0.3]),
            "weights_sum_sq": np.asarray([2.0, 0.0, 3.0]),
            "grads_sum_sq": np.asarray([0.5, 1.0, 0.0]),
            "wds": np.asarray([0.01, 0.0, 0.2]),
        },
        {"eta": 0.3, "eps": 0.02, "rescale_grad": 0.5},
        rates_of_lars,
    ),
    Sample(
        "_sample_unique_zipfian",
        {},
        {"range_max": 9, "shape": (2, 4)},
        draws=True,
        gradient="zero",
        why="draws are whole numbers",
    ),
]
