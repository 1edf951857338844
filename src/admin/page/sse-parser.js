/**
 * Reads server-sent events as https://html.spec.whatwg.org/multipage/server-sent-events.html has them, piece by piece: an
 * EventSource cannot send a token, and Node has none.
 */

/** @typedef {{readonly name: string, readonly data: string}} Message */

export class EventStream {
  #rest = '';
  #name = '';
  /** @type {string[]} */
  #data = [];

  /**
   * @param {string} text what has come, cut anywhere
   * @returns {Message[]} those that are complete with it
   */
  read(text) {
    /** @type {Message[]} */
    const messages = [];
    // Of CR and LF that belong together, the second may be yet to come.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') this.#dispatch(messages);
      else this.#take(line);
    }
    return messages;
  }

  /** @param {string} line */
  #take(line) {
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') this.#name = value;
    else if (field === 'data') this.#data.push(value);
  }

  /** @param {Message[]} messages */
  #dispatch(messages) {
    if (this.#data.length > 0) messages.push({ name: this.#name || 'message', data: this.#data.join('\n') });
    this.#name = '';
    this.#data = [];
  }
}
