/** What one client may be told of its write, by what it was told before and by what the upstream knows. */
import type { Millis } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Ask } from './ask.ts';
import type { Intent } from './intent.ts';
import { REPLAY_LIMIT } from './topology.ts';

/** What the proxy says of a request whose client was not there to hear it. */
export interface Logged {
  readonly status: number;
  readonly attempts: number;
  readonly isWhole: boolean;
}

export interface Known {
  readonly times: () => number;
  /** Undefined while the request is not over. */
  readonly logged: (ask: Ask) => Logged | undefined;
  readonly ttl: Millis | undefined;
  /** The proxy remembers what was answered, also where nothing was open. */
  readonly isRemembered: boolean;
}

/** What others are told that are under way with a request. */
interface Beside {
  readonly isAlone: boolean;
  readonly othersTell: boolean;
  readonly isBreaking: boolean;
}

export class ClientView {
  readonly #intent: Intent;
  readonly #known: Known;
  /** Credentials whose attempts left it open, as far as no answer since says what came of them. */
  readonly #open = new Set<string>();
  #isToldDone = false;
  #isToldDeclined = false;
  #firstAskedAt: Millis | undefined;
  /** Left by its client; the proxy may be at work on them. */
  #left: Ask[] = [];
  readonly wrong: string[] = [];

  constructor(intent: Intent, known: Known) {
    this.#intent = intent;
    this.#known = known;
  }

  get firstAskedAt(): Millis | undefined {
    return this.#firstAskedAt;
  }

  /** To be called before each round. */
  begin(now: Millis): void {
    this.#firstAskedAt ??= now;
    this.#left = this.#left.filter((ask) => !this.#isOver(ask));
  }

  /** Of answers to requests that were under way together nobody knows which was first: what they say is taken together. */
  judge(asks: readonly Ask[], now: Millis): void {
    const left = asks.filter(({ told }) => told === 'nothing');
    const isAlone = asks.length === 1 && left.length === 0 && this.#left.length === 0;
    const told = new Set(asks.map((ask) => ask.told));
    for (const ask of asks) {
      if (ask.isOpen || (ask.told === 'unknown' && this.#mayBeCutUnseen(now))) this.#open.add(ask.token);
    }
    const wasToldDone = this.#isToldDone;
    this.#isToldDone ||= told.has('done');
    this.#isToldDeclined ||= told.has('declined');
    // While it is being passed on, an answer counts as told: what is refused meanwhile cannot know that it will break off.
    const isBreaking = [...left, ...this.#left].some(({ hasBegun, manner }) => hasBegun || manner.leaves === 'soon');
    const othersTell = !isAlone && (told.has('unknown') || told.has('nothing') || this.#left.length > 0);
    for (const ask of asks) {
      const lie = this.#lieOf(ask, { isAlone, othersTell, isBreaking }) ?? this.#otherLieOf(ask, now);
      this.#intent.story.push(`${ask.number} was told ${ask.told}`);
      if (lie !== undefined) this.wrong.push(lie);
    }
    this.#resolve(asks, wasToldDone);
    this.#left.push(...left);
  }

  /** The first answer speaks of all attempts before it; one after that, of its own credential: another may be of another account. */
  #resolve(asks: readonly Ask[], wasToldDone: boolean): void {
    const unresolved = asks.filter(({ told }) => told === 'nothing' || told === 'unknown');
    const isDeclined = asks.every(({ told }) => told === 'declined');
    const answered = asks.filter(({ told }) => told === 'done' || (isDeclined && told === 'declined'));
    if (answered.length === 0 || this.#left.length > 0) return;
    if (!wasToldDone) this.#open.clear();
    for (const { token } of answered) this.#open.delete(token);
    for (const { token } of unresolved) this.#open.add(token);
  }

  /** The proxy may have cut it, at its deadline or when its key was forgotten, before the upstream had it or could answer. */
  #mayBeCutUnseen(now: Millis): boolean {
    const { ttl = Number.POSITIVE_INFINITY } = this.#known;
    const { isPatient, body } = this.#intent;
    const isStreamed = body.length > REPLAY_LIMIT;
    return !isPatient || (isStreamed && now - (this.#firstAskedAt ?? now) >= ttl);
  }

  #isOpenFor(token: string): boolean {
    return this.#isToldDone && this.#known.isRemembered ? this.#open.has(token) : this.#open.size > 0;
  }

  #lieOf({ told, timesBefore, token }: Ask, { isAlone, othersTell, isBreaking }: Beside): string | undefined {
    const times = this.#known.times();
    if (times > 1) return `carried out ${times} times`;
    const isDone = (timesBefore > 0 && !isBreaking) || (times > 0 && !othersTell);
    switch (told) {
      case 'done':
        return times === 1 ? undefined : 'told as done, and it is not';
      case 'declined':
        return isDone && (timesBefore > 0 || !this.#isToldDone) ? 'told as declined, and it is done' : undefined;
      case 'not done':
        return isDone && !this.#isToldDone ? 'told as not done, and it is' : undefined;
      case 'unknown':
        return this.#isOpenFor(token) || !isAlone ? undefined : 'told as unknown, and it is certain';
      case 'expired':
        if (isDone && !this.#isToldDone) return 'told as answered, and its client does not know that it is done';
        return this.#isToldDone || this.#isToldDeclined || isBreaking
          ? undefined
          : 'told as answered, and it has no answer';
      case 'in use':
        return isAlone ? 'told as in use, and nobody uses it' : undefined;
      case 'nothing':
        return undefined;
    }
  }

  #otherLieOf({ told, says, hasLeft, token }: Ask, now: Millis): string | undefined {
    const { ttl } = this.#known;
    if (says !== undefined && says !== this.#intent.name) return `told of ${says}`;
    if (told === 'expired' && now - (this.#firstAskedAt ?? now) < (ttl ?? Number.POSITIVE_INFINITY)) {
      return 'told as forgotten, and the upstream remembers it';
    }
    return told === 'nothing' && !hasLeft && !this.#open.has(token) ? 'cut, and the upstream did not' : undefined;
  }

  /** What came of a request that its client has left, once that is certain. */
  #isOver(ask: Ask): boolean {
    const logged = this.#known.logged(ask);
    if (logged === undefined) return false;
    // It was sent: whether that came to anything, its client has not learned.
    if (logged.attempts > 0) this.#open.add(ask.token);
    // All of the answer may have left just before its client did, and nobody but the network knows.
    if (logged.isWhole && ask.manner.leaves !== 'answering') {
      this.#isToldDone ||= logged.status < 300;
      this.#isToldDeclined ||= logged.status === 402;
    }
    this.#intent.story.push(`${ask.number} was left, after ${logged.attempts} attempts`);
    return true;
  }
}
