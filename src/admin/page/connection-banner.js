/** The banner that warns when the data on the page is out of date. */
import { announce } from './dom/announcements.js';
import { find, setShown, setText } from './dom/dom.js';
import { STALE_AFTER_MS } from './page-model.js';
import { formatTimeSpan } from './text/labels.js';

/** @import { FeedState } from './sse-client.js' */
/** @import { PageModel } from './page-model.js' */

export class ConnectionBanner {
  #model;
  #banner = find(document, '#connection', HTMLElement);
  #text = find(this.#banner, '[data-text]', HTMLElement);
  /** @type {FeedState} */
  #state = { kind: 'connecting' };
  #retryAt = 0;
  #wasLost = false;

  /**
   * @param {PageModel} model
   * @param {() => void} retry
   */
  constructor(model, retry) {
    this.#model = model;
    find(this.#banner, '#retry', HTMLButtonElement).addEventListener('click', retry);
  }

  /** @param {FeedState} state */
  setState(state) {
    this.#state = state;
    this.#model.setConnected(state.kind === 'live' || (state.kind === 'connecting' && !this.#wasLost));
    if (state.kind === 'lost') {
      this.#retryAt = Date.now() + state.retryIn;
      if (!this.#wasLost) announce('The connection to Tidegate is lost.');
      this.#wasLost = true;
    } else if (state.kind === 'live') {
      if (this.#wasLost) announce('The connection to Tidegate is restored.');
      this.#wasLost = false;
    }
    this.draw();
  }

  draw() {
    const text = this.#formatText();
    setShown(this.#banner, text !== undefined);
    if (text !== undefined) setText(this.#text, text);
    document.body.classList.toggle('stale', text !== undefined && this.#model.status !== undefined);
  }

  #formatText() {
    const state = this.#state;
    const age = this.#model.receivedAt === 0 ? undefined : Date.now() - this.#model.receivedAt;
    const staleness = age === undefined ? '' : ` Data is ${formatTimeSpan(age / 1000)} old.`;
    switch (state.kind) {
      case 'lost': {
        const wait = Math.max(0, this.#retryAt - Date.now()) / 1000;
        return `Connection lost: ${state.why}.${staleness} Retrying in ${formatTimeSpan(wait)}.`;
      }
      case 'denied':
        return `Access denied (${state.status}): ${state.why}${staleness}`;
      case 'connecting':
        return this.#wasLost ? `Reconnecting…${staleness}` : undefined;
      case 'live':
        return age !== undefined && age > STALE_AFTER_MS
          ? `No data received for ${formatTimeSpan(age / 1000)}.`
          : undefined;
    }
  }
}
