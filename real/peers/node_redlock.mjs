// The peer node-redlock on one Redis, through ioredis, with its default settings but for the retry count.

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import ioredis from "ioredis";
import redlock from "redlock";

const Redis = ioredis.default ?? ioredis;
const Redlock = redlock.default ?? redlock;
const [host, port] = process.argv[2].split(":");
const client = new Redis({ host, port: Number(port) });
const locks = new Redlock([client]);
const RETRY_MS = 200;
const now = () => process.hrtime.bigint();
const nanos = (from, to) => Number(to - from);

async function alone(job, keys) {
  const [acquire, release] = [[], []];
  for (let i = 0; i <= job.operations; i += 1) {
    const begun = now();
    const lock = await locks.acquire(keys, job.ttl_ms);
    const granted = now();
    await lock.release();
    acquire.push(nanos(begun, granted));
    release.push(nanos(granted, now()));
  }
  // The first round opens the connection and loads the scripts.
  acquire.shift();
  release.shift();
  const elapsed = [...acquire, ...release].reduce((sum, each) => sum + each, 0);
  return { acquire_ns: acquire, release_ns: release, completed: job.operations, elapsed_ns: elapsed };
}

const names = (job, count) => Array.from({ length: count }, (_, number) => `${job.name}:${number}`);
const uncontended = (job) => alone(job, names(job, 1));
const several = (job) => alone(job, names(job, job.keys));

async function contended(job) {
  const [acquire, release] = [[], []];
  const begun = now();
  let last = begun;
  const end = begun + BigInt(job.millis) * 1_000_000n;
  async function contend() {
    for (let called = now(); called < end; called = now()) {
      // redlock takes no deadline: allow as many retries as fit before the end.
      const retryCount = Math.floor(nanos(called, end) / 1e6 / RETRY_MS);
      let lock;
      try {
        lock = await locks.acquire([`${job.name}:0`], job.ttl_ms, { retryCount, retryDelay: RETRY_MS });
      } catch (error) {
        if (error.name === "ExecutionError") return;
        throw error;
      }
      const granted = now();
      acquire.push(nanos(called, granted));
      await sleep(job.work_ms);
      const before = now();
      await lock.release();
      last = now();
      release.push(nanos(before, last));
      await sleep(job.work_ms);
    }
  }
  await Promise.all(Array.from({ length: job.contenders }, contend));
  const elapsed = nanos(begun, last);
  return { acquire_ns: acquire, release_ns: release, completed: release.length, elapsed_ns: elapsed };
}

async function spread(job) {
  let completed = 0;
  const begun = now();
  const end = begun + BigInt(job.millis) * 1_000_000n;
  async function take() {
    while (now() < end) {
      completed += 1;
      const lock = await locks.acquire([`${job.name}:${completed}`], job.ttl_ms);
      await lock.release();
    }
  }
  await Promise.all(Array.from({ length: job.contenders }, take));
  return { acquire_ns: [], release_ns: [], completed, elapsed_ns: nanos(begun, now()) };
}

const scenarios = { uncontended, hot: contended, space: spread, several };
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const slice = await scenarios[job.scenario](job).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(slice)}\n`);
}
client.disconnect();
