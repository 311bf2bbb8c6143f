// The peer pg-boss on PostgreSQL, with one worker. Jobs that are done stay in its table, as they do in ours.

import { createInterface } from "node:readline";
import PgBoss from "pg-boss";

// No maintenance: neither of the two queues does any while it is measured.
const boss = new PgBoss({ connectionString: process.argv[2], supervise: false, schedule: false });
boss.on("error", (error) => process.stderr.write(`${error}\n`));
await boss.start();
const now = () => process.hrtime.bigint();
const nanos = (from, to) => Number(to - from);

// Claims the next job and finishes it; returns when it was claimed, and when finished.
async function work(name) {
  const [claimed] = await boss.fetch(name);
  const granted = now();
  await boss.complete(name, claimed.id);
  return [granted, now()];
}

async function claim(job) {
  const [acquire, release] = [[], []];
  let begun;
  for (let i = 0; i <= job.operations; i += 1) {
    // The first round opens the connections.
    if (i === 1) begun = now();
    await boss.send(job.name, { name: job.name });
    const called = now();
    const [granted, finished] = await work(job.name);
    if (i === 0) continue;
    acquire.push(nanos(called, granted));
    release.push(nanos(granted, finished));
  }
  return {
    acquire_ns: acquire,
    release_ns: release,
    completed: job.operations,
    elapsed_ns: nanos(begun, now()),
  };
}

async function drain(job) {
  const jobs = Array.from({ length: job.operations }, () => ({ name: job.name, data: { name: job.name } }));
  await boss.insert(jobs);
  const begun = now();
  for (let i = 0; i < job.operations; i += 1) await work(job.name);
  return { acquire_ns: [], release_ns: [], completed: job.operations, elapsed_ns: nanos(begun, now()) };
}

const scenarios = { claim, drain };
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const slice = await boss
    .createQueue(job.name, { expireInSeconds: Math.max(1, Math.ceil(job.ttl_ms / 1000)) })
    .then(() => scenarios[job.scenario](job))
    .catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(slice)}\n`);
}
