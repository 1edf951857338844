import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BUILT } from '../build.ts';
import type { LimitKind } from '../goodput/kinds.ts';
import { capacity } from '../goodput/kinds.ts';
import { measure } from '../goodput/measure.ts';
import { METHOD } from '../goodput/method.ts';
import { findFaults, makeRow } from '../goodput/row.ts';
import { Program } from '../program.ts';
import type { BenchRedis, Spent } from './redis.ts';

export interface ReplicasRun {
  readonly kind: LimitKind;
  readonly count: number;
  /** The shared store; undefined if the replicas do not share. */
  readonly redis: BenchRedis | undefined;
  readonly folder: string;
  readonly seconds: number;
  readonly warmup: number;
}

export interface ReplicasMeasurement {
  readonly kind: string;
  readonly count: number;
  readonly shared: boolean;
  readonly goodput: number;
  readonly waste: number;
  readonly failed: number;
  readonly latency: { readonly p50: number; readonly p99: number };
  readonly redis: { readonly callsPerSecond: number; readonly busy: number; readonly perCall: number } | undefined;
  readonly faults: readonly string[];
}

/** Runs several proxies with one upstream, each from a cold start; each request goes to a random one. */
export async function runReplicas({
  kind,
  count,
  redis,
  folder,
  seconds,
  warmup,
}: ReplicasRun): Promise<ReplicasMeasurement> {
  const own = mkdtempSync(join(folder, 'run-'));
  const specFile = join(own, 'practice.json');
  writeFileSync(specFile, JSON.stringify({ ...kind.upstream, seed: 1 }));
  const practiceArgs = ['src/simulator/practice/main.ts', '--listen', '127.0.0.1:0', '--spec', specFile];
  const programs = [new Program({ command: process.execPath, args: practiceArgs, stopSignal: 'SIGKILL' })];
  try {
    const upstream = (await programs[0]?.printed(/practice upstream on (http:\S+)\n/)) ?? '';
    const urls: string[] = [];
    for (let replica = 0; replica < count; replica += 1) {
      const file = join(own, `replica-${replica}.yaml`);
      writeFileSync(file, configOf(upstream, redis));
      const args = [BUILT, 'serve', '--config', file];
      const program = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
      programs.push(program);
      urls.push(await program.printed(/"url":"(http:[^"]+)".*"msg":"listening"/));
    }
    const spending = spendIn(redis, 1000 * warmup, 1000 * seconds);
    const measurement = await measure({
      urls,
      upstream,
      clients: METHOD.clients,
      rate: METHOD.overload * capacity(kind),
      warmup: 1000 * warmup,
      span: 1000 * seconds,
      deadline: METHOD.deadline,
      isService: false,
      seed: 1,
    });
    const allowed = capacity(kind) * seconds;
    const row = makeRow('tidegate', measurement, allowed);
    const spent = await spending;
    return {
      kind: kind.title,
      count,
      shared: redis !== undefined,
      goodput: row.goodput,
      waste: row.waste,
      failed: row.failed,
      latency: measurement.latency,
      redis: spent && {
        callsPerSecond: spent.calls / seconds,
        busy: spent.cpu / seconds,
        perCall: (1e6 * spent.cpu) / Math.max(1, spent.calls),
      },
      faults: findFaults(row, allowed).map((fault) => `${kind.name}, ${count}: ${fault}`),
    };
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
}

/** Measures the cost in Redis during a span. */
async function spendIn(redis: BenchRedis | undefined, from: number, span: number): Promise<Spent | undefined> {
  if (redis === undefined) return undefined;
  await sleep(from);
  const before = await redis.spent();
  await sleep(span);
  const after = await redis.spent();
  return { cpu: after.cpu - before.cpu, calls: after.calls - before.calls };
}

/** Tidegate's defaults, except for addresses, the header that identifies clients, and the store. */
function configOf(upstream: string, redis: BenchRedis | undefined): string {
  return `listen: 127.0.0.1:0
admin: false
secret: the same for all replicas
log: {level: info, successes: 0}
upstreams: {practice: {url: "${upstream}"}}
clients: {key: [header:x-api-key, ip]}
state: ${redis === undefined ? '{store: memory}' : `{store: redis, url: "${redis.url}"}`}
`;
}
