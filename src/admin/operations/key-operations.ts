import type { ActionResult } from '../api/admin-operations.ts';
import type { ForgottenKey, KeyRow, KeysPage } from '../api/key-schemas.ts';
import type { KeysQuery } from '../api/query-schemas.ts';
import type { OperatorAction } from '../../core/events/operator-events.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type {
  KeyInspection,
  KeysUnavailable,
  WriteLookup,
  WriteState,
  WriteView,
} from '../../core/idempotency/key-inspection.ts';
import type { ClockReading } from './admin-rows.ts';

export interface KeyOperationsParts {
  /** Undefined in a worker whose primary keeps them, and answers operators. */
  readonly keys: KeyInspection | undefined;
  readonly clocks: () => ClockReading;
  readonly listen: EventSink;
}

const STATES: Readonly<Record<NonNullable<KeysQuery['state']>, readonly WriteState[]>> = {
  in_progress: ['in_progress'],
  unresolved: ['unresolved'],
  answered: ['answered'],
  open: ['in_progress', 'unresolved'],
};

/** What an operator sees of the keys of writes, and the removal of one. */
export class KeyOperations {
  readonly #parts: KeyOperationsParts;

  constructor(parts: KeyOperationsParts) {
    this.#parts = parts;
  }

  async list({ state, ...query }: KeysQuery): Promise<ActionResult<KeysPage>> {
    const { keys } = this.#parts;
    if (keys === undefined) return KEPT_ELSEWHERE;
    const states = state === undefined ? undefined : STATES[state];
    const listed = await keys.list({ ...query, states });
    if ('kind' in listed) return listed;
    const { total = null, matching, writes, isTruncated: truncated } = listed;
    return { kind: 'done', row: { total, matching, truncated, keys: writes.map((write) => this.#toRow(write)) } };
  }

  async find(id: string): Promise<ActionResult<KeyRow>> {
    const { keys } = this.#parts;
    if (keys === undefined) return KEPT_ELSEWHERE;
    const found = await keys.find(id);
    return found.kind === 'found' ? { kind: 'done', row: this.#toRow(found.write) } : describeUnclear(found);
  }

  /** @param by address of the operator */
  async forget(id: string, by: string): Promise<ActionResult<ForgottenKey>> {
    const { keys, listen } = this.#parts;
    if (keys === undefined) return KEPT_ELSEWHERE;
    const result = await keys.forget(id);
    if (result.kind === 'unknown' || result.kind === 'ambiguous' || result.kind === 'unavailable') {
      return describeUnclear(result);
    }
    const { write } = result;
    const audit = { type: 'operator-audit', by } as const;
    if (write === undefined) {
      const action: OperatorAction = { action: 'forget', upstream: undefined, write: id };
      listen({ ...audit, action, outcome: 'unconfirmed', before: undefined, after: undefined });
      return { kind: 'unavailable', why: UNCONFIRMED_BY_WORKER };
    }
    if (result.kind === 'in_progress') return { kind: 'refused', why: describeProgress(write) };
    const action: OperatorAction = { action: 'forget', upstream: write.upstream, write: write.id };
    listen({ type: 'operator', by, ...action });
    const isStored = result.kind === 'forgotten';
    const after = isStored ? { state: 'forgotten' } : undefined;
    const outcome = isStored ? 'done' : 'unconfirmed';
    listen({ ...audit, action, outcome, before: { state: write.state }, after });
    if (result.kind === 'not_stored') return { kind: 'unavailable', why: NOT_STORED };
    if (result.kind === 'unconfirmed') return { kind: 'unavailable', why: UNCONFIRMED };
    return { kind: 'done', row: { ...this.#toRow(write), notes: [NOTES[write.state]] } };
  }

  #toRow({ firstSentAt, endpoint, ...write }: WriteView): KeyRow {
    const origin = this.#parts.keys?.timeOrigin ?? this.#parts.clocks().origin;
    const at = firstSentAt === undefined ? null : new Date(origin + firstSentAt).toISOString();
    return { ...write, firstSentAt: at, endpoint: endpoint ?? null };
  }
}

const KEPT_ELSEWHERE = {
  kind: 'refused',
  why: 'The primary of this worker has the keys: use its admin port.',
} as const;

const NOT_STORED =
  'The key is forgotten in this process, but the database cannot be written: unless that changes, the next process remembers the key.';

const UNCONFIRMED =
  'Redis did not confirm that the key is forgotten: show it when Redis responds again, to see whether it still knows the key.';

const UNCONFIRMED_BY_WORKER =
  'No worker that changes the keys in Redis has responded: show the key to see whether it is forgotten.';

const NOTES: Readonly<Record<WriteState, string>> = {
  in_progress: '',
  unresolved: 'A request with this key is sent as a new write, whether or not the forgotten one took effect.',
  answered:
    'A request with this key is sent as a new write: only the upstream can recognise it as a repeat of the forgotten one.',
};

function describeUnclear(
  found: Exclude<WriteLookup, { readonly kind: 'found' }> | KeysUnavailable,
): ActionResult<never> {
  if (found.kind === 'unavailable') return found;
  if (found.kind === 'unknown') return { kind: 'unknown', nearest: undefined };
  return { kind: 'refused', why: `Several keys have this id. Choose one of ${found.ids.join(', ')}.` };
}

function describeProgress({ requests, responses }: WriteView): string {
  const parts = [
    ...(requests > 0 ? [requests === 1 ? '1 request has it' : `${requests} requests have it or wait for it`] : []),
    ...(responses > 0 ? [responses === 1 ? '1 response is being sent' : `${responses} responses are being sent`] : []),
  ];
  return `The key is in use: ${parts.join(', and ')}. It can be forgotten after that.`;
}
