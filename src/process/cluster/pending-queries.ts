import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Answer, Question, QuestionName, WorkerDialogue } from './worker-messages.ts';
import { isAnswerTo } from './worker-messages.ts';

/** A worker that does not answer in time does not hold up a scrape. */
const ANSWERED_WITHIN: Millis = 1000;

interface Asked {
  readonly hear: (worker: number, answer: Answer<QuestionName>) => void;
  readonly giveUp: (worker: number) => void;
  readonly forget: (worker: number) => void;
}

/** What workers have been asked, and not all have answered. */
export class Questions {
  readonly #open = new Map<number, Asked>();
  readonly #send: (worker: number, question: Question<QuestionName>) => void;
  #number = 0;

  constructor(send: (worker: number, question: Question<QuestionName>) => void) {
    this.#send = send;
  }

  /** Asks each of them, and returns what those tell that answer in time and are there still. */
  async ask<K extends QuestionName>(
    workers: Iterable<number>,
    name: K,
    asks: (worker: number) => WorkerDialogue[K]['asks'],
  ): Promise<ReadonlyMap<number, WorkerDialogue[K]['tells']>> {
    const answers = new Map<number, WorkerDialogue[K]['tells']>();
    const missing = new Set(workers);
    if (missing.size === 0) return answers;
    this.#number += 1;
    const number = this.#number;
    const all = Promise.withResolvers<undefined>();
    const giveUp = (worker: number): void => {
      missing.delete(worker);
      if (missing.size === 0) all.resolve(undefined);
    };
    this.#open.set(number, {
      hear: (worker, answer) => {
        if (!missing.has(worker) || !isAnswerTo(name, answer)) return;
        answers.set(worker, answer.tells);
        giveUp(worker);
      },
      giveUp,
      forget: (worker) => answers.delete(worker),
    });
    const late = setTimeout(all.resolve, ANSWERED_WITHIN, undefined);
    for (const worker of missing) this.#send(worker, { type: 'question', number, name, asks: asks(worker) });
    await all.promise;
    clearTimeout(late);
    this.#open.delete(number);
    return answers;
  }

  hear(worker: number, answer: Answer<QuestionName>): void {
    this.#open.get(answer.number)?.hear(worker, answer);
  }

  /** It cannot answer this one. */
  unanswered(worker: number, number: number): void {
    this.#open.get(number)?.giveUp(worker);
  }

  /** It has ended. What it had answered already counts no more: who asks has been told that it is gone. */
  gone(worker: number): void {
    for (const { forget, giveUp } of this.#open.values()) {
      forget(worker);
      giveUp(worker);
    }
  }
}
