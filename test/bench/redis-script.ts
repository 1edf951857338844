/**
 * The cost of a script call in Redis: CPU microseconds from INFO cpu, by the number of requests it reports, with and without
 * senders whose requests are always rejected, with and without learning from latency, and the bytes stored for a limit.
 *
 *     npm run bench:script [-- --calls 2000]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { makeRequestAttributes } from '../../src/core/rate/breaker/request-attributes.ts';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import { UsageLog } from '../../src/sharing/protocol/usage-log.ts';
import type { LeaseResponse, LeaseRequest } from '../../src/sharing/replicas/replica-protocol.ts';
import type { ScriptRunner, ScriptCall } from '../support/redis/script-runner.ts';
import { millis, openScriptRunner } from '../support/redis/script-runner.ts';

/** Microseconds for a call without requests and for each reported request; bytes of state. */
const GOAL = { call: 250, request: 5, state: 2560 };
const CLIENTS = 20;
const SENT = 5000;
const STRETCHES = 10;
/** A prime, so that each sender is rejected. */
const REJECTED_INTERVAL = 199;
const SENDERS = Array.from({ length: 10 }, (_, i) =>
  makeRequestAttributes(`192.0.2.${i}`, `client-${i}`, i, `/orders/${i}`, 'salt'),
);
/** The requests that a call reports, the senders that are always rejected, and whether it learns from latency. */
const ROWS = [
  [0, 0],
  [1, 0],
  [10, 0],
  [50, 0],
  [100, 0],
  [10, 1],
  [50, 1],
  [50, 2],
  [50, 5],
  [1, 0, true],
  [10, 0, true],
  [50, 0, true],
  [100, 0, true],
] as const;
const LEARNED: RateSettings = {
  initialRate: undefined,
  maxRate: Number.POSITIVE_INFINITY,
  minRate: 0.1,
  cooldown: 1000,
};

const { values } = parseArgs({ options: { calls: { type: 'string', default: '2000' } } });
const calls = Number(values.calls);

async function measure(
  on: ScriptRunner,
  reported: number,
  rejectedSenders: number,
  learnsFromLatency: boolean,
): Promise<{ readonly cost: number; readonly state: number }> {
  const limit = `reported-${reported}-${rejectedSenders}-${learnsFromLatency}`;
  const script = new Script(rejectedSenders, learnsFromLatency);
  await script.play(on, limit, 400, reported);
  // The minimum of several measurements, because other load can only increase the cost.
  let cost = Number.POSITIVE_INFINITY;
  for (let left = STRETCHES; left > 0; left -= 1) {
    const before = await spent(on);
    await script.play(on, limit, calls / STRETCHES, reported);
    cost = Math.min(cost, (STRETCHES * ((await spent(on)) - before)) / calls);
  }
  const [state = ''] = on.keys(limit);
  return { cost, state: await on.redis.strlen(state) };
}

/**
 * Makes calls that report a number of requests, and request as many tokens. Ten senders take turns. The last ones are always
 * rejected; of the other requests, one in 199 is.
 */
class Script {
  readonly #rejectedSenders: number;
  readonly #learnsFromLatency: boolean;
  #time = 1_700_000_000_000_000;
  #made = 0;
  #requests = 0;
  #terms: LeaseResponse['terms'] | undefined;

  constructor(rejectedSenders: number, learnsFromLatency: boolean) {
    this.#rejectedSenders = rejectedSenders;
    this.#learnsFromLatency = learnsFromLatency;
  }

  async play(on: ScriptRunner, limit: string, count: number, reported: number): Promise<void> {
    for (let left = count; left > 0; left -= 1) {
      const batch = [this.#make(reported)];
      this.#terms = (await on.run(limit, batch)).at(-1)?.terms;
    }
  }

  #make(requests: number): ScriptCall {
    this.#time += SENT;
    this.#made += 1;
    const now = millis(this.#time);
    const log = new UsageLog();
    for (let i = 0; i < requests; i += 1) {
      this.#requests += 1;
      const sentAt = now - (SENT * CLIENTS * (1 - i / requests)) / 1000;
      log.tokenReturned();
      log.sent(this.#requests, sentAt);
      const sender = this.#requests % SENDERS.length;
      const attributes = SENDERS[sender];
      if (this.#requests % REJECTED_INTERVAL === 0 || sender >= SENDERS.length - this.#rejectedSenders) {
        const inFlightAtSend = this.#requests;
        log.rejected({ sentAt, inFlightAtSend, retryAfterMs: undefined, activeClients: 10, attributes }, now);
      } else log.accepted(sentAt, this.#requests, now, log.includesSources ? attributes : undefined);
      if (this.#learnsFromLatency) log.responded(now);
      log.ended(now);
    }
    const { epoch = 0, rate = Number.POSITIVE_INFINITY, ceiling = rate } = this.#terms ?? {};
    const call: LeaseRequest = {
      replicaId: `holder-${this.#made % CLIENTS}`,
      now,
      usage: log.take(),
      leasedTokens: 0,
      inFlight: 0,
      unanswered: 0,
      want: Math.max(1, requests),
      weight: 1,
      roundTrip: 1,
      known: { epoch, since: now - 1000, rate, ceiling },
      random: 0.5,
      waitingGroups: [],
      returningGroups: [],
    };
    const learned = { ...LEARNED, learnsFromLatency: this.#learnsFromLatency };
    return { settings: requests === 0 ? { ...learned, initialRate: 100 } : learned, call, time: this.#time };
  }
}

async function spent({ redis }: ScriptRunner): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return 1e6 * (seconds('used_cpu_user') + seconds('used_cpu_sys'));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const folder = mkdtempSync(join(tmpdir(), 'tidegate-redis-'));
const path = join(folder, 'socket');
const given = ['--port', '0', '--unixsocket', path, '--save', '', '--appendonly', 'no', '--dir', folder];
const server = spawn('redis-server', given, { stdio: 'ignore' });
const redis = new Redis({ path, retryStrategy: () => 20, maxRetriesPerRequest: null });
redis.on('error', () => undefined); // until it listens
try {
  const pool = await openScriptRunner(redis);
  // A learned limit, because calls without a limit cost less.
  const costs: number[] = [];
  for (const [reported, rejectedSenders, learnsFromLatency = false] of ROWS) {
    const { cost, state } = await measure(pool, reported, rejectedSenders, learnsFromLatency);
    costs.push(cost);
    const rejected = rejectedSenders === 0 ? '' : `, ${rejectedSenders} of 10 senders always rejected`;
    const latency = learnsFromLatency ? ', learning from latency' : '';
    print(
      `${String(reported).padStart(4)} requests reported${rejected}${latency}: ${cost.toFixed(0)} µs a call, ${state} bytes kept`,
    );
  }
  const request = ((costs[4] ?? 0) - (costs[0] ?? 0)) / 100;
  print(
    `${request.toFixed(1)} µs a request (goals: ${GOAL.call} µs a call, ${GOAL.request} µs a request, ${GOAL.state} bytes)`,
  );
} finally {
  redis.disconnect();
  server.kill();
  await once(server, 'exit');
  rmSync(folder, { recursive: true });
}
