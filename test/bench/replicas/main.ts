// Goodput of several proxies under one hidden limit, over real sockets, with and without sharing through Redis; then by
// simulation for more replicas than a machine can run. docs/replicas.md explains the results.
//
//   npm run bench:replicas [-- --replicas 1,2,4,8] [--seconds 30] [--warmup 20] [--smoke] [--json FILE]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt } from '../build.ts';
import type { GoodputTable } from '../goodput/tables.ts';
import { toText } from '../goodput/tables.ts';
import type { LimitKind } from '../goodput/kinds.ts';
import { KINDS } from '../goodput/kinds.ts';
import type { NodeCost } from './node-cost.ts';
import { measureNodeCost } from './node-cost.ts';
import { startProgram } from './redis.ts';
import type { ReplicasMeasurement } from './run.ts';
import { runReplicas } from './run.ts';
import type { SimulatedPool } from './simulated.ts';
import { simulatePool } from './simulated.ts';

/** Goals for eight replicas. */
const GOALS = {
  shared: { goodput: 0.97, waste: 0.006 },
  unshared: { goodput: 0.93, waste: 0.02 },
} as const;

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '1,2,4,8' },
    kinds: { type: 'string', default: 'token-bucket-100,fixed-100-1s' },
    seconds: { type: 'string', default: '30' },
    warmup: { type: 'string', default: '20' },
    smoke: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const { smoke } = values;
const counts = smoke ? [2] : values.replicas.split(',').map(Number);
const kinds = KINDS.filter(({ name }) => values.kinds.split(',').includes(name)).slice(0, smoke ? 1 : undefined);
const times = { seconds: smoke ? 1.5 : Number(values.seconds), warmup: smoke ? 0.5 : Number(values.warmup) };

ensureBuilt();
const folder = mkdtempSync(join(tmpdir(), 'tidegate-replicas-'));
const measured: ReplicasMeasurement[] = [];
try {
  for (const kind of kinds) {
    for (const count of counts) {
      for (const shared of [true, false]) await measureOne(kind, count, shared);
    }
  }
  console.log(`\n${toText(socketsTable())}`);
  const cost = await nodeCost();
  console.log(costLine(cost));
  const simulated = smoke ? [simulatePool(2, 100, 5)] : [8, 100, 1000].map((count) => simulatePool(count, 1000, 120));
  console.log(toText(simulatedTable(simulated)));
  const text = `${JSON.stringify({ times, measured, cost, simulated }, undefined, 2)}\n`;
  if (values.json !== undefined) writeFileSync(values.json, text);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
judge();

async function measureOne(kind: LimitKind, count: number, shared: boolean): Promise<void> {
  const redis = shared ? await startProgram(folder) : undefined;
  try {
    const one = await runReplicas({ kind, count, redis, folder, ...times });
    measured.push(one);
    console.log(
      `${kind.title}, ${count} ${shared ? 'shared' : 'not shared'}: goodput ${one.goodput.toFixed(3)}, waste ${one.waste.toFixed(4)}`,
    );
  } finally {
    await redis?.stop();
  }
}

async function nodeCost(): Promise<NodeCost> {
  const redis = await startProgram(folder);
  try {
    return await measureNodeCost(redis, smoke ? 200 : 20_000, smoke ? 5 : 200);
  } finally {
    await redis.stop();
  }
}

function costLine({ shared, own, call, callsPerRequest }: NodeCost): string {
  const added = shared - own + call * callsPerRequest;
  const parts = `${(shared - own).toFixed(2)} of logic, and ${call.toFixed(0)} a call, of which there are ${callsPerRequest.toFixed(4)} a request`;
  return `Sharing adds ${added.toFixed(1)} µs of processor time a request at 1000 requests a second of one replica: ${parts}.\n`;
}

function socketsTable(): GoodputTable {
  return {
    title: 'Over sockets',
    head: [
      'hidden limit',
      'replicas',
      'shared',
      'goodput',
      'waste',
      'failed',
      'p50',
      'p99',
      'calls/s',
      'Redis CPU',
      'µs a call',
    ],
    rows: measured.map(({ kind, count, shared, goodput, waste, failed, latency, redis }) => [
      kind,
      String(count),
      shared ? 'yes' : 'no',
      goodput.toFixed(3),
      waste.toFixed(4),
      `${(100 * failed).toFixed(1)} %`,
      `${latency.p50.toFixed(0)} ms`,
      `${latency.p99.toFixed(0)} ms`,
      ...(redis === undefined
        ? ['', '', '']
        : [redis.callsPerSecond.toFixed(0), `${(100 * redis.busy).toFixed(1)} %`, redis.perCall.toFixed(0)]),
    ]),
  };
}

function simulatedTable(runs: readonly SimulatedPool[]): GoodputTable {
  return {
    title: 'Simulated: a token bucket, offered twice what it allows',
    head: ['replicas', 'limit', 'goodput', 'waste', 'calls/s', 'calls a request', 'news/s'],
    rows: runs.map(({ count, limit, goodput, waste, calls, news }) => [
      String(count),
      `${limit}/s`,
      goodput.toFixed(3),
      waste.toFixed(4),
      calls.toFixed(0),
      (calls / (limit * goodput)).toFixed(2),
      news.toFixed(2),
    ]),
  };
}

/** Does not judge a smoke run, which only checks that everything works. */
function judge(): void {
  const faults = measured.flatMap(({ faults: own }) => own);
  for (const { kind, count, shared, goodput, waste } of smoke ? [] : measured) {
    const goal = shared ? GOALS.shared : GOALS.unshared;
    const isMet = goodput >= goal.goodput && waste <= goal.waste;
    if (count === 8 && !isMet) {
      faults.push(
        `${kind}, 8 ${shared ? 'shared' : 'not shared'}: goodput ${goodput.toFixed(4)}, waste ${waste.toFixed(4)}: missed`,
      );
    }
  }
  for (const fault of faults) console.error(`FAULT ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
  else if (smoke) console.log('Smoke run passed; figures of so short a run are not meaningful.');
}
