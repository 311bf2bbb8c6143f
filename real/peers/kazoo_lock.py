"""The peer kazoo: its locks and semaphore after ZooKeeper's recipes, used by threads that share one session;
with the argument `election`, its election."""

import logging
import sys
from threading import Lock as Mutex
from threading import Thread
from time import perf_counter_ns as now
from time import sleep

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

from slice import result, serve

logging.basicConfig(level=logging.CRITICAL)
client = KazooClient(hosts=sys.argv[1])
client.start()


# One in so many rounds writes, under a lock of readers and a writer: WRITES in slice.rs.
WRITES = 10


def alone(job, kind):
    path = f"/peers/{job['name']}"
    acquire, release = [], []
    for _ in range(job["operations"] + 1):
        lock = kind(path)
        begun = now()
        lock.acquire()
        granted = now()
        lock.release()
        acquire.append(granted - begun)
        release.append(now() - granted)
    # The first round creates the parent nodes.
    return result(acquire[1:], release[1:], job["operations"], sum(acquire[1:]) + sum(release[1:]))


def uncontended(job):
    return alone(job, client.Lock)


def read(job):
    return alone(job, client.ReadLock)


def semaphore(job):
    return lambda path: client.Semaphore(path, max_leases=job["permits"])


def permit(job):
    return alone(job, semaphore(job))


def elected(job):
    path = f"/peers/{job['name']}"
    acquire, release = [], []
    for _ in range(job["operations"] + 1):
        at = []
        election = client.Election(path, "candidate")
        begun = now()
        # It resigns when the function ends.
        election.run(lambda: at.append(now()))
        acquire.append(at[0] - begun)
        release.append(now() - at[0])
    return result(acquire[1:], release[1:], job["operations"], sum(acquire[1:]) + sum(release[1:]))


def together(count, work):
    threads = [Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def contended(job, kind_of):
    path, work = f"/peers/{job['name']}", job["work_ms"] / 1000
    client.ensure_path(path)
    acquire, release, ends = [], [], []
    begun = now()
    end = begun + job["millis"] * 1_000_000

    def contend(number):
        turn = number
        while (called := now()) < end:
            lock = kind_of(turn)(path)
            turn += 1
            try:
                lock.acquire(timeout=(end - called) / 1e9)
            except LockTimeout:
                return
            granted = now()
            acquire.append(granted - called)
            sleep(work)
            before = now()
            lock.release()
            ends.append(now())
            release.append(ends[-1] - before)
            sleep(work)

    together(job["contenders"], contend)
    return result(acquire, release, len(release), max(ends, default=begun) - begun)


def spread(job):
    mutex, count = Mutex(), 0
    client.ensure_path(f"/peers/{job['name']}")
    begun = now()
    end = begun + job["millis"] * 1_000_000

    def take(_):
        nonlocal count
        while now() < end:
            with mutex:
                count += 1
                number = count
            lock = client.Lock(f"/peers/{job['name']}/{number}")
            lock.acquire()
            lock.release()

    together(job["contenders"], take)
    return result([], [], count, now() - begun)


def hot(job):
    return contended(job, lambda turn: client.Lock)


def crowd(job):
    return contended(job, lambda turn: semaphore(job))


def mixed(job):
    return contended(job, lambda turn: client.ReadLock if turn % WRITES else client.WriteLock)


if sys.argv[2:] == ["election"]:
    serve({"uncontended": elected})
else:
    serve(
        {
            "uncontended": uncontended,
            "hot": hot,
            "space": spread,
            "permit": permit,
            "crowd": crowd,
            "read": read,
            "mixed": mixed,
        }
    )
