"""Runs slices of work: reads each as a line of JSON and answers with one. A peer adds acquire and release."""

import json
import sys


def answer(slice_):
    print(json.dumps(slice_), flush=True)


def serve(scenarios):
    """Runs the jobs that come on the standard input, by the function of their scenario."""
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer(scenarios[job["scenario"]](job))
        except Exception as error:  # whatever it is, the other side shall hear of it
            answer({"error": f"{type(error).__name__}: {error}"})


def result(acquire_ns, release_ns, completed, elapsed_ns):
    return {
        "acquire_ns": acquire_ns,
        "release_ns": release_ns,
        "completed": completed,
        "elapsed_ns": elapsed_ns,
    }
