// The peer redis-semaphore on one Redis, through ioredis, with its default settings.

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import ioredis from "ioredis";
import semaphores from "redis-semaphore";

const Redis = ioredis.default ?? ioredis;
const { Semaphore } = semaphores;
const [host, port] = process.argv[2].split(":");
const client = new Redis({ host, port: Number(port) });
const now = () => process.hrtime.bigint();
const nanos = (from, to) => Number(to - from);

const semaphore = (job, acquireTimeout) =>
  new Semaphore(client, job.name, job.permits, { lockTimeout: job.ttl_ms, acquireTimeout });

async function uncontended(job) {
  const [acquire, release] = [[], []];
  for (let i = 0; i <= job.operations; i += 1) {
    const permit = semaphore(job, job.ttl_ms);
    const begun = now();
    await permit.acquire();
    const granted = now();
    await permit.release();
    acquire.push(nanos(begun, granted));
    release.push(nanos(granted, now()));
  }
  // The first round opens the connection and loads the scripts.
  acquire.shift();
  release.shift();
  const elapsed = [...acquire, ...release].reduce((sum, each) => sum + each, 0);
  return { acquire_ns: acquire, release_ns: release, completed: job.operations, elapsed_ns: elapsed };
}

async function contended(job) {
  const [acquire, release] = [[], []];
  const begun = now();
  let last = begun;
  const end = begun + BigInt(job.millis) * 1_000_000n;
  async function contend() {
    for (let called = now(); called < end; called = now()) {
      const permit = semaphore(job, Math.ceil(nanos(called, end) / 1e6));
      if (!(await permit.tryAcquire())) return;
      const granted = now();
      acquire.push(nanos(called, granted));
      await sleep(job.work_ms);
      const before = now();
      await permit.release();
      last = now();
      release.push(nanos(before, last));
      await sleep(job.work_ms);
    }
  }
  await Promise.all(Array.from({ length: job.contenders }, contend));
  const elapsed = nanos(begun, last);
  return { acquire_ns: acquire, release_ns: release, completed: release.length, elapsed_ns: elapsed };
}

const scenarios = { permit: uncontended, crowd: contended };
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const slice = await scenarios[job.scenario](job).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(slice)}\n`);
}
client.disconnect();
