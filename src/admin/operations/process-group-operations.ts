import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { ForgottenKey, KeyRow, KeysPage } from '../api/key-schemas.ts';
import type { ClientsQuery, KeysQuery, RequestsQuery, TimelineQuery } from '../api/query-schemas.ts';
import type { ClientsPage, RequestsPage, ProcessStatus, StatusFrame, TimelineEvent } from '../api/response-schemas.ts';
import type { History } from '../api/upstream-schemas.ts';
import type { DrainResponse, ClientResetResponse, UpstreamActionResponse } from '../api/action-schemas.ts';
import type {
  OverrideCommand,
  ActionResult,
  AdminOperations,
  ValidationReport,
  FrameSource,
} from '../api/admin-operations.ts';
import type { KeyInspection } from '../../core/idempotency/key-inspection.ts';
import type { Clock, Millis, PerSecond } from '../../core/scalars.ts';
import { OperatorCommands } from './operator-commands.ts';
import type { ClockReading } from './admin-rows.ts';
import { toClientRow, toTimelineEvent, toRequestTotals, toUpstreamStatus } from './admin-rows.ts';
import { DeliveryOperations, type DeliveryOperationsParts } from './delivery-operations.ts';
import { KeyOperations } from './key-operations.ts';
import { countClients } from './count-clients.ts';
import { MergedCounts, mergeEndpoints, mergeStores, mergeUpstreams } from './merge-views.ts';
import { CounterRates, FailedShares, roundToMilli } from './counter-rates.ts';
import { RateHistory } from './rate-history.ts';
import { mostRestrictedClients, readClientRows, readClientsPage, readRequestsPage } from './list-pages.ts';
import { LiveStatus } from './live-status.ts';
import type { ProcessView, ProcessGroup } from './process-api.ts';
import type { ProcessFacts } from './process-facts.ts';

/** `listen` receives the operator events, and those of deliveries. */
export interface ProcessGroupOperationsParts extends DeliveryOperationsParts {
  readonly processes: ProcessGroup;
  /** The keys of writes; undefined in a worker whose primary keeps them. */
  readonly keys: KeyInspection | undefined;
  readonly clock: Clock;
  readonly facts: () => ProcessFacts;
  /** `rateLimit.maxRate` of an upstream; undefined if it is not configured. */
  readonly maxRateOf: (upstream: string) => PerSecond | undefined;
  readonly config: () => Readonly<Record<string, unknown>>;
  /** Starts the drain, as SIGTERM does. */
  readonly drain: () => void;
  readonly validate: (text: string) => ValidationReport;
}

/** Rows of one client that are looked at: it has one for each upstream. */
const MAX_SIMILAR_CLIENTS = 50;
/** Clients in a frame of the event stream. */
const MAX_FRAME_CLIENTS = 50;
/** A larger difference between the clocks means that the wall clock was set. */
const CLOCK_JUMP: Millis = 100;
/** The first frame waits this long for rates. */
const FIRST_FRAME_WAIT: Millis = 250;

/** The admin operations over one or several processes, merged into one result. */
export class ProcessGroupOperations implements AdminOperations {
  readonly #parts: ProcessGroupOperationsParts;
  readonly #counts = new MergedCounts();
  readonly #rates = new CounterRates();
  readonly #failedShares = new FailedShares();
  readonly #history = new RateHistory();
  readonly #operatorCommands: OperatorCommands;
  readonly deliveries: DeliveryOperations;
  readonly #keys: KeyOperations;
  /** Kept between readings: computed each time, every past time would move by a millisecond. */
  #clockOrigin: Millis = Number.NEGATIVE_INFINITY;

  constructor(parts: ProcessGroupOperationsParts) {
    this.#parts = parts;
    this.#keys = new KeyOperations({ ...parts, clocks: () => this.#readClocks() });
    this.deliveries = new DeliveryOperations(parts);
    this.#operatorCommands = new OperatorCommands({
      ...parts,
      upstreams: async () => this.#toStatus(await this.#queryViews(0)).upstreams,
      findClient: (key) => readClientRows(parts.processes, key, this.#readClocks()),
      findClients: async (search) => (await this.clients({ search, limit: MAX_SIMILAR_CLIENTS }))?.clients ?? [],
    });
  }

  /** To be called when a process has ended. */
  onProcessExit(process: number): void {
    this.#counts.removeProcess(process);
    this.#history.removeProcess(process);
  }

  async status(): Promise<ProcessStatus> {
    await this.#waitForRates(Number.POSITIVE_INFINITY);
    return this.#toStatus(await this.#queryViews(0));
  }

  clients(query: ClientsQuery): Promise<ClientsPage | undefined> {
    return readClientsPage(this.#parts.processes, query, () => this.#readClocks());
  }

  requests(query: RequestsQuery): Promise<RequestsPage | undefined> {
    return readRequestsPage(this.#parts.processes, query);
  }

  async timeline({ limit, exclude }: TimelineQuery): Promise<readonly TimelineEvent[]> {
    const results = await this.#parts.processes.query('timeline', () => ({ since: 0 }));
    const all = [...results].flatMap(([process, entries]) => entries.map((entry) => ({ process, entry })));
    const wanted = all.filter(({ entry }) => entry.kind !== exclude);
    const newest = wanted.toSorted((a, b) => b.entry.at - a.entry.at || b.entry.order - a.entry.order);
    return newest.slice(0, limit).map(({ process, entry }) => toTimelineEvent(entry, process));
  }

  /** To be called each second. */
  async sampleRates(): Promise<void> {
    const results = await this.#parts.processes.query('rates', () => null);
    this.#history.record(results, this.#parts.wallClock());
  }

  history(): History {
    const upstreams = [...this.#history.samples()].map(([name, samples]) => ({
      name,
      samples: samples.map((sample) => ({ ...sample, at: toIso(sample.at) })),
    }));
    return { upstreams };
  }

  config(): Readonly<Record<string, unknown>> {
    return this.#parts.config();
  }

  async explain(id: string): Promise<Explanation | undefined> {
    const results = await this.#parts.processes.query('explain', () => ({ id }));
    return [...results.values()].find((explanation) => explanation !== undefined);
  }

  overrideUpstream(
    upstream: string,
    command: OverrideCommand,
    by: string,
  ): Promise<ActionResult<UpstreamActionResponse>> {
    return this.#operatorCommands.applyOverride(upstream, command, by);
  }

  reset(client: string, by: string): Promise<ActionResult<ClientResetResponse>> {
    return this.#operatorCommands.reset(client, by);
  }

  keys(query: KeysQuery): Promise<ActionResult<KeysPage>> {
    return this.#keys.list(query);
  }

  key(id: string): Promise<ActionResult<KeyRow>> {
    return this.#keys.find(id);
  }

  forgetKey(id: string, by: string): Promise<ActionResult<ForgottenKey>> {
    return this.#keys.forget(id, by);
  }

  drain(by: string): DrainResponse {
    return this.#operatorCommands.drain(by);
  }

  validate(text: string): ValidationReport {
    return this.#parts.validate(text);
  }

  watch(): FrameSource {
    return new LiveStatus(this.#parts.processes, () => this.#statusFrame());
  }

  async #statusFrame(): Promise<StatusFrame> {
    await this.#waitForRates(FIRST_FRAME_WAIT);
    const views = await this.#queryViews(MAX_FRAME_CLIENTS);
    const clients = [...views.values()].map(({ troubled }) => troubled);
    const status = this.#toStatus(views);
    const rows = mostRestrictedClients(clients, MAX_FRAME_CLIENTS).map((row) => toClientRow(row, this.#readClocks()));
    return { status, clients: { total: status.clients.tracked, rows } };
  }

  /** Rates need two readings. If there is none, takes one and waits for the second, at most `maxWait`. */
  async #waitForRates(maxWait: Millis): Promise<void> {
    const wait = Math.min(maxWait, this.#rates.timeUntilReady(this.#parts.clock.now()));
    if (wait === 0) return;
    this.#rates.record(this.#counts.add(await this.#queryViews(0)), this.#parts.clock.now());
    await new Promise((resolve) => {
      setTimeout(resolve, wait);
    });
  }

  async #queryViews(maxClients: number): Promise<ReadonlyMap<number, ProcessView>> {
    const { processes } = this.#parts;
    const [views] = await Promise.all([processes.query('view', () => ({ maxClients })), this.deliveries.refresh()]);
    return views;
  }

  #toStatus(views: ReadonlyMap<number, ProcessView>): ProcessStatus {
    const { facts } = this.#parts;
    const clock = this.#readClocks();
    const { now } = clock;
    const counts = this.#counts.add(views);
    const window = this.#rates.window(counts, now);
    this.#rates.record(counts, now);
    const { version, mode, phase, startedAt, workers, configLoadedAt, lastReload, store, ...others } = facts();
    const { certificates, actionsDisabled } = others;
    const endpoints = mergeEndpoints(views.values());
    const { tracked, distinct, byState, allowance } = countClients(views);
    return {
      at: toIso(clock.origin + now),
      version,
      mode,
      phase,
      startedAt: toIso(startedAt),
      workers,
      config: {
        loadedAt: toIso(configLoadedAt),
        lastReload:
          lastReload === undefined
            ? null
            : {
                at: toIso(lastReload.at),
                ok: lastReload.problem === undefined,
                problem: lastReload.problem ?? null,
              },
      },
      store: { kind: store, ...mergeStores(views.values()) },
      deliveries: this.deliveries.totals,
      certificates: certificates.map(({ setting, expiresAt }) => ({ setting, expiresAt: toIso(expiresAt) })),
      actions: { allowed: actionsDisabled === undefined, reason: actionsDisabled ?? null },
      requests: toRequestTotals(window),
      upstreams: mergeUpstreams(views).map((each) =>
        toUpstreamStatus(each, window, endpoints, clock, this.#failedShares.update(each.name, window)),
      ),
      clients: {
        tracked,
        distinct: distinct ?? null,
        byState,
        allowance: { min: roundToMilli(allowance.min), mean: roundToMilli(allowance.mean) },
      },
    };
  }

  #readClocks(): ClockReading {
    const now = this.#parts.clock.now();
    const origin = this.#parts.wallClock() - now;
    if (Math.abs(origin - this.#clockOrigin) > CLOCK_JUMP) this.#clockOrigin = origin;
    return { now, origin: this.#clockOrigin };
  }
}

function toIso(at: Millis): string {
  return new Date(at).toISOString();
}
