import type { ActionResult, DeliveryActions } from '../api/admin-operations.ts';
import type {
  ChangedDelivery,
  DeliveriesPage,
  DeliveryContent,
  DeliveryDetails,
  WriteResponse,
  DeliveryRow,
  StoredDeliveries,
} from '../api/delivery-schemas.ts';
import type { DeliveriesQuery, DeliveryQuery } from '../api/query-schemas.ts';
import { deliveryEnded } from '../../core/delivery/delivery-ended.ts';
import { DeliveriesUnavailable, type DeliveryInspection } from '../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryMessage, DeliveryResult } from '../../core/delivery/delivery.ts';
import type { AuditedState, OperatorAction } from '../../core/events/operator-events.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';
import { describeBody } from '../../http/delivery/delivery-status.ts';
import { toHeaderPairs } from '../../http/headers/raw-headers.ts';
import { ActionTurns } from './action-turns.ts';

export interface DeliveryOperationsParts {
  /** Undefined: this process stores no deliveries. */
  readonly deliveries: DeliveryInspection | undefined;
  /** Milliseconds since 1970. */
  readonly wallClock: () => Millis;
  readonly listen: EventSink;
}

/** What an operator sees of the stored deliveries, and how they are retried and canceled. */
export class DeliveryOperations implements DeliveryActions {
  readonly #parts: DeliveryOperationsParts;
  readonly #turns = new ActionTurns();

  constructor(parts: DeliveryOperationsParts) {
    this.#parts = parts;
  }

  /** Null if this process stores no deliveries. */
  get totals(): StoredDeliveries | null {
    const { deliveries: store } = this.#parts;
    return store === undefined ? null : toTotals(store);
  }

  /** Reads the totals again, if another process has them. */
  async refresh(): Promise<void> {
    await this.#parts.deliveries?.refresh?.();
  }

  list({ state, route, order, after, limit }: DeliveriesQuery): Promise<ActionResult<DeliveriesPage>> {
    return this.#withStore(async (store) => {
      const states = state === undefined ? {} : { states: state === 'open' ? OPEN_STATES : [state] };
      const filter = {
        ...states,
        order,
        ...(route === undefined ? {} : { route }),
        ...(after === undefined ? {} : { after }),
      };
      const [found] = await Promise.all([store.list({ ...filter, limit: limit + 1 }), store.refresh?.()]);
      const rows = found.slice(0, limit).map(toRow);
      return {
        kind: 'done',
        row: {
          totals: toTotals(store),
          deliveries: rows,
          next: found.length > limit ? (rows.at(-1)?.id ?? null) : null,
        },
      };
    });
  }

  find(id: string, { message }: DeliveryQuery): Promise<ActionResult<DeliveryDetails>> {
    return this.#withStore(async (store) => {
      const delivery = await store.find(id);
      if (delivery === undefined) return UNKNOWN;
      const row = toRow(delivery);
      if (message !== 'true') return { kind: 'done', row };
      const content = await store.message(id);
      const known = { ...row, message: content === undefined ? null : toContent(content) };
      if (delivery.kind !== 'write' || delivery.state.kind !== 'delivered') return { kind: 'done', row: known };
      const result = await store.result(id);
      return { kind: 'done', row: { ...known, response: result === undefined ? null : toResponse(result) } };
    });
  }

  retry(id: string, by: string): Promise<ActionResult<ChangedDelivery>> {
    return this.#change('retry', id, by, ({ orderKey }) => {
      return [NOTE_RETRIED, ...(orderKey === undefined ? [] : [NOTE_IN_ORDER])];
    });
  }

  cancel(id: string, by: string): Promise<ActionResult<ChangedDelivery>> {
    return this.#change('cancel', id, by, () => [NOTE_CANCELED]);
  }

  #change(
    change: 'retry' | 'cancel',
    id: string,
    by: string,
    notesOf: (delivery: Delivery) => string[],
  ): Promise<ActionResult<ChangedDelivery>> {
    const { wallClock, listen } = this.#parts;
    const run = async (store: DeliveryInspection): Promise<ActionResult<ChangedDelivery>> => {
      const before = await store.find(id);
      if (before === undefined) return UNKNOWN;
      const { upstream, route } = before;
      const action: OperatorAction = { action: change, upstream, route, delivery: id };
      // The store may not respond to the change, or not show it: it can be stored all the same.
      let after: Delivery | undefined;
      try {
        const now = wallClock();
        const isAccepted = await store[change](id, now);
        if (!isAccepted) return { kind: 'refused', why: describeRefusal(before, change) };
        listen({ type: 'operator', by, ...action });
        if (change === 'cancel') listen(deliveryEnded(before, 'canceled', now));
        after = await readChanged(store, before);
      } catch (error) {
        listen({
          type: 'operator-audit',
          by,
          action,
          outcome: 'unconfirmed',
          before: stateOf(before),
          after: undefined,
        });
        throw error;
      }
      const outcome = after === undefined ? 'unconfirmed' : 'done';
      listen({ type: 'operator-audit', by, action, outcome, before: stateOf(before), after: after && stateOf(after) });
      return after === undefined ? NOT_CONFIRMED : { kind: 'done', row: { ...toRow(after), notes: notesOf(before) } };
    };
    return this.#turns.run(id, () => this.#withStore(run));
  }

  async #withStore<T>(run: (store: DeliveryInspection) => Promise<ActionResult<T>>): Promise<ActionResult<T>> {
    const { deliveries: store } = this.#parts;
    if (store === undefined) return NOT_STORED_HERE;
    try {
      return await run(store);
    } catch (error) {
      if (error instanceof DeliveriesUnavailable) return { kind: 'unavailable', why: error.message };
      throw error;
    }
  }
}

const OPEN_STATES = ['waiting', 'sending'] as const;

const UNKNOWN = { kind: 'unknown', nearest: undefined } as const;

const NOT_STORED_HERE = {
  kind: 'absent',
  why: 'This process stores no deliveries: they need secret, and state: {store: sqlite} or {store: redis}.',
} as const;

const NOT_CONFIRMED = {
  kind: 'unavailable',
  why: 'The change is not stored yet, because the database cannot be written. It is stored once this is possible, unless the process ends first.',
} as const;

const NOTE_RETRIED = 'It is due now, with a new schedule.';
const NOTE_IN_ORDER = 'Earlier deliveries with its order key are sent first.';
const NOTE_CANCELED = 'It is not sent, unless it is retried before it is removed (keepFor).';

/** Why a delivery could be neither retried nor canceled. */
function describeRefusal({ state }: Delivery, action: 'retry' | 'cancel'): string {
  switch (state.kind) {
    case 'sending':
      return 'An attempt is in progress. Try again when it has ended.';
    case 'waiting':
      return 'Another change of this delivery is being stored. Try again.';
    case 'delivered':
    case 'dead':
    case 'canceled':
    case 'unknown':
      return `It is already ${state.kind}: ${action === 'retry' ? 'it cannot be retried' : 'only a waiting delivery can be canceled'}.`;
  }
}

/**
 * The delivery with the change that the store has accepted. A store commits at the end of a turn of the event loop. Undefined if the
 * change is not stored then.
 */
async function readChanged(store: DeliveryInspection, before: Delivery): Promise<Delivery | undefined> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  const after = await store.find(before.id);
  const [now, then] = [after?.state, before.state];
  const isChanged =
    now?.kind !== then.kind || (now.kind === 'waiting' && then.kind === 'waiting' && now.until !== then.until);
  return isChanged ? after : undefined;
}

function stateOf({ state }: Delivery): AuditedState {
  return { state: state.kind, nextAttemptAt: state.kind === 'waiting' ? toIso(state.until) : null };
}

function toTotals({ totals: { counts, bytes, oldestAt } }: DeliveryInspection): StoredDeliveries {
  return { counts, bytes, oldestAt: oldestAt === undefined ? null : toIso(oldestAt) };
}

function toRow({ state, lastAttempt, owner: client, ...delivery }: Delivery): DeliveryRow {
  const { id, kind, route, upstream, acceptedAt, attempts, eventId = null, orderKey = null } = delivery;
  return {
    ...{ id, kind, route, upstream, state: state.kind, acceptedAt: toIso(acceptedAt) },
    nextAttemptAt: state.kind === 'waiting' ? toIso(state.until) : null,
    sendingSince: state.kind === 'sending' ? toIso(state.since) : null,
    endedAt: 'at' in state ? toIso(state.at) : null,
    attempts,
    lastAttempt:
      lastAttempt === undefined
        ? null
        : {
            at: toIso(lastAttempt.at),
            tookSeconds: Math.max(0, Math.round(lastAttempt.took)) / 1000,
            status: lastAttempt.status ?? null,
            reason: lastAttempt.reason ?? null,
          },
    ...{ eventId, orderKey, client },
  };
}

function toContent({ method, target, headers, body, peer }: DeliveryMessage): DeliveryContent {
  return { method, target, headers: toHeaderPairs(headers), ...describeBody(body), peer };
}

function toResponse({ status, headers, body }: DeliveryResult): WriteResponse {
  const content = body === undefined ? ({ encoding: 'text', body: null } as const) : describeBody(body);
  return { status, headers: toHeaderPairs(headers), ...content };
}

function toIso(at: Millis): string {
  return new Date(at).toISOString();
}
