import type { DrainResponse, ClientResetResponse, UpstreamActionResponse } from '../api/action-schemas.ts';
import type { ClientRow } from '../api/response-schemas.ts';
import type { UpstreamStatus } from '../api/upstream-schemas.ts';
import type { OverrideCommand, ActionResult } from '../api/admin-operations.ts';
import { suggest } from '../../config/values/suggest.ts';
import type { ActionOutcome, AuditedState, OperatorAction } from '../../core/events/operator-events.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { OverrideChange } from '../../core/limits/operator-override.ts';
import type { Clock, Millis, PerSecond } from '../../core/scalars.ts';
import { ActionTurns } from './action-turns.ts';
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
  /** The rows of the client with this key, one for each upstream. */
  readonly findClient: (key: string) => Promise<readonly ClientRow[]>;
  /** Clients whose key contains this text, most restricted first. */
  readonly findClients: (part: string) => Promise<readonly ClientRow[]>;
}

/** Length of the prefix of a mistyped key that is searched for suggestions. */
const SUGGESTION_PREFIX = 6;

/** Applies operator commands in all processes, and reports each command once. */
export class OperatorCommands {
  readonly #parts: OperatorCommandsParts;
  readonly #turns = new ActionTurns();
  #isDraining = false;

  constructor(parts: OperatorCommandsParts) {
    this.#parts = parts;
  }

  applyOverride(upstream: string, command: OverrideCommand, by: string): Promise<ActionResult<UpstreamActionResponse>> {
    return this.#turns.run(`upstream ${upstream}`, () => this.#applyOverride(upstream, command, by));
  }

  reset(client: string, by: string): Promise<ActionResult<ClientResetResponse>> {
    return this.#turns.run(`client ${client}`, () => this.#reset(client, by));
  }

  async #applyOverride(
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
    let outcome: ActionOutcome = 'unconfirmed';
    let row: UpstreamStatus | undefined;
    try {
      const results = await processes.query('applyOverride', () => {
        return { upstream, order: isDivided ? { ...override, rate: override.rate / workers } : override };
      });
      outcome = this.#outcomeOf(results);
      row = (await upstreams()).find(({ name }) => name === upstream);
    } finally {
      const after = row && limitState(row);
      listen({ type: 'operator-audit', by, action, outcome, before: limitState(before), after });
    }
    if (row === undefined) return { kind: 'unknown', nearest: undefined }; // a reload has removed it meanwhile
    const notes = overrideNotes(row, command, { ...facts(), maxRate: maxRateOf(upstream) });
    return { kind: 'done', row: { ...row, notes: [...notes, ...notesOf(outcome)] } };
  }

  async #reset(client: string, by: string): Promise<ActionResult<ClientResetResponse>> {
    const { processes, listen, facts, findClient, findClients } = this.#parts;
    const before = clientStates(await findClient(client));
    const action: OperatorAction = { action: 'reset', client };
    let outcome: ActionOutcome = 'unconfirmed';
    let known: ReadonlySet<string> = new Set();
    let rows: readonly ClientRow[] | undefined;
    try {
      const results = await processes.query('reset', () => ({ client }));
      outcome = this.#outcomeOf(results);
      known = new Set([...results.values()].flat());
      if (known.size > 0) {
        listen({ type: 'operator', by, ...action });
        rows = await findClient(client);
      }
    } finally {
      // Processes that have responded do not know the client: nothing is changed there.
      if (known.size > 0 || outcome === 'unconfirmed') {
        listen({ type: 'operator-audit', by, action, outcome, before, after: rows && clientStates(rows) });
      }
    }
    if (known.size === 0) {
      if (outcome === 'unconfirmed') return { kind: 'unavailable', why: NOT_ALL_RESPOND };
      const [similar] = await findClients(client.slice(0, SUGGESTION_PREFIX));
      return { kind: 'unknown', nearest: similar?.key };
    }
    const [row] = rows ?? [];
    if (row === undefined) return { kind: 'unknown', nearest: undefined }; // evicted meanwhile
    const notes = [
      'Only its future requests count.',
      ...(facts().store === 'redis' ? [NOTE_OTHER_REPLICAS] : []),
      ...notesOf(outcome),
    ];
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
      listen({ type: 'operator-audit', by, action, outcome: 'done', before, after: { phase: 'draining' } });
    }
    return {
      phase: 'draining',
      notes: ['As on SIGTERM: it stops accepting requests soon, and exits when all are answered.'],
    };
  }

  /** @param results of a command, by process */
  #outcomeOf(results: ReadonlyMap<number, unknown>): ActionOutcome {
    const { workers } = this.#parts.facts();
    const processes = workers > 1 ? workers + 1 : 1; // the primary has the number 0
    return results.size < processes ? 'unconfirmed' : 'done';
  }
}

const NOTE_UNCONFIRMED = 'Not all processes have confirmed it so far: look again.';
const NOT_ALL_RESPOND =
  'No process that has responded knows this client, and not all have responded: show the client, and try again.';

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

/** What a reset changes, by upstream. */
function clientStates(rows: readonly ClientRow[]): AuditedState {
  return Object.fromEntries(
    rows.map(({ upstream, state, allowance, heldUntil }) => [upstream, { state, allowance, heldUntil }]),
  );
}

function notesOf(outcome: ActionOutcome): string[] {
  return outcome === 'unconfirmed' ? [NOTE_UNCONFIRMED] : [];
}
