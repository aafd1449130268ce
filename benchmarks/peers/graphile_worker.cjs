// Graphile Worker on our workloads, run by graphile_peer.py with NODE_PATH set. A producer prints one line of JSON; a
// worker process reports as windlass.cli.bench.child does, by the same monotonic clock (CLOCK_MONOTONIC).
"use strict";

const { createRequire } = require("node:module");
const { createInterface } = require("node:readline");
const { Logger, makeWorkerUtils, run, runOnce } = require("graphile-worker");
const { Pool } = createRequire(require.resolve("graphile-worker"))("pg");

const PAYLOAD = { payload: "x".repeat(186) }; // 200 bytes of JSON
const SILENT = new Logger(() => () => {});

// The settings of the project's own throughput test (perfTest/graphile.config.js, and its page on performance): 24 jobs
// at a time, a pool of one connection more, ends written in batches as soon as there are some, a local queue of 500,
// which is the argument here.
const throughput = (size, jobs = 24) => ({
  concurrentJobs: jobs,
  maxPoolSize: jobs + 1,
  localQueue: { size, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
});

// Those of its own latency test: no local queue and no batches, which trade latency for throughput. A notification
// starts one of a few idle workers.
const latency = (jobs) => ({ concurrentJobs: jobs, maxPoolSize: jobs + 2 });

const now = () => Number(process.hrtime.bigint()) / 1e9;
const pause = (seconds) => new Promise((done) => setTimeout(done, Math.max(seconds, 0) * 1000));
const print = (facts) => process.stdout.write(JSON.stringify(facts) + "\n");
const report = (event, facts = {}) => print({ event, at: now(), ...facts });

async function withUtils(url, connections, use) {
  const maxPoolSize = Math.max(connections, 2);
  const utils = await makeWorkerUtils({ connectionString: url, maxPoolSize, logger: SILENT });
  try {
    return await use(utils);
  } finally {
    await utils.release();
  }
}

// ---------------------------------------------------------------------- producers

const install = (url) => withUtils(url, 2, (utils) => utils.migrate());

const enqueue = (url, count, callers) =>
  withUtils(url, callers, async (utils) => {
    const call = async (number) => {
      for (let done = 0; done < number; done++) await utils.addJob("noop", PAYLOAD);
    };
    const all = (number) => Promise.all(Array.from({ length: callers }, () => call(number)));
    await all(1); // connects
    const began = now();
    await all(Math.floor(count / callers));
    print({ seconds: now() - began });
  });

const bulk = (url, count, keyedEvery) =>
  withUtils(url, 1, async (utils) => {
    await utils.addJob("noop", PAYLOAD);
    const began = now();
    const specs = Array.from({ length: count }, (_, number) => ({
      identifier: "noop",
      payload: PAYLOAD,
      ...(keyedEvery && number % keyedEvery === 0 ? { jobKey: `k${number}` } : {}),
    }));
    await utils.addJobs(specs);
    print({ seconds: now() - began });
  });

const send = (url, total, every) =>
  withUtils(url, 1, async (utils) => {
    const sent = [];
    let nextAt = now();
    for (let number = 0; number < total; number++) {
      nextAt += every;
      await pause(nextAt - now());
      await utils.addJob("stamp", { number });
      sent.push([number, now()]);
    }
    print({ sent });
  });

// ---------------------------------------------------------------------- the worker process

// Starts with the first fetch and stops with the last end written, by the names of its prepared statements: its start
// and its stop are not measured.
class Clock {
  count = 0;
  last = 0;
  #reported = null;

  watch(client) {
    const query = client.query.bind(client);
    client.query = (...given) => {
      const name = given[0]?.name ?? "";
      if (this.#reported === null && name.startsWith("get_job")) {
        this.#reported = now();
        report("ready", { rss: 0 });
      }
      const answer = query(...given);
      if (name.startsWith("complete_job")) answer.then(() => this.#completed(given[0].values[0]), () => {});
      return answer;
    };
  }

  #completed(ids) {
    this.count += Array.isArray(ids) ? ids.length : 1;
    this.last = now();
    if (this.last - this.#reported < 1) return;
    this.#reported = this.last;
    report("count", { count: this.count });
  }
}

async function work(kind, url, ...numbers) {
  let bodies = 0;
  const starts = [];
  const taskList = {
    noop: async () => {
      bodies += 1;
    },
    stamp: async ({ number }) => {
      starts.push([number, now()]);
      bodies += 1;
      report("count", { count: bodies });
    },
  };
  const { maxPoolSize, ...settings } = kind === "drain" ? throughput(...numbers) : latency(...numbers);
  const clock = new Clock();
  const pgPool = new Pool({ connectionString: url, max: maxPoolSize });
  pgPool.on("connect", (client) => clock.watch(client));
  pgPool.on("error", () => {});
  const options = { pgPool, taskList, logger: SILENT, noHandleSignals: true, preset: { worker: settings } };
  report("prepared");
  await new Promise((go) => createInterface({ input: process.stdin }).once("line", go));
  if (kind === "drain") await runOnce(options);
  else {
    const stopped = new Promise((stop) => process.once("SIGTERM", stop));
    const runner = await run(options);
    await stopped;
    await runner.stop();
  }
  await pgPool.end();
  report("end", { count: clock.count, last: clock.last, bodies, code: 0, starts, peak: 0 });
}

// ----------------------------------------------------------------------

const [kind, url, ...numbers] = process.argv.slice(2);
const programs = { install, enqueue, bulk, send };
const program = programs[kind] ?? ((...given) => work(kind, ...given));
program(url, ...numbers.map(Number)).then(
  () => process.exit(0), // stdin is still open
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
