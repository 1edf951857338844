import type { ActionResult, ClientQuotaActions } from '../api/admin-operations.ts';
import type { ClientQuotasResponse, QuotasResetResponse } from '../api/action-schemas.ts';
import type { AuditedState, OperatorAction } from '../../core/events/operator-events.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { ClientQuotaInspection, ClientQuotaView } from '../../core/quota/clients/client-quota-inspection.ts';
import type { Clock } from '../../core/scalars.ts';
import { ActionTurns } from './action-turns.ts';
import { readClientRows } from './list-pages.ts';
import type { ProcessGroup } from './process-api.ts';

export interface ClientQuotaOperationsParts {
  /** Undefined in a worker whose primary counts, and answers operators. */
  readonly clientQuotas: ClientQuotaInspection | undefined;
  /** Whether the configuration has quotas of single clients. */
  readonly hasClientQuotas: () => boolean;
  /** The hash of a client that has proven this name. */
  readonly hashClientName: (name: string) => string;
  readonly processes: ProcessGroup;
  readonly clock: Clock;
  readonly listen: EventSink;
}

/** The quotas that count a client: the key is its hash. */
interface CountedClient {
  readonly key: string;
  readonly quotas: readonly ClientQuotaView[];
}

/** What an operator sees of the quotas of one client, and their reset. */
export class ClientQuotaOperations implements ClientQuotaActions {
  readonly #parts: ClientQuotaOperationsParts;
  readonly #turns = new ActionTurns();

  constructor(parts: ClientQuotaOperationsParts) {
    this.#parts = parts;
  }

  /** @param client its hash, or the name that it has proven */
  async find(client: string): Promise<ActionResult<ClientQuotasResponse>> {
    const found = await this.#find(client);
    return found.kind === 'done' ? { kind: 'done', row: toResponse(found.row) } : found;
  }

  /** @param by address of the operator */
  reset(client: string, by: string): Promise<ActionResult<QuotasResetResponse>> {
    return this.#turns.run(`client ${client}`, () => this.#reset(client, by));
  }

  async #reset(client: string, by: string): Promise<ActionResult<QuotasResetResponse>> {
    const { clientQuotas, listen } = this.#parts;
    const found = await this.#find(client);
    if (found.kind !== 'done') return found;
    const { key, quotas } = found.row;
    const action: OperatorAction = { action: 'reset-quotas', client: key };
    listen({ type: 'operator', by, ...action });
    const after = await clientQuotas?.reset(key);
    const isDone = after !== undefined && !('kind' in after);
    listen({
      ...{ type: 'operator-audit', by, action, outcome: isDone ? 'done' : 'unconfirmed', before: audited(quotas) },
      after: isDone ? audited(after) : undefined,
    });
    if (!isDone) return { kind: 'unavailable', why: UNCONFIRMED };
    return { kind: 'done', row: { ...toResponse({ key, quotas: after }), notes: [NOTE] } };
  }

  async #find(client: string): Promise<ActionResult<CountedClient>> {
    const { clientQuotas, hasClientQuotas, hashClientName, processes, clock } = this.#parts;
    if (clientQuotas === undefined) return COUNTED_ELSEWHERE;
    if (!hasClientQuotas()) return NO_QUOTAS;
    let isKnown = false;
    for (const key of [client, hashClientName(client)]) {
      const quotas = await clientQuotas.list(key);
      if ('kind' in quotas) return quotas;
      if (quotas.length > 0) return { kind: 'done', row: { key, quotas } };
      isKnown ||= (await readClientRows(processes, key, { now: clock.now(), origin: 0 })).length > 0;
    }
    return isKnown ? NOT_COUNTED : UNKNOWN;
  }
}

const COUNTED_ELSEWHERE = {
  kind: 'refused',
  why: 'The primary of this worker counts the quotas: use its admin port.',
} as const;

const NO_QUOTAS = {
  kind: 'absent',
  why: 'No class of clients has a quota for each client: set clients.classes.NAME.perClient.quota.',
} as const;

const NOT_COUNTED = {
  kind: 'absent',
  why: 'No quota has counted a request of this client: its class has no perClient.quota, or it has sent nothing.',
} as const;

const UNKNOWN = {
  kind: 'absent',
  why: 'No quota has counted a request of such a client. Give the key of a client, as /api/clients shows it, or the name that it authenticates with.',
} as const;

const UNCONFIRMED = 'The reset is not confirmed: show the quotas of the client, and reset them again if needed.';

const NOTE =
  'All processes use the new counts within a second. Requests that are admitted and not sent yet count in them.';

function toResponse({ key, quotas }: CountedClient): ClientQuotasResponse {
  return {
    client: key,
    quotas: quotas.map(({ upstream, name, limit, used, resetAt }) => {
      const remaining = Math.max(0, limit - used);
      return { upstream, quota: name, limit, used, remaining, resetAt: new Date(resetAt).toISOString() };
    }),
  };
}

/** By upstream, the used requests of each quota. */
function audited(quotas: readonly ClientQuotaView[]): AuditedState {
  const ofUpstreams = Map.groupBy(quotas, ({ upstream }) => upstream);
  return Object.fromEntries(
    [...ofUpstreams].map(([upstream, own]) => [
      upstream,
      Object.fromEntries(own.map(({ name, used, limit }) => [name, { used, limit }])),
    ]),
  );
}
