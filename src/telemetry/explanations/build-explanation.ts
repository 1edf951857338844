import type { RequestOutcome } from '../../core/events/proxy-events.ts';
import type { Millis, Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Step } from '../../core/exchange/exchange-observer.ts';
import type { Story } from './explanation-record.ts';
import { originOf } from './explanation-record.ts';
import { numbersOfAttempt, tellAnswered, tellDenied, tellRetry } from './format-attempt.ts';
import { numbersOf, secondsOrNull, tellDecided, tellDequeued } from './format-decision.ts';
import { tellPoll, UNPOLLED } from './format-poll.ts';
import { tellClaim } from './format-key-claim.ts';
import { tellVerdict } from './format-verdict.ts';
import { tellDuration, toSeconds } from './format-values.ts';

/** Why a request ended as it did: everything that was decided of it, in order. */
export interface Explanation {
  readonly id: string;
  /** ISO 8601: when it arrived. */
  readonly at: string;
  readonly client: {
    /** Hashed identity. */
    readonly key: string;
    /** What that was told apart by; null where it was refused before. */
    readonly identifiedBy: string | null;
  };
  readonly route: string;
  readonly upstream: string;
  readonly method: string;
  readonly path: string;
  readonly outcome: RequestOutcome;
  /** 0: its client had gone before it was told anything. */
  readonly status: number;
  /** Of the trace that it is a part of; null where it is of none. */
  readonly traceId: string | null;
  readonly verdict: string;
  readonly steps: readonly ExplainedStep[];
}

export interface ExplainedStep {
  /** Seconds since it arrived. */
  readonly at: number;
  readonly what:
    | 'arrived'
    | 'claimed'
    | 'decided'
    | 'queued'
    | 'sent'
    | 'answered'
    | 'retry'
    | 'poll'
    | 'waited'
    | 'gone'
    | 'draining'
    | 'verdict';
  /** For people. */
  readonly text: string;
  /** The numbers in it. */
  readonly [number: string]: unknown;
}

/** What is kept of most requests is what was out of the ordinary: the rest follows from it, and is told here too. */
export function explain(story: Story): Explanation {
  const { record, arrivedAt, identifiedBy } = story;
  const verdict = tellVerdict(story);
  return {
    id: record.id,
    at: new Date(arrivedAt).toISOString(),
    client: { key: record.client, identifiedBy: identifiedBy ?? null },
    route: record.route,
    upstream: record.upstream,
    method: record.method,
    path: record.path,
    outcome: record.outcome,
    status: record.status,
    traceId: record.traceId ?? null,
    verdict,
    steps: [
      arrivedStep(story),
      ...new Course(story).tell(),
      {
        at: toSeconds(record.took),
        what: 'verdict',
        text: verdict,
        status: record.status,
        headSeconds: toSeconds(record.toHead),
        queuedSeconds: toSeconds(record.queued),
        waitedSeconds: toSeconds(record.slept),
        retryAfterSeconds: record.retryAfter ?? null,
        retryAfterFrom: record.retryAfterFrom ?? null,
      },
    ],
  };
}

function arrivedStep({ record, identifiedBy, key }: Story): ExplainedStep {
  const whose = identifiedBy === undefined ? '' : ` from client ${record.client}, told apart by ${identifiedBy}`;
  const where = record.upstream === '' ? 'no route' : `route ${record.route} to ${record.upstream}`;
  const what = record.method === '' ? 'what could not be read' : `${record.method} ${record.path}`;
  const keyed = key === undefined ? '' : `; its idempotency key: ${key}`;
  return { at: 0, what: 'arrived', text: `${what} arrived${whose}; ${where}${keyed}` };
}

type Gone = Extract<Step, { readonly what: 'gone' }>;

/** Goes through what was kept, and remembers what the next step follows from. */
class Course {
  readonly #story: Story;
  readonly #told: ExplainedStep[] = [];
  /** Somebody has said that it may be sent. */
  #isAdmitted = false;
  #answer: Outcome | undefined;
  #attempts = 0;
  /** Of the back-off. */
  #memory = 0;
  /** During an attempt whose sending is not told yet: that is found out from what came of it. */
  #gone: Gone | undefined;

  constructor(story: Story) {
    this.#story = story;
  }

  tell(): ExplainedStep[] {
    const { record, last, steps = [] } = this.#story;
    for (const step of steps) this.#tellStep(step);
    // What ended well was not kept as a step, and what came beyond all that is kept neither.
    if (last?.outcome !== undefined && this.#attempts < record.attempts) {
      const { outcome, endpoint, cause, limit } = last;
      const at = record.at + record.toHead;
      if (steps.length > 0) this.#tellOmitted(at - outcome.took);
      this.#tellStep({ what: 'answered', at, attempt: record.attempts, outcome, endpoint, cause, limit });
    }
    this.#tellGone();
    return this.#told;
  }

  #tellStep(step: Step): void {
    switch (step.what) {
      case 'claimed':
        return this.#add(step.at, 'claimed', tellClaim(step), {
          waitedSeconds: toSeconds(step.waited),
          reason: step.why ?? null,
        });
      case 'decided': {
        this.#isAdmitted = step.isObserved;
        const numbers = { decision: step.decision, reason: step.why ?? null, observed: step.isObserved };
        const back = { retryAfterSeconds: secondsOrNull(step.retryAfter) };
        return this.#add(step.at, 'decided', tellDecided(step, originOf(this.#story)), {
          ...numbers,
          ...back,
          ...numbersOf(step.grounds),
        });
      }
      case 'dequeued': {
        this.#isAdmitted = step.why === undefined;
        const numbers = step.grounds === undefined ? {} : numbersOf(step.grounds);
        const waitedSeconds = toSeconds(step.waited);
        const back = { retryAfterSeconds: secondsOrNull(step.retryAfter) };
        return this.#add(step.at, 'queued', tellDequeued(step, originOf(this.#story)), {
          waitedSeconds,
          reason: step.why ?? null,
          ...back,
          ...numbers,
        });
      }
      case 'answered':
        return this.#tellAttempt(step);
      case 'retry': {
        const { retryPolicy } = this.#story;
        const { reason } = step.retry;
        const { text, numbers } =
          retryPolicy === undefined
            ? { text: reason, numbers: {} }
            : tellRetry(step, retryPolicy, this.#answer, this.#memory);
        this.#memory = step.retry.memory;
        return this.#add(step.at, 'retry', text, numbers);
      }
      case 'poll': {
        const { text, numbers } = tellPoll(step);
        this.#memory = 0; // each has retries of its own
        return this.#add(step.at, 'poll', text, numbers);
      }
      case 'unpolled':
        return this.#add(step.at, 'poll', `not to be asked for again: ${UNPOLLED[step.why]}`, { denied: step.why });
      case 'denied':
        if (step.why === 'success') return undefined;
        return this.#add(step.at, 'retry', `not to be sent again: ${tellDenied(step)}`, { denied: step.why });
      case 'waited':
        this.#isAdmitted = false; // it asks again
        return this.#add(step.at, 'waited', `waited ${tellDuration(step.slept)}`, {
          waitedSeconds: toSeconds(step.slept),
        });
      case 'gone':
        this.#gone = step;
        return step.during === 'attempt' ? undefined : this.#tellGone();
      case 'draining':
        return this.#add(step.at, 'draining', 'this proxy goes away before the wait would end', {});
    }
  }

  #tellAttempt({ at, attempt, outcome, endpoint, cause, limit }: Extract<Step, { readonly what: 'answered' }>): void {
    const sentAt = Math.max(this.#story.record.at, Math.min(at - outcome.took, this.#gone?.at ?? at));
    if (!this.#isAdmitted) this.#add(sentAt, 'decided', 'passed: admitted at once', { decision: 'passed' });
    const where = endpoint === undefined ? '' : ` to ${endpoint}`;
    this.#add(sentAt, 'sent', `attempt ${attempt} sent${where}`, { attempt, endpoint: endpoint ?? null });
    this.#tellGone();
    this.#add(
      at,
      'answered',
      tellAnswered({ attempt, outcome, cause, limit }),
      numbersOfAttempt({ attempt, outcome, endpoint, cause, limit }),
    );
    this.#answer = outcome;
    this.#attempts = attempt;
    this.#isAdmitted = false;
  }

  #tellGone(): void {
    if (this.#gone === undefined) return;
    const { at, during } = this.#gone;
    this.#gone = undefined;
    this.#add(at, 'gone', tellGone(this.#story), { during });
  }

  #tellOmitted(at: Millis): void {
    if (this.#attempts + 1 >= this.#story.record.attempts) return;
    this.#add(at, 'waited', 'more happened than is kept of one request', {});
    this.#isAdmitted = true;
  }

  #add(at: Millis, what: ExplainedStep['what'], text: string, numbers: Readonly<Record<string, unknown>>): void {
    this.#told.push({ at: toSeconds(at - this.#story.record.at), what, text, ...numbers });
  }
}

/** Of one that cannot be read to its end the client is still there, and is told so. */
function tellGone({ record }: Story): string {
  return record.outcome === 'client_gone' ? 'the client went away' : 'the request was given up';
}
