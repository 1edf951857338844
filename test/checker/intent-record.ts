import type { Millis } from '../../src/core/scalars.ts';
import { type ClientKnowledge, isExplainedByOthers } from '../support/oracle/client-knowledge.ts';
import type { Intent } from '../support/oracle/intent.ts';
import type { OracleRequest } from '../support/oracle/oracle-request.ts';
import type { FaultLog, Interval } from './fault-record.ts';

/** What happened to one intent, at its client and at the upstream. */
export interface IntentRecord {
  readonly intent: Intent;
  readonly knowledge: ClientKnowledge;
  readonly asks: AskRecord[];
  readonly chargedAt: Millis[];
  /** The reports of the last round. */
  lastWord: readonly OracleRequest['reported'][];
  endedAt: Millis | undefined;
}

export interface AskRecord extends Interval {
  readonly number: number;
  readonly place: number;
  /** How often the process of that place had been started, when it was sent and when it ended. */
  readonly starts: { readonly from: number; to: number };
  hasLeft: boolean;
}

/**
 * `lost`: the store lost what it had acknowledged. `local`: a process decided by what it knew itself. `late`: sent just before its
 * process was stopped.
 */
export type Judgement =
  | { readonly kind: 'right' }
  | {
      readonly kind: 'wrong';
      readonly cause: 'fault' | 'lost' | 'local' | 'late';
      readonly isDouble: boolean;
      readonly why: string;
    };

/**
 * Each loss makes the write new once. With `onStoreLost: local`, a process that decides without the store may take it for new, and so may
 * the others, which do not know what it did. Each remembers that it sent the write, so it is charged once for each process at most.
 * Without a decision of this kind, and for an intent with one process, all holds that holds with the store. A process without the store
 * knows what it did itself, so it invents no response, and no other write's.
 *
 * To be called once no request of the intent can arrive any more.
 * @param loggedAt when the log line of a request arrived; undefined if none did
 * @param isLocal with `onStoreLost: local`
 */
export function judgeIntent(
  record: IntentRecord,
  faults: FaultLog,
  loggedAt: (request: number) => Millis | undefined,
  isLocal = false,
): Judgement {
  const why = findWrong(record, loggedAt);
  if (why === undefined) return { kind: 'right' };
  const [, ...again] = record.chargedAt;
  const isDouble = again.length > 0;
  const losses = faults.countLosses(record.asks);
  const locals = isLocal ? countUnknowing(record.asks, faults, loggedAt) : 0;
  const most = 1 + losses + locals;
  const excess = record.chargedAt.length - most;
  if (excess > 0 && again.filter((at) => faults.takeLate(at)).length < excess) {
    const bound = most > 1 ? `, of which ${most} can be explained` : '';
    return { kind: 'wrong', cause: 'fault', isDouble, why: `${why}${bound}` };
  }
  const unexplained = isLocal ? record.knowledge.wrong.find((each) => !isExplainedByOthers(each)) : undefined;
  if (unexplained !== undefined && losses === 0) return { kind: 'wrong', cause: 'fault', isDouble, why: unexplained };
  const cause = losses > 0 ? 'lost' : locals > 0 ? 'local' : isDouble ? 'late' : 'fault';
  return { kind: 'wrong', cause, isDouble, why };
}

/**
 * How many processes may have sent the write without knowing what another one did: those that decided without the store, but one less
 * if there was no other process.
 */
function countUnknowing(
  asks: readonly AskRecord[],
  faults: FaultLog,
  loggedAt: (request: number) => Millis | undefined,
): number {
  // A request whose client has left may go on.
  const endOf = ({ number, to, hasLeft }: AskRecord): Millis =>
    hasLeft ? (loggedAt(number) ?? Number.POSITIVE_INFINITY) : to;
  const local = processesOf(asks.filter((ask) => faults.mayBeLocal({ ...ask, to: endOf(ask) })));
  return Math.min(local.size, processesOf(asks).size - 1);
}

/** The processes that may have had these requests. */
function processesOf(asks: readonly AskRecord[]): ReadonlySet<string> {
  const processes = new Set<string>();
  for (const { place, starts } of asks) {
    for (let start = starts.from; start <= starts.to; start += 1) processes.add(`${place}/${start}`);
  }
  return processes;
}

function findWrong(
  { knowledge, asks, chargedAt, lastWord }: IntentRecord,
  loggedAt: (request: number) => Millis | undefined,
): string | undefined {
  if (chargedAt.length > 1) return `charged ${chargedAt.length} times`;
  const isDenied = lastWord.length > 0 && lastWord.every((reported) => reported === 'not done');
  const deniedAt = Math.max(...asks.slice(-lastWord.length).map(({ to }) => to));
  // A client may disconnect unnoticed while its body is not read: its request is sent later.
  const isUnnoticed = asks.some(({ number, hasLeft }) => hasLeft && (loggedAt(number) ?? deniedAt) > deniedAt);
  const isDone = chargedAt.some((at) => at <= deniedAt || !isUnnoticed);
  if (isDenied && isDone && !knowledge.hasFinalResponse) return 'its last word is a plain refusal, but it is done';
  return knowledge.wrong[0];
}

/** Names intent and key, and the events of its history. */
export function describeWrong({ intent, chargedAt, asks }: IntentRecord, why: string, faults: FaultLog): string {
  const first = asks[0]?.from ?? 0;
  const last = asks.at(-1)?.to ?? first;
  const around = faults.records.filter(({ from, to }) => from <= last && to >= first - 15_000);
  return [
    `${why}: ${intent.method} ${intent.name}, key ${intent.key}, charged at ${chargedAt.map((at) => at.toFixed(0)).join(', ') || 'no time'}`,
    ...intent.history.map((event) => `      ${event}`),
    ...around.map(
      (each) => `      fault ${each.from.toFixed(0)} to ${each.to.toFixed(0)}: ${each.name} ${each.detail}`,
    ),
  ].join('\n');
}

/** Prefixes each event with its time. */
export class TimedHistory extends Array<string> {
  override push(...events: readonly string[]): number {
    return super.push(...events.map((event) => `${performance.now().toFixed(0)} ${event}`));
  }
}
