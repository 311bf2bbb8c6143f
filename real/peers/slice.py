"""Runs slices of work: reads each as a line of JSON, and prints its result as one.

Each peer supplies the functions that acquire and release.
"""

import json
import sys


def answer(slice_):
    print(json.dumps(slice_), flush=True)


def serve(scenarios):
    """Runs the jobs from the standard input, each with the function of its scenario."""
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer(scenarios[job["scenario"]](job))
        except Exception as error:  # `real peers` reports every error
            answer({"error": f"{type(error).__name__}: {error}"})


def result(acquire_ns, release_ns, completed, elapsed_ns):
    return {
        "acquire_ns": acquire_ns,
        "release_ns": release_ns,
        "completed": completed,
        "elapsed_ns": elapsed_ns,
    }
