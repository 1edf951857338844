/** Clients that each want one write, and repeat it with the same key until they have a final answer or give up. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { ProxyLogEntry } from '../support/oracle/client-knowledge.ts';
import { ClientKnowledge } from '../support/oracle/client-knowledge.ts';
import { IdempotentUpstream } from '../support/oracle/idempotent-upstream.ts';
import type { Intent } from '../support/oracle/intent.ts';
import { drawIntents } from '../support/oracle/intent.ts';
import type { OracleRequest } from '../support/oracle/oracle-request.ts';
import { drawManner, sendOracleRequest } from '../support/oracle/oracle-request.ts';
import type { Topology } from '../support/oracle/topology.ts';
import { pickOf } from '../support/oracle/topology.ts';
import type { FaultLog } from './fault-record.ts';
import type { AskRecord, IntentRecord } from './intent-record.ts';
import { describeWrong, judgeIntent, TimedHistory } from './intent-record.ts';
import type { ProxyLog } from './proxy-log.ts';

export interface ClientsParts {
  readonly upstreamTopology: Topology;
  readonly seed: number;
  readonly clients: number;
  /** The number of places (processes) that clients can reach. */
  readonly places: number;
  /** The URL of a place. */
  readonly urlOf: (place: number) => string;
  /** How often the process of a place has been started. */
  readonly startsOf: (place: number) => number;
  /** `onStoreLost: local`: a process that the store does not answer decides by what it knows itself. */
  readonly isLocal: boolean;
  readonly faults: FaultLog;
  readonly log: ProxyLog;
  /** Whether what a proxy reports as unknown or in use is checked: not with a store that a slow machine makes unreachable. */
  readonly checksCertainty: boolean;
  /** How long a process that was killed, or cut off from its store, may count as sending its responses. */
  readonly storedWithin: Millis;
}

/** No request takes longer, whatever the fault and however slow the machine. */
const ANSWER_WITHIN: Millis = 180_000;
/** No attempt of an intent arrives this long after its end. */
const RETIRED_AFTER: Millis = 90_000;
const MAX_ROUNDS = 12;
const MAX_REFUSED = 60;
const REFUSED_WITHIN: Millis = 50;
const RELEASED_WITHIN: Millis = 1000;
/** The upstream remembers a key for this much longer than it says, so that slowness causes no second charge. */
const TOLERANCE = { ttlMargin: 1000, maxLag: 1000, perLag: 10, slowness: 500, storesAllDeclines: true };

/** Whether all of these were cut at once. */
function isRefused(together: readonly OracleRequest[], asks: readonly AskRecord[]): boolean {
  const isCut = together.every(({ reported, hasLeft }) => reported === 'nothing' && !hasLeft);
  return isCut && asks.slice(-together.length).every(({ from, to }) => to - from < REFUSED_WITHIN);
}

/** The reason in a response of Tidegate's own. */
function reasonIn(body: string): string {
  return /"reason":"(\w+)"/.exec(body)?.[1] ?? '';
}

export class CheckedClients {
  readonly #parts: ClientsParts;
  readonly #random: Random;
  readonly #upstream: IdempotentUpstream;
  readonly #requests = new Map<number, OracleRequest>();
  readonly #records = new Map<Intent, IntentRecord>();
  readonly #counts = new Map<string, number>();
  readonly violations: string[] = [];
  #lastRequest = 0;
  #drawn = 0;
  #intents = 0;
  #charges = 0;
  readonly wrong = {
    fault: { double: 0, other: 0 },
    lost: { double: 0, other: 0 },
    local: { double: 0, other: 0 },
    late: { double: 0, other: 0 },
  };
  /** Intents with a request in the parts that a store has lost. */
  #withinLost = 0;

  constructor(parts: ClientsParts) {
    this.#parts = parts;
    this.#random = seededRandom(parts.seed);
    this.#upstream = new IdempotentUpstream(
      parts.upstreamTopology,
      seededRandom(parts.seed + 1),
      this.#requests,
      TOLERANCE,
      (ask) => {
        this.#charges += 1;
        this.#records.get(ask.intent)?.chargedAt.push(performance.now());
      },
    );
  }

  listen(): Promise<string[]> {
    return this.#upstream.listen();
  }

  closeUpstreamConnections(): void {
    this.#upstream.closeConnections();
  }

  get totals(): {
    readonly intents: number;
    readonly requests: number;
    readonly charges: number;
    readonly withinLost: number;
  } {
    return {
      intents: this.#intents,
      requests: this.#lastRequest,
      charges: this.#charges,
      withinLost: this.#withinLost,
    };
  }

  /** Reports by kind. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Resolves when no client has anything left to do. @param isEnough whether no further intent is wanted */
  async run(isEnough: (intents: number) => boolean): Promise<void> {
    const client = async (): Promise<void> => {
      while (!isEnough(this.#intents)) {
        const intents = drawIntents(this.#parts.upstreamTopology, (this.#drawn += 1), this.#random);
        this.#intents += intents.length;
        await Promise.all(intents.map((drawn) => this.#pursue({ ...drawn, history: new TimedHistory() })));
        this.#retire(performance.now() - RETIRED_AFTER);
      }
    };
    await Promise.all(Array.from({ length: this.#parts.clients }, client));
  }

  /** Judges all intents that have not been judged. To be called once no attempt can arrive any more. */
  finish(): void {
    this.#retire(Number.POSITIVE_INFINITY);
  }

  async #pursue(intent: Intent): Promise<void> {
    const { upstreamTopology, checksCertainty, faults } = this.#parts;
    const asks: AskRecord[] = [];
    const knowledge = new ClientKnowledge(intent, {
      times: () => this.#upstream.times(intent),
      logged: (ask) => this.#loggedOf(ask, asks),
      ttl: upstreamTopology.ttl,
      isRemembered: true,
      // Nobody knows what a client that has left would have received.
      isDisturbed: () => !checksCertainty || asks.some((ask) => ask.hasLeft || faults.hasOverlapped(ask)),
      // A worker responds before its primary knows that the key is free.
      mayBeInUse: () => (asks.at(-1)?.from ?? 0) - (asks.at(-2)?.to ?? 0) < RELEASED_WITHIN,
    });
    const record: IntentRecord = {
      ...{ intent, knowledge, asks, chargedAt: [], lastWord: [], endedAt: undefined },
    };
    this.#records.set(intent, record);
    const isSteady = this.#random() < 0.6;
    const rounds = intent.key === undefined ? 1 : MAX_ROUNDS;
    for (let left = rounds, refused = 0; left > 0; left -= 1) {
      knowledge.begin(performance.now());
      const count = intent.key === undefined || this.#random() < 0.8 ? 1 : 2 + Math.floor(2 * this.#random());
      const together = await Promise.all(Array.from({ length: count }, (_, i) => this.#askAfter(i, record, isSteady)));
      knowledge.judge(together, performance.now());
      record.lastWord = together.map(({ reported }) => reported);
      for (const { reported } of together) this.#counts.set(reported, (this.#counts.get(reported) ?? 0) + 1);
      if (knowledge.hasFinalResponse ? this.#random() < 0.6 : this.#isGivenUp(record)) break;
      await sleep(this.#pauseAfter(record));
      // No process listens at present: this is no attempt that counts. Without a key, only one is safe, and it may have arrived.
      if (intent.key !== undefined && isRefused(together, asks) && (refused += 1) <= MAX_REFUSED) left += 1;
    }
    // A request whose client has left may have been answered just before.
    knowledge.begin(performance.now());
    record.endedAt = performance.now();
  }

  /** Some clients take a plain refusal for the end. */
  #isGivenUp({ lastWord }: IntentRecord): boolean {
    return lastWord.every((reported) => reported === 'not done') && this.#random() < 0.3;
  }

  /** @param place among concurrent requests: the first is sent at once, the others at once or soon */
  async #askAfter(place: number, record: IntentRecord, isSteady: boolean): Promise<OracleRequest> {
    if (place > 0 && this.#random() < 0.6) await sleep(40 * this.#random());
    const { intent, asks } = record;
    // Which of the end of a response and the end of its client a proxy in another process sees first is not known.
    const drawn = drawManner(this.#random, this.#parts.upstreamTopology.ttl);
    const ask: OracleRequest = {
      number: (this.#lastRequest += 1),
      intent,
      token: pickOf(intent.tokens, this.#random),
      manner: { ...drawn, leaves: isSteady ? 'never' : drawn.leaves === 'answering' ? 'soon' : drawn.leaves },
      timesBefore: this.#upstream.times(intent),
      ...{ isOpen: false, wasDeclined: false, hasLeft: false, hasBegun: false, reported: 'nothing' },
      answeredName: undefined,
      onAnswer: (status, body) => void intent.history.push(`${ask.number}: ${status} ${reasonIn(body)}`),
    };
    this.#requests.set(ask.number, ask);
    const reached = Math.floor(this.#parts.places * this.#random());
    const times = {
      number: ask.number,
      place: reached,
      starts: { from: this.#parts.startsOf(reached), to: this.#parts.startsOf(reached) },
      from: performance.now(),
      to: Number.POSITIVE_INFINITY,
      hasLeft: false,
    };
    asks.push(times);
    intent.history.push(`${ask.number}: sent to process ${reached}`);
    const overdue = new AbortController();
    const isAnswered = await Promise.race([
      sendOracleRequest(this.#parts.urlOf(reached), ask).then(() => true),
      sleep(ANSWER_WITHIN, false, { signal: overdue.signal }).catch(() => true),
    ]);
    overdue.abort();
    times.to = performance.now();
    times.starts.to = this.#parts.startsOf(reached);
    times.hasLeft = ask.hasLeft;
    // A process that was killed may have begun to respond.
    if (ask.reported === 'nothing' && !ask.hasLeft) ask.hasBegun ||= this.#parts.faults.hasOverlapped(times);
    if (!isAnswered) {
      this.violations.push(
        describeWrong(record, `${ask.number} has no end within ${ANSWER_WITHIN / 1000} s`, this.#parts.faults),
      );
    }
    return ask;
  }

  /**
   * A killed process logs nothing: its requests are over once its claims have ended. If the upstream rejects a repeat, a response that
   * broke off counts as received until the process that sent it can store that it did.
   */
  #loggedOf(ask: OracleRequest, asks: readonly AskRecord[]): ProxyLogEntry | undefined {
    const entry = this.#parts.log.entry(ask.number);
    const isBroken = entry !== undefined && !entry.isComplete && ask.hasBegun;
    if (!isBroken && (entry !== undefined || ask.hasLeft)) return entry;
    const { to = Number.POSITIVE_INFINITY } = asks.find(({ number }) => number === ask.number) ?? {};
    const isOver = performance.now() > to + this.#parts.storedWithin;
    return isOver ? (entry ?? { status: 0, attempts: 1, isComplete: false }) : undefined;
  }

  /** At once, soon, or about when the upstream forgets its key. */
  #pauseAfter({ lastWord, knowledge }: IntentRecord): Millis {
    const { ttl = 0 } = this.#parts.upstreamTopology;
    const draw = this.#random();
    const isOpen = lastWord.includes('nothing') || lastWord.includes('unknown');
    if (draw < (isOpen ? 0.4 : 0.15)) {
      const end = (knowledge.firstAskedAt ?? 0) + ttl - 200 + 2000 * this.#random();
      return Math.max(0, end - performance.now());
    }
    if (lastWord.includes('nothing') || lastWord.includes('in use')) return 50 + 1500 * this.#random();
    return draw < 0.6 ? 0 : 300 * this.#random();
  }

  #retire(before: Millis): void {
    for (const record of this.#records.values()) {
      // In the order of their beginning: those that ended early behind one that lasts are judged later.
      if (record.endedAt === undefined || record.endedAt > before) break;
      this.#judge(record);
      this.#records.delete(record.intent);
      this.#upstream.drop(record.intent);
      for (const { number } of record.asks) {
        this.#requests.delete(number);
        this.#parts.log.drop(number);
      }
    }
  }

  #judge(record: IntentRecord): void {
    const { faults, log } = this.#parts;
    // The log lines of the last requests may have arrived after their ends.
    record.knowledge.begin(performance.now());
    if (faults.countLosses(record.asks) > 0) this.#withinLost += 1;
    const judgement = judgeIntent(record, faults, (request) => log.entry(request)?.loggedAt, this.#parts.isLocal);
    if (judgement.kind === 'right') return;
    this.wrong[judgement.cause][judgement.isDouble ? 'double' : 'other'] += 1;
    if (judgement.cause !== 'fault') return;
    for (const { number } of record.asks) {
      const entry = log.entry(number);
      record.intent.history.push(
        `${number} in the log: ${entry === undefined ? 'nothing' : JSON.stringify(entry.line)}`,
      );
    }
    this.violations.push(describeWrong(record, judgement.why, faults));
  }
}
