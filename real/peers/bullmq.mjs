// The peer BullMQ on one Redis, through ioredis, with one worker; like ours, it removes a job that is done.

import { createInterface } from "node:readline";
import { Queue, Worker } from "bullmq";

const [host, port] = process.argv[2].split(":");
// A worker that waits for a job must not fail after some retries.
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const now = () => process.hrtime.bigint();
const nanos = (from, to) => Number(to - from);

// Runs `work` with a queue and its worker, whose `handler` is null if jobs are claimed by hand.
async function withQueue(job, handler, work) {
  const queue = new Queue(job.name, { connection, defaultJobOptions: { removeOnComplete: true } });
  const worker = new Worker(job.name, handler, { connection, lockDuration: job.ttl_ms, autorun: false });
  try {
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    return await work(queue, worker);
  } finally {
    await worker.close();
    await queue.close();
  }
}

const claim = (job) =>
  withQueue(job, null, async (queue, worker) => {
    const [acquire, release] = [[], []];
    let begun;
    for (let i = 0; i <= job.operations; i += 1) {
      // The first round loads the scripts.
      if (i === 1) begun = now();
      await queue.add("job", job.name);
      const called = now();
      const claimed = await worker.getNextJob("worker", { block: false });
      const granted = now();
      await claimed.moveToCompleted(null, "worker", false);
      if (i === 0) continue;
      acquire.push(nanos(called, granted));
      release.push(nanos(granted, now()));
    }
    return {
      acquire_ns: acquire,
      release_ns: release,
      completed: job.operations,
      elapsed_ns: nanos(begun, now()),
    };
  });

function drain(job) {
  let completed = 0;
  return withQueue(job, async () => null, async (queue, worker) => {
    await queue.addBulk(Array.from({ length: job.operations }, () => ({ name: "job", data: job.name })));
    const begun = now();
    await new Promise((resolve, reject) => {
      worker.on("error", reject);
      worker.on("failed", (_, error) => reject(error));
      worker.on("completed", () => {
        completed += 1;
        if (completed === job.operations) resolve();
      });
      worker.run().catch(reject);
    });
    return { acquire_ns: [], release_ns: [], completed, elapsed_ns: nanos(begun, now()) };
  });
}

const scenarios = { claim, drain };
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const slice = await scenarios[job.scenario](job).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(slice)}\n`);
}
