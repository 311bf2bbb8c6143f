"""The peer redis-py: its blocking Lock without contention, its asyncio Lock with many contenders."""

import asyncio
import sys
from time import perf_counter_ns as now

import redis
import redis.asyncio

from slice import result, serve

host, port = sys.argv[1].split(":")


def uncontended(job):
    client = redis.Redis(host=host, port=int(port))
    name, ttl = job["name"] + ":0", job["ttl_ms"] / 1000
    acquire, release = [], []
    for _ in range(job["operations"] + 1):
        lock = client.lock(name, timeout=ttl)
        begun = now()
        lock.acquire()
        granted = now()
        lock.release()
        acquire.append(granted - begun)
        release.append(now() - granted)
    # The first round opens the connection and loads the scripts.
    return result(acquire[1:], release[1:], job["operations"], sum(acquire[1:]) + sum(release[1:]))


def client(job):
    """Returns a client with a connection for each contender: with fewer, it would fail instead of waiting."""
    return redis.asyncio.Redis(host=host, port=int(port), max_connections=job["contenders"] + 1)


async def contended(job):
    redis_ = client(job)
    name, ttl, work = job["name"] + ":0", job["ttl_ms"] / 1000, job["work_ms"] / 1000
    acquire, release = [], []
    await redis_.ping()
    begun = last = now()
    end = begun + job["millis"] * 1_000_000

    async def contend():
        nonlocal last
        while (called := now()) < end:
            lock = redis_.lock(name, timeout=ttl)
            if not await lock.acquire(blocking_timeout=(end - called) / 1e9):
                return
            granted = now()
            acquire.append(granted - called)
            await asyncio.sleep(work)
            before = now()
            await lock.release()
            last = now()
            release.append(last - before)
            await asyncio.sleep(work)

    await asyncio.gather(*(contend() for _ in range(job["contenders"])))
    await redis_.aclose()
    return result(acquire, release, len(release), last - begun)


async def spread(job):
    redis_ = client(job)
    ttl, count = job["ttl_ms"] / 1000, 0
    await redis_.ping()
    begun = now()
    end = begun + job["millis"] * 1_000_000

    async def take():
        nonlocal count
        while now() < end:
            count += 1
            lock = redis_.lock(f"{job['name']}:{count}", timeout=ttl)
            await lock.acquire()
            await lock.release()

    await asyncio.gather(*(take() for _ in range(job["contenders"])))
    elapsed = now() - begun
    await redis_.aclose()
    return result([], [], count, elapsed)


serve(
    {
        "uncontended": uncontended,
        "hot": lambda job: asyncio.run(contended(job)),
        "space": lambda job: asyncio.run(spread(job)),
    }
)
