/** Judges the responses that a client gets about its write, by earlier responses and by the facts at the upstream. */
import type { Millis } from '../../../src/core/scalars.ts';
import type { OracleRequest } from './oracle-request.ts';
import type { Intent } from './intent.ts';
import { REPLAY_LIMIT } from './topology.ts';

/** The proxy's log line of a request whose client has left. */
export interface ProxyLogEntry {
  /** 0 if the client left before a response. */
  readonly status: number;
  readonly attempts: number;
  readonly isComplete: boolean;
}

export interface UpstreamFacts {
  readonly times: () => number;
  /** Undefined until the request has ended. */
  readonly logged: (ask: OracleRequest) => ProxyLogEntry | undefined;
  readonly ttl: Millis | undefined;
  /** True if the proxy remembers completed writes, even without an open attempt. */
  readonly isRemembered: boolean;
  /**
   * True once a fault of a process or a store may have left the outcome unknown to the proxy, or the key in use. Then these
   * reports are no contradiction, nor is an early end of the key.
   */
  readonly isDisturbed?: () => boolean;
  /** True if the key may still be in use after the response to the request that had it. */
  readonly mayBeInUse?: () => boolean;
}

/** Outcomes reported to requests concurrent with another. */
interface ConcurrentRequests {
  readonly isAlone: boolean;
  readonly othersAreUnresolved: boolean;
  readonly isBreaking: boolean;
}

const DECLINED_BUT_DONE = 'reported as declined, but it is done';
const NOT_DONE_BUT_DONE = 'reported as not done, but it is';
const ANSWERED_UNKNOWN = 'reported as answered, but its client does not know that it is done';
const CARRIED_OUT = 'carried out ';

/**
 * Whether a process may report this because it does not know what another process did with the write. That it was carried out several
 * times is to be judged by the number of times.
 */
export function isExplainedByOthers(wrong: string): boolean {
  return [DECLINED_BUT_DONE, NOT_DONE_BUT_DONE, ANSWERED_UNKNOWN].includes(wrong) || wrong.startsWith(CARRIED_OUT);
}

export class ClientKnowledge {
  readonly #intent: Intent;
  readonly #known: UpstreamFacts;
  /** Credentials with an attempt of unknown outcome that no later response has resolved. */
  readonly #open = new Set<string>();
  /** Credentials that received a final response. A later attempt with one of them opens nothing, once it has ended. */
  readonly #settled = new Set<string>();
  #knowsDone = false;
  #knowsDeclined = false;
  /** The upstream declined an attempt; its client does not know if that was retried. */
  #wasDeclined = false;
  #firstAskedAt: Millis | undefined;
  /** Requests whose client has left, which the proxy may still process. */
  #left: OracleRequest[] = [];
  readonly wrong: string[] = [];

  constructor(intent: Intent, known: UpstreamFacts) {
    this.#intent = intent;
    this.#known = known;
  }

  get firstAskedAt(): Millis | undefined {
    return this.#firstAskedAt;
  }

  /** Whether a final response was delivered, or sent as a whole just before its client left. */
  get hasFinalResponse(): boolean {
    return this.#knowsDone || this.#knowsDeclined;
  }

  /** Call before each round. */
  begin(now: Millis): void {
    this.#firstAskedAt ??= now;
    this.#left = this.#left.filter((ask) => !this.#isOver(ask));
    this.#closeSettled();
  }

  /** Judges responses to concurrent requests together, because their order is unknown. */
  judge(asks: readonly OracleRequest[], now: Millis): void {
    const left = asks.filter(({ reported }) => reported === 'nothing');
    const isAlone = asks.length === 1 && left.length === 0 && this.#left.length === 0;
    const reported = new Set(asks.map((ask) => ask.reported));
    for (const ask of asks) {
      this.#wasDeclined ||= ask.wasDeclined;
      if (ask.isOpen || (ask.reported === 'unknown' && this.#mayBeCutUnseen(now))) this.#open.add(ask.token);
    }
    const hadFinalResponse = this.hasFinalResponse;
    this.#knowsDone ||= reported.has('done');
    this.#knowsDeclined ||= reported.has('declined');
    // A repeat that the upstream rejects while a response is being forwarded is plain, although that may break off.
    const isBreaking = [...left, ...this.#left].some(({ hasBegun, manner }) => hasBegun || manner.leaves === 'soon');
    const othersAreUnresolved =
      !isAlone && (reported.has('unknown') || reported.has('nothing') || this.#left.length > 0);
    for (const ask of asks) {
      const contradiction =
        this.#findContradiction(ask, { isAlone, othersAreUnresolved, isBreaking }) ??
        this.#findOtherContradiction(ask, now);
      this.#intent.history.push(`${ask.number}: ${ask.reported}`);
      if (contradiction !== undefined) this.wrong.push(contradiction);
    }
    this.#resolve(asks, hadFinalResponse);
    this.#left.push(...left);
    if (isAlone && reported.has('done')) for (const { token } of asks) this.#settled.add(token);
    this.#closeSettled();
  }

  #closeSettled(): void {
    if (this.#known.isRemembered) for (const token of this.#settled) this.#open.delete(token);
  }

  /** The first final response covers all earlier attempts; later ones only their own credential, which may be another account's. */
  #resolve(asks: readonly OracleRequest[], hadFinalResponse: boolean): void {
    const unresolved = asks.filter(({ reported }) => reported === 'nothing' || reported === 'unknown');
    const isDeclined = asks.every(({ reported }) => reported === 'declined');
    const answered = asks.filter(({ reported }) => reported === 'done' || (isDeclined && reported === 'declined'));
    if (answered.length === 0 || this.#left.length > 0) return;
    if (!hadFinalResponse) this.#open.clear();
    for (const { token } of answered) this.#open.delete(token);
    for (const { token } of unresolved) this.#open.add(token);
  }

  /** The proxy may have aborted it at its deadline or key expiry, before the upstream received or answered it. */
  #mayBeCutUnseen(now: Millis): boolean {
    const { ttl = Number.POSITIVE_INFINITY } = this.#known;
    const { isPatient, body } = this.#intent;
    const isStreamed = body.length > REPLAY_LIMIT;
    return !isPatient || (isStreamed && now - (this.#firstAskedAt ?? now) >= ttl);
  }

  #isOpenFor(token: string): boolean {
    return this.#knowsDone && this.#known.isRemembered ? this.#open.has(token) : this.#open.size > 0;
  }

  #findContradiction(
    { reported, timesBefore, token }: OracleRequest,
    { isAlone, othersAreUnresolved, isBreaking }: ConcurrentRequests,
  ): string | undefined {
    const times = this.#known.times();
    if (times > 1) return `${CARRIED_OUT}${times} times`;
    const isDone = (timesBefore > 0 && !isBreaking) || (times > 0 && !othersAreUnresolved);
    switch (reported) {
      case 'done':
        return times === 1 ? undefined : 'reported as done, but it is not';
      case 'declined':
        return isDone && (timesBefore > 0 || !this.#knowsDone) ? DECLINED_BUT_DONE : undefined;
      case 'not done':
        return isDone && !this.#knowsDone ? NOT_DONE_BUT_DONE : undefined;
      case 'unknown':
        return this.#isOpenFor(token) || !isAlone || this.#isDisturbed
          ? undefined
          : 'reported as unknown, but it is certain';
      case 'expired':
        if (isDone && !this.#knowsDone) return ANSWERED_UNKNOWN;
        return this.#knowsDone || this.#knowsDeclined || this.#wasDeclined || isBreaking
          ? undefined
          : 'reported as answered, but it has no response';
      case 'in use':
        return isAlone && !this.#isDisturbed && this.#known.mayBeInUse?.() !== true
          ? 'reported as in use, but nothing uses it'
          : undefined;
      case 'nothing':
        return undefined;
    }
  }

  #findOtherContradiction({ reported, answeredName, hasLeft, token }: OracleRequest, now: Millis): string | undefined {
    const { ttl } = this.#known;
    const isIntact = !this.#isDisturbed;
    if (answeredName !== undefined && answeredName !== this.#intent.name) return `answered with ${answeredName}`;
    if (isIntact && reported === 'expired' && now - (this.#firstAskedAt ?? now) < (ttl ?? Number.POSITIVE_INFINITY)) {
      return 'reported as expired, but the upstream still knows the key';
    }
    const isCut = reported === 'nothing' && !hasLeft;
    return isIntact && isCut && !this.#open.has(token) ? 'cut, but not by the upstream' : undefined;
  }

  get #isDisturbed(): boolean {
    return this.#known.isDisturbed?.() ?? false;
  }

  /** Resolves a request whose client has left, once its outcome is certain. */
  #isOver(ask: OracleRequest): boolean {
    const logged = this.#known.logged(ask);
    if (logged === undefined) return false;
    this.#wasDeclined ||= ask.wasDeclined;
    // It was sent, but its client has not learned the outcome.
    if (logged.attempts > 0) this.#open.add(ask.token);
    // The complete response may have been sent just before the client left, so its delivery is unknown.
    if (logged.isComplete && ask.manner.leaves !== 'answering') {
      this.#knowsDone ||= logged.status >= 200 && logged.status < 300;
      this.#knowsDeclined ||= logged.status === 402;
    }
    this.#intent.history.push(`${ask.number} was left, after ${logged.attempts} attempts`);
    return true;
  }
}
