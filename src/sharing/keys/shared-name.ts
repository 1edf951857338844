import { NameSession, ownersOf } from '../../core/idempotency/name-session.ts';
import type { KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { Millis } from '../../core/scalars.ts';
import type { KeyReply } from './key-protocol.ts';
import type { KeyStateBackend, StoredName, WriteName } from './key-state-backend.ts';
import { NO_VERSION, NOTHING_STORED } from './key-state-backend.ts';
import { NameLease } from './name-lease.ts';
import { NameLifetime } from './name-lifetime.ts';
import { numberOf, OwnClaims, unresolvedBy } from './own-claims.ts';
import type { LeasedName } from './owner-leases.ts';
import { claimOfSend, isNewsOf, type NameTask, undo } from './name-task.ts';
import { PendingClaims, type PendingClaimsParts } from './pending-claims.ts';

export interface SharedNameParts extends PendingClaimsParts {
  readonly backend: KeyStateBackend;
  /** This process. */
  readonly owner: string;
  readonly nextVersion: () => string;
  readonly onForgotten?: (name: string) => void;
  /** Nothing of this process is left here. */
  readonly onIdle: (name: SharedName) => void;
}

/** After no response. */
const RETRY_AFTER: Millis = 250;

/**
 * One name, whose writes this process shares with others. Tasks run one batch after another on the last known state. Their
 * results are stored and reported if no other process has changed the state meanwhile; otherwise they run again on the new one.
 */
export class SharedName implements LeasedName {
  readonly name: WriteName;
  readonly lease: NameLease;
  readonly #parts: SharedNameParts;
  readonly #pending: PendingClaims;
  #known = NOTHING_STORED;
  #tasks: NameTask[] = [];
  #isBusy = false;
  readonly #own: OwnClaims;
  /** Claims that are not closed. While there is one, no other object has this name, so none presumes them unknown. */
  #open = 0;
  /** A change that may have been stored, and its tasks. */
  #unconfirmed: { readonly version: string; readonly tasks: ReadonlySet<NameTask> } | undefined;
  /** The last change was not reported to the claims of this process: another process made it, or no response to it arrived. */
  #isUnreported = false;
  #isRetryScheduled = false;
  readonly #lifetime = new NameLifetime();

  constructor(name: WriteName, parts: SharedNameParts) {
    this.name = name;
    this.#parts = parts;
    const { clock, backend, owner } = parts;
    this.#own = new OwnClaims(owner, () => parts.onForgotten?.(name.name));
    this.lease = new NameLease(clock, backend.leaseTime, () => {
      for (const id of this.#own.stored.keys()) parts.reply({ type: 'lapsed', claim: numberOf(id) });
    });
    const reply = (result: KeyReply): void => {
      if (result.type === 'claimed') this.#own.onGranted(result.claim);
      parts.reply(result);
    };
    this.#pending = new PendingClaims(
      { ...parts, reply },
      (pending) => this.run({ kind: 'claim', pending }),
      (number) => {
        for (const task of this.#undo(number)) this.run(task);
      },
    );
  }

  get hasClaims(): boolean {
    return this.#own.size > 0;
  }

  claim(number: number, request: KeyClaimRequest, deadline: Millis): void {
    this.#lifetime.onRequest(request.ttl);
    this.#open += 1;
    this.#pending.add(number, request, deadline);
  }

  /** Ends a wait for the key. */
  stopWaiting(number: number): void {
    this.#pending.stop(number);
  }

  /** The request has ended; the claim may still wait, if its client did. */
  close(number: number): void {
    this.#open -= 1;
    if (!this.#pending.stop(number)) this.run({ kind: 'close', number });
  }

  run(task: NameTask): void {
    this.#tasks.push(task);
    this.#runNext();
  }

  /** Another process has changed the name, or freed the key. */
  onNews(): void {
    if (!this.#pending.retryWaiting()) this.run({ kind: 'refresh' });
  }

  onMissing(): void {
    this.run({ kind: 'restore' });
  }

  #runNext(): void {
    if (this.#isBusy || this.#isRetryScheduled) return;
    if (this.#tasks.length === 0) {
      if (this.#open === 0 && this.#own.size === 0 && this.#pending.size === 0) this.#parts.onIdle(this);
      return;
    }
    this.#isBusy = true;
    const tasks = this.#tasks;
    this.#tasks = [];
    this.#attempt(tasks);
  }

  #attempt(tasks: readonly NameTask[]): void {
    const { backend, clock, nextVersion } = this.#parts;
    const { version, state, gone, forgets } = this.#known;
    const session = new NameSession(this.name.name, state, clock);
    session.abandon((owner, id) => this.#own.isOver(owner, id, gone, (number) => this.#pending.has(number)));
    const isAnyGone = session.hasChanged;
    const effects = [this.#restoreFor(tasks, session), ...tasks.map((task) => this.#perform(session, task))];
    if (!session.hasChanged) {
      // These claims have left nothing to remove.
      if (tasks.every(({ kind }) => kind === 'close')) return this.#finish(session, this.#known, tasks, effects);
      const awaits = tasks.some(({ kind }) => kind === 'claim');
      return backend.read(this.name, awaits, (found) => {
        if (found === undefined) this.#onLost(tasks, undefined);
        // The end of a lease is no change, but makes one.
        else if (found.version === version && [...found.gone].every((each) => gone.has(each))) {
          this.#finish(session, found, tasks, effects);
        } else this.#attemptOn(found, tasks);
      });
    }
    const next = nextVersion();
    const sentAt = clock.now();
    const isNews = isAnyGone || isNewsOf(tasks, session);
    const { state: changed, unresolvedOwner } = session;
    const change = { expected: version, next, state: changed, owners: ownersOf(changed), unresolvedOwner, isNews };
    backend.swap(this.name, { ...change, ...this.#lifetime.terms }, (result) => {
      if (result.kind === 'lost') return this.#onLost(tasks, result.isUnsent ? undefined : next);
      if (result.kind === 'changed') return this.#attemptOn(result.found, tasks);
      this.lease.onRenewed(sentAt);
      const stored = { version: changed === undefined ? NO_VERSION : next, state: changed, gone, forgets };
      this.#finish(session, stored, tasks, effects);
    });
  }

  /** Runs the tasks again on what is stored now, except those whose result was stored although there was no response. */
  #attemptOn(found: StoredName, tasks: readonly NameTask[]): void {
    const unconfirmed = this.#unconfirmed;
    this.#unconfirmed = undefined;
    const isForgotten = found.forgets > this.#known.forgets;
    this.#known = found;
    this.#isUnreported = true;
    if (found.version === unconfirmed?.version) {
      this.#own.onStored(found.state, unconfirmed.tasks, () => false);
      return this.#attempt(tasks.filter((task) => !unconfirmed.tasks.has(task)));
    }
    // The results of claims from before would bring back what an operator has forgotten.
    if (isForgotten) this.#own.onForgotten(found.state);
    this.#attempt(tasks);
  }

  /** @returns what happens once the result is stored */
  #perform(session: NameSession, task: NameTask): () => void {
    const { reply, owner } = this.#parts;
    switch (task.kind) {
      case 'claim':
        return this.#pending.perform(session, task.pending, this.#own);
      case 'change': {
        const { operation } = task;
        const id = this.#own.idOf(operation.claim);
        this.#own.restore(session, operation.claim, claimOfSend(id, owner, task));
        session.change(id, (claim) => claim.apply(operation));
        return () => undefined;
      }
      case 'close':
        session.close(this.#own.idOf(task.number));
        return () => undefined;
      case 'look': {
        this.#own.restore(session, task.number);
        if (!this.lease.isValid && !this.#pending.has(task.number)) session.hasChanged = true; // to renew it
        const known = session.lookUpToSend(this.#own.idOf(task.number), task.last) ?? {
          record: session.lookUpFor(task.request),
          endpoint: undefined,
        };
        return () => reply({ type: 'known', claim: task.number, ...known });
      }
      case 'restore':
      case 'refresh':
        return () => undefined;
    }
  }

  // A request in progress has the key, although the store has lost that. Restored before the tasks, because they may end it.
  // Others may have had the key meanwhile, so its claim looks it up before it sends.
  #restoreFor(tasks: readonly NameTask[], session: NameSession): () => void {
    const isNeeded = tasks.some(({ kind }) => kind === 'claim' || kind === 'restore');
    const missing = isNeeded ? this.#own.restoreAll(session) : [];
    return () => missing.forEach((claim) => this.#parts.reply({ type: 'lapsed', claim }));
  }

  #finish(session: NameSession, stored: StoredName, tasks: readonly NameTask[], effects: (() => void)[]): void {
    const { reply, clock } = this.#parts;
    const isUnreported = this.#isUnreported;
    this.#known = stored;
    this.#unconfirmed = undefined;
    this.#isUnreported = false;
    for (const [id, claim] of isUnreported || isNewsOf(tasks, session) ? this.#own.stored : []) {
      reply({ type: 'changed', claim: numberOf(id), ...(session.lookUp(id) ?? unresolvedBy(claim, clock.now())) });
    }
    for (const effect of effects) effect();
    this.#own.onStored(stored.state, tasks, (id) => session.has(id)); // after the effects, which grant claims
    const mayBeFree = isUnreported || tasks.some(({ kind }) => kind === 'change' || kind === 'close');
    if (mayBeFree) this.#pending.retryWaiting();
    this.#isBusy = false;
    this.#runNext();
  }

  /** There was no response. @param version of a change that may have been stored */
  #onLost(tasks: readonly NameTask[], version: string | undefined): void {
    const { reply, schedule, clock } = this.#parts;
    if (version !== undefined) this.#unconfirmed = { version, tasks: new Set(tasks) };
    const later: NameTask[] = [];
    for (const task of tasks) {
      if (task.kind === 'claim') {
        this.#pending.refuse(task.pending, 'key_store_lost');
        if (version !== undefined) later.push(...this.#undo(task.pending.number));
      } else if (task.kind === 'look') {
        const assumed = unresolvedBy(this.#own.get(task.number), clock.now());
        reply({ type: 'known', claim: task.number, ...assumed, isLost: true });
      } else if (task.kind !== 'refresh' && task.kind !== 'restore') later.push(task);
    }
    this.#tasks = [...later, ...this.#tasks];
    this.#isBusy = false;
    if (this.#tasks.length === 0) return this.#runNext();
    this.#isRetryScheduled = true;
    schedule(RETRY_AFTER, () => {
      this.#isRetryScheduled = false;
      this.#runNext();
    });
  }

  #undo(number: number): readonly NameTask[] {
    this.#own.onGranted(number); // perhaps it was
    return undo(number);
  }
}
