"""A small regression in numpy, with its steps in the trace.

    nrt-tracectl record -o trace.json --names -- python3 examples/python/numpy_step.py [STEPS]

Fits a line by gradient descent, on two NeuronCores in turn as far as the trace is concerned, and prints as JSON what it
recorded, so that a trace can be compared with it.
"""

import collections
import json
import sys

import numpy

import nrt_trace

recorded = collections.Counter()


def span(name, nc=0):
    """A span that counts itself when its start was recorded."""
    recorded[name] += int(nrt_trace.enabled(nc))
    return nrt_trace.span(name, nc)


def batch(random, weights):
    """Points on a plane, with noise."""
    points = random.normal(size=(256, weights.size))
    return points, points @ weights + random.normal(scale=0.01, size=256)


def main():
    """Runs the steps; an error that stays large is a failure."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    random = numpy.random.default_rng(7)
    target = numpy.array([1.5, -2.0, 0.25])
    weights = numpy.zeros_like(target)
    error = numpy.inf
    for step in range(steps):
        nc = step % 2
        with span("step", nc):
            with span("load batch", nc):
                points, values = batch(random, target)
            with span("gradient", nc):
                miss = points @ weights - values
                gradient = points.T @ miss / miss.size
            with span("update", nc):
                weights -= 0.5 * gradient
            error = float(numpy.mean(miss ** 2))
    fits = bool(numpy.allclose(weights, target, atol=0.05)) if steps >= 20 else True
    print(json.dumps({"ok": fits, "error": error, "recorded": dict(recorded)}))
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())
