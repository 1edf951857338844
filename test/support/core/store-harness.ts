/** Gates over one store of each kind, in real time, so that the same contract tests run against each. */
import { performance } from 'node:perf_hooks';
import { readFile } from '../../../src/cli/read-file.ts';
import { createCoalescedTimer } from '../../../src/process/cluster/coalesced-timer.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { createSupplyHandlers } from '../../../src/process/worker-membership.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import type { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { shareOverRedis } from '../../../src/process/sharing/redis-sharing.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import type { MemoryStoreOptions } from '../../../src/store/memory-store-options.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { WakeTimer } from '../../../src/http/wake-timer.ts';
import { atEnd } from '../at-end.ts';
import { CredentialTicket } from './credential-ticket.ts';
import { response, SHARED, upstreamSettings } from './policy-builders.ts';
import { startRedis } from '../redis/redis-server.ts';

export const STORES = ['memory', 'leases', 'redis'] as const;

const clock = { now: (): Millis => performance.now() };
const random = Math.random;
const MAX_WAIT: Millis = 5000;

/** A request at a gate. */
export interface HarnessTicket {
  readonly ticket: Ticket;
  /** Undefined while it waits. */
  readonly admission: AdmissionResult | undefined;
  /** When the result arrived. */
  readonly at: Millis;
  /** Resolves when the result has arrived. */
  readonly decided: Promise<unknown>;
}

/** A gate over a store, with the actions of a request. */
export class StoreHarness {
  readonly store: MemoryStore;
  readonly gate: Gate;
  readonly timer: WakeTimer;
  readonly #maxWait: Millis;

  constructor(settings: UpstreamSettings, options: Partial<MemoryStoreOptions> = {}) {
    const listen = (): void => undefined;
    this.store = new MemoryStore({ upstreams: [settings], maxTracked: 100, random, listen, ...options });
    this.gate = new Gate(this.store, listen);
    this.timer = new WakeTimer(this.gate, clock);
    this.#maxWait = settings.queue.maxWait;
    atEnd(() => this.timer.stop());
  }

  arrive(client = 'client', refs: readonly LimitRef[] = [SHARED], credential = ''): HarnessTicket {
    const { promise: decided, resolve } = Promise.withResolvers<unknown>();
    const standing: { ticket: Ticket; admission: AdmissionResult | undefined; at: Millis; decided: Promise<unknown> } =
      {
        ticket: new CredentialTicket(credential, 'up', client, 1, refs, (admission, at) => {
          Object.assign(standing, { admission, at });
          resolve(admission);
        }),
        admission: undefined,
        at: clock.now(),
        decided,
      };
    standing.admission = this.gate.requestAdmission(standing.ticket, clock.now() + this.#maxWait, clock.now());
    if (standing.admission !== undefined) resolve(standing.admission);
    this.timer.rearm();
    return standing;
  }

  send({ ticket }: HarnessTicket): void {
    this.gate.onSent(ticket, clock.now());
  }

  /** Delivers the head of a response and its end. */
  answer({ ticket }: HarnessTicket, outcome: AttemptOutcome = response(200)): void {
    this.gate.onOutcome(ticket, outcome, clock.now());
    this.gate.onAttemptEnd(ticket, clock.now());
    this.gate.onExchangeEnd(ticket);
    this.timer.rearm();
  }

  /** Cancels the request, sent or not. */
  cancel({ ticket }: HarnessTicket): void {
    this.gate.cancel(ticket, clock.now());
    this.gate.onExchangeEnd(ticket);
    this.timer.rearm();
  }
}

/** Opens two gates that share a store; over memory both are the same gate. */
export async function openStoreHarnesses(
  kind: (typeof STORES)[number],
  settings: Partial<UpstreamSettings> = {},
  options: Pick<MemoryStoreOptions, 'maxLimits'> = {},
): Promise<readonly [StoreHarness, StoreHarness]> {
  const upstream = upstreamSettings({ queue: { maxWait: MAX_WAIT, maxDepth: 1000 }, ...settings });
  switch (kind) {
    case 'memory': {
      const harness = new StoreHarness(upstream, options);
      return [harness, harness];
    }
    case 'leases': {
      const open = openLeasingHarnesses(upstream, options);
      return [open(0), open(1)];
    }
    case 'redis': {
      const { url } = await startRedis();
      return [await openRedisHarness(url, upstream, options), await openRedisHarness(url, upstream, options)];
    }
  }
}

function openLeasingHarnesses(
  upstream: UpstreamSettings,
  options: Partial<MemoryStoreOptions>,
): (client: number) => StoreHarness {
  const limitClients = new Map<number, LimitClient>();
  // Messages arrive in a later turn of the event loop, as between processes.
  const server: LimitServer = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: ({ nested }) =>
        new LocalMeter(upstream.nested?.find(({ name }) => name === nested)?.rate ?? upstream.rate, random),
      listen: () => undefined,
      send: (to, updates) => void setImmediate(() => limitClients.get(to)?.onUpdates(updates, clock.now())),
      maxLimits: 100,
    },
    upstream.scope === 'upstream' ? [SHARED] : [],
  );
  const timer = new WakeTimer(server, clock);
  atEnd(() => timer.stop());
  return (id) => {
    const client: LimitClient = new LimitClient({
      schedule: createCoalescedTimer(() => client.flush(clock.now())),
      send: (report) =>
        void setImmediate(() => {
          server.onReport(id, report, clock.now());
          timer.rearm();
        }),
    });
    limitClients.set(id, client);
    const makeMeter: MemoryStoreOptions['makeMeter'] = (ref, rate) => client.makeMeter(ref, rate);
    const harness = new StoreHarness(upstream, { ...options, makeMeter, sharingHooks: client });
    client.bind({ store: harness.store, ...createSupplyHandlers(harness.gate, harness.timer) }, clock.now());
    server.join(id, clock.now());
    timer.rearm();
    return harness;
  };
}

async function openRedisHarness(
  url: string,
  upstream: UpstreamSettings,
  options: Partial<MemoryStoreOptions>,
): Promise<StoreHarness> {
  const yaml = `state: {store: redis, url: "${url}", timeout: 240ms}\nupstreams: {up: {url: "http://127.0.0.1:1"}}\n`;
  const loaded = loadConfig(yaml, 'test.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes' || loaded.config.state.store !== 'redis') throw new Error('no Redis is configured');
  const shared = await shareOverRedis(loaded.config.state, {
    clock,
    random,
    listen: () => undefined,
    sealSecret: undefined,
    maxResponses: 1,
    upstreams: () => [],
  });
  atEnd(() => shared.close());
  const harness = new StoreHarness(upstream, { ...options, ...shared.storeOptions });
  shared.bind({ store: harness.store, ...createSupplyHandlers(harness.gate, harness.timer) });
  return harness;
}
