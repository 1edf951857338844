import type { DrainResponse, ClientResetResponse, UpstreamActionResponse } from '../api/action-schemas.ts';
import type { ClientRow } from '../api/response-schemas.ts';
import type { UpstreamStatus } from '../api/upstream-schemas.ts';
import type { OverrideCommand, ActionResult } from '../api/admin-operations.ts';
import { suggest } from '../../config/values/suggest.ts';
import type { AuditedState, OperatorAction } from '../../core/events/operator-events.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { OverrideChange } from '../../core/limits/operator-override.ts';
import type { Clock, Millis, PerSecond } from '../../core/scalars.ts';
import { overrideNotes } from './override-notes.ts';
import type { ProcessGroup } from './process-api.ts';
import type { ProcessFacts } from './process-facts.ts';

export interface OperatorCommandsParts {
  readonly processes: ProcessGroup;
  readonly clock: Clock;
  readonly facts: () => ProcessFacts;
  /** `rateLimit.maxRate` of an upstream; undefined if it is not configured. */
  readonly maxRateOf: (upstream: string) => PerSecond | undefined;
  readonly listen: EventSink;
  readonly drain: () => void;
  /** The current status of the upstreams. */
  readonly upstreams: () => Promise<readonly UpstreamStatus[]>;
  /** Clients whose key contains this text, most restricted first. */
  readonly findClients: (part: string) => Promise<readonly ClientRow[]>;
}

/** Length of the prefix of a mistyped key that is searched for suggestions. */
const SUGGESTION_PREFIX = 6;

/** Applies operator commands in all processes, and reports each command once. */
export class OperatorCommands {
  readonly #parts: OperatorCommandsParts;
  #isDraining = false;

  constructor(parts: OperatorCommandsParts) {
    this.#parts = parts;
  }

  async applyOverride(
    upstream: string,
    command: OverrideCommand,
    by: string,
  ): Promise<ActionResult<UpstreamActionResponse>> {
    const { processes, clock, facts, listen, upstreams, maxRateOf } = this.#parts;
    const rows = await upstreams();
    const names = rows.map(({ name }) => name);
    const before = rows.find(({ name }) => name === upstream);
    if (before === undefined) return { kind: 'unknown', nearest: suggest(upstream, names) };
    const { mode, store, workers } = facts();
    const isRelease = command.do === 'unpin' || command.do === 'unblock';
    if (mode === 'observe' && !isRelease) return { kind: 'refused', why: REFUSED_IN_OBSERVE_MODE };
    const action = toOperatorAction(upstream, command);
    listen({ type: 'operator', by, ...action });
    const override = toOverrideCommand(command, clock.now());
    // Workers that share limits through Redis have no common limit here, so each gets its part of the pinned rate.
    const isDivided = override.action === 'pin' && store === 'redis' && workers > 1;
    await processes.query('applyOverride', () => {
      return { upstream, order: isDivided ? { ...override, rate: override.rate / workers } : override };
    });
    const row = (await upstreams()).find(({ name }) => name === upstream);
    listen({ type: 'operator-audit', by, action, before: limitState(before), after: row && limitState(row) });
    if (row === undefined) return { kind: 'unknown', nearest: undefined }; // a reload has removed it meanwhile
    return {
      kind: 'done',
      row: { ...row, notes: overrideNotes(row, command, { ...facts(), maxRate: maxRateOf(upstream) }) },
    };
  }

  async reset(client: string, by: string): Promise<ActionResult<ClientResetResponse>> {
    const { processes, listen, facts, findClients } = this.#parts;
    const before = (await findClients(client)).find(({ key }) => key === client);
    const answers = await processes.query('reset', () => ({ client }));
    const known = new Set([...answers.values()].flat());
    if (known.size === 0) {
      const [similar] = await findClients(client.slice(0, SUGGESTION_PREFIX));
      return { kind: 'unknown', nearest: similar?.key };
    }
    const action: OperatorAction = { action: 'reset', client };
    listen({ type: 'operator', by, ...action });
    const row = (await findClients(client)).find(({ key }) => key === client);
    const states = { before: before === undefined ? {} : clientState(before), after: row && clientState(row) };
    listen({ type: 'operator-audit', by, action, ...states });
    if (row === undefined) return { kind: 'unknown', nearest: undefined }; // evicted meanwhile
    const notes = ['Only its future requests count.', ...(facts().store === 'redis' ? [NOTE_OTHER_REPLICAS] : [])];
    return { kind: 'done', row: { ...row, alsoAt: [...known].filter((name) => name !== row.upstream), notes } };
  }

  drain(by: string): DrainResponse {
    const { listen, drain, facts } = this.#parts;
    // A second order asks for nothing, so the timeline shows the first only.
    if (!this.#isDraining) {
      this.#isDraining = true;
      const action: OperatorAction = { action: 'drain' };
      listen({ type: 'operator', by, ...action });
      const before = { phase: facts().phase };
      drain();
      listen({ type: 'operator-audit', by, action, before, after: { phase: 'draining' } });
    }
    return {
      phase: 'draining',
      notes: ['As on SIGTERM: it stops accepting requests soon, and exits when all are answered.'],
    };
  }
}

const NOTE_OTHER_REPLICAS = 'This process only: replicas that know of the hold keep it.';
const REFUSED_IN_OBSERVE_MODE =
  'In observe mode every request is forwarded at once, so rates cannot be pinned and upstreams cannot be blocked.';

function toOverrideCommand(command: OverrideCommand, now: Millis): OverrideChange {
  if (command.do === 'pin') return { action: 'pin', rate: command.rate };
  if (command.do !== 'block') return { action: command.do };
  return { action: 'block', until: command.time === undefined ? Number.POSITIVE_INFINITY : now + command.time };
}

function toOperatorAction(upstream: string, command: OverrideCommand): OperatorAction {
  switch (command.do) {
    case 'pin':
      return { action: 'pin', upstream, rate: command.rate };
    case 'block':
      return { action: 'block', upstream, time: command.time };
    case 'unpin':
    case 'unblock':
      return { action: command.do, upstream };
  }
}

/** What overrides change. */
function limitState({ state, rate, pinned, blockedBy, until }: UpstreamStatus): AuditedState {
  return { state, rate, pinned, blockedBy, until };
}

/** What a reset changes. */
function clientState({ state, allowance, heldUntil }: ClientRow): AuditedState {
  return { state, allowance, heldUntil };
}
