import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { ClientsQuery, RequestsQuery } from '../api/query-schemas.ts';
import type { ClientsPage, RequestsPage, Status, StatusFrame, TimelineEvent } from '../api/response-schemas.ts';
import type { Draining, ResetClient, SteeredUpstream } from '../api/action-schemas.ts';
import type { Command, Done, Operations, Validation, Watch } from '../api/admin-operations.ts';
import type { Listen } from '../../core/events/proxy-events.ts';
import type { Clock, Millis, Mode, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Rank } from '../../store/clients/client-search.ts';
import { isBefore as isWorse } from '../../store/clients/client-search.ts';
import { Acting } from './operator-commands.ts';
import { readCursor, writeCursor } from './page-cursor.ts';
import type { Moments } from './admin-rows.ts';
import { describeClient, describeMoment, describeRequest, describeRequests, describeUpstream } from './admin-rows.ts';
import {
  combineClients,
  CountsOfAll,
  mergeClients,
  mergeEndpoints,
  mergePages,
  mergeUpstreams,
} from './merge-views.ts';
import { Pace, round } from './counter-rates.ts';
import type { ClientLook, Look, Stations } from './process-api.ts';
import { endOf, Watching } from './live-status.ts';

export interface StationOperationsParts {
  readonly stations: Stations;
  readonly clock: Clock;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  readonly facts: () => Facts;
  /** As configured; undefined where nothing is. */
  readonly maxRateOf: (upstream: string) => PerSecond | undefined;
  readonly config: () => Readonly<Record<string, unknown>>;
  /** Told of what operators say. */
  readonly listen: Listen;
  /** As on SIGTERM; at once. */
  readonly drain: () => void;
  readonly validate: (text: string) => Validation;
}

/** What is known without asking a station. */
export interface Facts {
  readonly version: string;
  readonly mode: Mode;
  readonly phase: Status['phase'];
  readonly workers: number;
  /** These are milliseconds of the epoch. */
  readonly startedAt: Millis;
  readonly configLoadedAt: Millis;
  readonly lastReload: { readonly at: Millis; readonly problem: string | undefined } | undefined;
  readonly store: 'memory' | 'redis';
}

/** Upstreams at which one client may be. */
const MOST_LIKE = 50;
/** Clients that a frame tells of. */
const MOST_CLIENTS = 50;
/** A wall clock that is off by more was set. */
const CLOCK_SET: Millis = 100;
/** Who begins to watch waits so long for rates that are better than none. */
const FIRST_GLANCE: Millis = 250;

/** Asks all stations, be it one or several, and answers as one. */
export class StationOperations implements Operations {
  readonly #parts: StationOperationsParts;
  readonly #counts = new CountsOfAll();
  readonly #pace = new Pace();
  readonly #acting: Acting;
  /** One for all: read anew each time, every time of an hour ago would move by a millisecond. */
  #origin: Millis = Number.NEGATIVE_INFINITY;

  constructor(parts: StationOperationsParts) {
    this.#parts = parts;
    this.#acting = new Acting({
      ...parts,
      upstreams: async () => this.#describe(await this.#look(0)).upstreams,
      findClients: async (search) => (await this.clients({ search, limit: MOST_LIKE }))?.clients ?? [],
    });
  }

  /** A process has ended. */
  gone(station: number): void {
    this.#counts.gone(station);
  }

  async status(): Promise<Status> {
    await this.#waitForRates(Number.POSITIVE_INFINITY);
    return this.#describe(await this.#look(0));
  }

  async clients({ cursor, limit, state, search, upstream }: ClientsQuery): Promise<ClientsPage | undefined> {
    const { stations, clock } = this.#parts;
    const from = cursor === undefined ? { at: clock.now(), read: NOTHING_READ } : readCursor(cursor, isRank);
    if (from === undefined) return undefined;
    const { at, read } = from;
    const answers = await stations.ask('clients', (station) => {
      return { state, search, upstream, limit, at, after: read.get(station) };
    });
    const pages = new Map([...answers].map(([station, { clients }]) => [station, clients]));
    const page = mergePages(pages, (a, b) => isWorse(a.rank, b.rank), limit);
    const reached = new Map(read);
    for (const [station, { rank }] of page.read) reached.set(station, rank);
    return {
      total: sum(answers.values(), ({ tracked }) => tracked),
      matching: sum(answers.values(), ({ matching }) => matching),
      clients: unite(page.rows).map((row) => describeClient(row, this.#moments())),
      next: page.isAll ? null : writeCursor({ at, read: reached }),
    };
  }

  async requests({ cursor, limit, ...wanted }: RequestsQuery): Promise<RequestsPage | undefined> {
    const from = cursor === undefined ? { read: NOTHING_SEEN } : readCursor(cursor, isNumber);
    if (from === undefined) return undefined;
    const answers = await this.#parts.stations.ask('requests', (station) => {
      return { ...wanted, limit, before: from.read.get(station) };
    });
    const pages = new Map([...answers].map(([station, { requests }]) => [station, requests]));
    const page = mergePages(pages, (a, b) => endOf(a) > endOf(b), limit);
    const reached = new Map(from.read);
    for (const [station, { number }] of page.read) reached.set(station, number);
    return {
      requests: page.rows.map(describeRequest),
      next: page.isAll ? null : writeCursor({ at: 0, read: reached }),
    };
  }

  async timeline(limit: number): Promise<readonly TimelineEvent[]> {
    const answers = await this.#parts.stations.ask('moments', () => ({ since: 0 }));
    const all = [...answers].flatMap(([station, moments]) => moments.map((moment) => ({ station, moment })));
    const newest = all.toSorted((a, b) => b.moment.at - a.moment.at || b.moment.order - a.moment.order);
    return newest.slice(0, limit).map(({ station, moment }) => describeMoment(moment, station));
  }

  config(): Readonly<Record<string, unknown>> {
    return this.#parts.config();
  }

  async explain(id: string): Promise<Explanation | undefined> {
    const answers = await this.#parts.stations.ask('explain', () => ({ id }));
    return [...answers.values()].find((answer) => answer !== undefined);
  }

  steer(upstream: string, command: Command, by: string): Promise<Done<SteeredUpstream>> {
    return this.#acting.steer(upstream, command, by);
  }

  reset(client: string, by: string): Promise<Done<ResetClient>> {
    return this.#acting.reset(client, by);
  }

  drain(by: string): Draining {
    return this.#acting.drain(by);
  }

  validate(text: string): Validation {
    return this.#parts.validate(text);
  }

  watch(): Watch {
    return new Watching(this.#parts.stations, () => this.#statusFrame());
  }

  async #statusFrame(): Promise<StatusFrame> {
    await this.#waitForRates(FIRST_GLANCE);
    const looks = await this.#look(MOST_CLIENTS);
    const troubled = [...looks.values()]
      .flatMap((look) => look.troubled)
      .toSorted((a, b) => (isWorse(a.rank, b.rank) ? -1 : 1));
    const rows = unite(troubled).slice(0, MOST_CLIENTS);
    const status = this.#describe(looks);
    return {
      status,
      clients: { total: status.clients.tracked, rows: rows.map((row) => describeClient(row, this.#moments())) },
    };
  }

  /** Rates need two readings: where there is none, waits for the second. @param most to wait for */
  async #waitForRates(most: Millis): Promise<void> {
    const lacks = Math.min(most, this.#pace.lacks(this.#parts.clock.now()));
    if (lacks === 0) return;
    this.#pace.note(this.#counts.note(await this.#look(0)), this.#parts.clock.now());
    await new Promise((resolve) => {
      setTimeout(resolve, lacks);
    });
  }

  #look(clients: number): Promise<ReadonlyMap<number, Look>> {
    return this.#parts.stations.ask('look', () => ({ clients }));
  }

  #describe(looks: ReadonlyMap<number, Look>): Status {
    const { facts } = this.#parts;
    const moments = this.#moments();
    const { now } = moments;
    const counts = this.#counts.note(looks);
    const span = this.#pace.span(counts, now);
    this.#pace.note(counts, now);
    const { version, mode, phase, startedAt, workers, configLoadedAt, lastReload, store } = facts();
    const endpoints = mergeEndpoints(looks.values());
    const { tracked, byState, allowance } = mergeClients(looks.values());
    return {
      at: write(moments.origin + now),
      version,
      mode,
      phase,
      startedAt: write(startedAt),
      workers,
      config: {
        loadedAt: write(configLoadedAt),
        lastReload:
          lastReload === undefined
            ? null
            : {
                at: write(lastReload.at),
                ok: lastReload.problem === undefined,
                problem: lastReload.problem ?? null,
              },
      },
      store: { kind: store, degraded: [...looks.values()].some(({ isDegraded }) => isDegraded) },
      requests: describeRequests(span),
      upstreams: mergeUpstreams(looks).map((each) => describeUpstream(each, span, endpoints, moments)),
      clients: { tracked, byState, allowance: { min: round(allowance.min), mean: round(allowance.mean) } },
    };
  }

  #moments(): Moments {
    const now = this.#parts.clock.now();
    const origin = this.#parts.wallClock() - now;
    if (Math.abs(origin - this.#origin) > CLOCK_SET) this.#origin = origin;
    return { now, origin: this.#origin };
  }
}

const NOTHING_READ: ReadonlyMap<number, Rank> = new Map();
const NOTHING_SEEN: ReadonlyMap<number, number> = new Map();

/** A client that several processes know, as one. */
function unite(rows: readonly ClientLook[]): ClientLook[] {
  const united = new Map<string, ClientLook>();
  for (const row of rows) {
    const name = `${row.upstream}\0${row.key}`;
    const known = united.get(name);
    united.set(name, known === undefined ? row : combineClients(known, row));
  }
  return [...united.values()];
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function isRank(value: unknown): value is Rank {
  if (typeof value !== 'object' || value === null) return false;
  return ['group', 'value', 'slot'].every((name) => typeof Reflect.get(value, name) === 'number');
}

function sum<T>(all: Iterable<T>, of: (each: T) => number): number {
  let total = 0;
  for (const each of all) total += of(each);
  return total;
}

function write(at: Millis): string {
  return new Date(at).toISOString();
}
