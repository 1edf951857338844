/** Runs the actions on one subject one after the other, so that the states before and after each are its own. */
export class ActionTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs the action when earlier ones on the subject have ended, failed ones included. */
  async run<T>(subject: string, action: () => Promise<T>): Promise<T> {
    const earlier = this.#last.get(subject);
    const turn = earlier === undefined ? action() : earlier.then(action, action);
    this.#last.set(subject, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(subject) === turn) this.#last.delete(subject);
    }
  }
}
