/**
 * What a call costs Redis: microseconds of its processor's time, from INFO cpu, by how many requests it tells of; and the
 * bytes that are kept of a limit.
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
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import { HappeningLog } from '../../src/sharing/protocol/usage-log.ts';
import type { Answer, Call } from '../../src/sharing/replicas/replica-protocol.ts';
import type { ScriptPool, Told } from '../support/script-pool.ts';
import { millis, openScriptPool } from '../support/script-pool.ts';

/** Microseconds a call that tells of nothing, and for each request told of. */
const GOAL = { call: 250, request: 5, state: 2560 };
const HOLDERS = 20;
const PASSED = 5000;
const STRETCHES = 10;
const LEARNED: RateSettings = {
  initialRate: undefined,
  maxRate: Number.POSITIVE_INFINITY,
  minRate: 0.1,
  cooldown: 1000,
};

const { values } = parseArgs({ options: { calls: { type: 'string', default: '2000' } } });
const calls = Number(values.calls);

async function measure(on: ScriptPool, told: number): Promise<{ readonly cost: number; readonly state: number }> {
  const limit = `told-${told}`;
  const script = new Script();
  await script.play(on, limit, 400, told);
  // The least of some stretches: others on the machine can only make it more.
  let cost = Number.POSITIVE_INFINITY;
  for (let left = STRETCHES; left > 0; left -= 1) {
    const before = await spent(on);
    await script.play(on, limit, calls / STRETCHES, told);
    cost = Math.min(cost, (STRETCHES * ((await spent(on)) - before)) / calls);
  }
  const [state = ''] = on.keys(limit);
  return { cost, state: await on.redis.strlen(state) };
}

/** Calls by turns, of which each tells of as many requests, one in two hundred rejected, and asks for as many tokens. */
class Script {
  #time = 1_700_000_000_000_000;
  #made = 0;
  #requests = 0;
  #terms: Answer['terms'] | undefined;

  async play(on: ScriptPool, limit: string, count: number, told: number): Promise<void> {
    for (let left = count; left > 0; left -= 1) {
      const batch = [this.#make(told)];
      this.#terms = (await on.play(limit, batch)).at(-1)?.terms;
    }
  }

  #make(requests: number): Told {
    this.#time += PASSED;
    this.#made += 1;
    const now = millis(this.#time);
    const log = new HappeningLog();
    for (let i = 0; i < requests; i += 1) {
      this.#requests += 1;
      const sentAt = now - (PASSED * HOLDERS * (1 - i / requests)) / 1000;
      log.givenBack();
      log.sent(this.#requests, sentAt);
      if (this.#requests % 200 === 0) {
        log.rejected({ sentAt, among: this.#requests, retryAfter: undefined, activeClients: 1 }, now);
      } else log.accepted(sentAt, this.#requests, now);
      log.ended(now);
    }
    const { epoch = 0, rate = Number.POSITIVE_INFINITY, ceiling = rate } = this.#terms ?? {};
    const call: Call = {
      holder: `holder-${this.#made % HOLDERS}`,
      now,
      happenings: log.take(),
      lent: 0,
      inFlight: 0,
      want: Math.max(1, requests),
      weight: 1,
      roundTrip: 1,
      known: { epoch, since: now - 1000, rate, ceiling },
      chance: 0.5,
      clients: [],
    };
    return { settings: requests === 0 ? { ...LEARNED, initialRate: 100 } : LEARNED, call, time: this.#time };
  }
}

async function spent({ redis }: ScriptPool): Promise<number> {
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
  const pool = await openScriptPool(redis);
  // A limit that has been felt: what nothing limits costs less.
  const rows: { readonly told: number; readonly cost: number; readonly state: number }[] = [];
  for (const told of [0, 1, 10, 50, 100]) rows.push({ told, ...(await measure(pool, told)) });
  const [none, , , , most] = rows;
  for (const { told, cost, state } of rows) {
    print(`${String(told).padStart(4)} requests told: ${cost.toFixed(0).padStart(5)} µs a call, ${state} bytes kept`);
  }
  const request = ((most?.cost ?? 0) - (none?.cost ?? 0)) / 100;
  print(
    `${request.toFixed(1)} µs a request (goals: ${GOAL.call} µs a call, ${GOAL.request} µs a request, ${GOAL.state} bytes)`,
  );
} finally {
  redis.disconnect();
  server.kill();
  await once(server, 'exit');
  rmSync(folder, { recursive: true });
}
