/**
 * Incremental parser of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 * EventSource is no alternative: it cannot send a token, and Node has none.
 */

/** @typedef {{readonly name: string, readonly data: string}} Message */

export class SseParser {
  #rest = '';
  #name = '';
  /** @type {string[]} */
  #data = [];

  /**
   * @param {string} text the next piece of the stream, cut anywhere
   * @returns {Message[]} the messages that this piece completes
   */
  push(text) {
    /** @type {Message[]} */
    const messages = [];
    // A CR at the end may be the first half of a CR LF whose LF is in the next piece.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') this.#dispatch(messages);
      else this.#parseLine(line);
    }
    return messages;
  }

  /** @param {string} line */
  #parseLine(line) {
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
