/** Says when what is shown is no longer what is. */
import { speak } from './announcements.js';
import { find, setShown, setText } from './dom.js';
import { writeSpan } from './labels.js';

/** @import { FeedState } from './sse-client.js' */
/** @import { Model } from './page-model.js' */

/** Milliseconds without a status, after which that is told: one comes each second. */
const STALE = 4000;

export class Connection {
  #model;
  #banner = find(document, '#connection', HTMLElement);
  #text = find(this.#banner, '[data-text]', HTMLElement);
  /** @type {FeedState} */
  #state = { kind: 'connecting' };
  #retryAt = 0;
  #wasLost = false;

  /**
   * @param {Model} model
   * @param {() => void} retry
   */
  constructor(model, retry) {
    this.#model = model;
    find(this.#banner, '#retry', HTMLButtonElement).addEventListener('click', retry);
  }

  /** @param {FeedState} state */
  take(state) {
    this.#state = state;
    if (state.kind === 'lost') {
      this.#retryAt = Date.now() + state.retryIn;
      if (!this.#wasLost) speak('The connection to Tidegate is lost.');
      this.#wasLost = true;
    } else if (state.kind === 'live') {
      if (this.#wasLost) speak('The connection to Tidegate is back.');
      this.#wasLost = false;
    }
    this.draw();
  }

  draw() {
    const text = this.#write();
    setShown(this.#banner, text !== undefined);
    if (text !== undefined) setText(this.#text, text);
    document.body.classList.toggle('stale', text !== undefined && this.#model.status !== undefined);
  }

  #write() {
    const state = this.#state;
    const age = this.#model.heardAt === 0 ? undefined : Date.now() - this.#model.heardAt;
    const shown = age === undefined ? '' : ` What is shown is ${writeSpan(age / 1000)} old.`;
    switch (state.kind) {
      case 'lost': {
        const wait = Math.max(0, this.#retryAt - Date.now()) / 1000;
        return `Connection lost: ${state.why}.${shown} Trying again in ${writeSpan(wait)}.`;
      }
      case 'denied':
        return `Not let in (${state.status}): ${state.why}${shown}`;
      case 'connecting':
        return this.#wasLost ? `Connecting again…${shown}` : undefined;
      case 'live':
        return age !== undefined && age > STALE ? `Nothing has come for ${writeSpan(age / 1000)}.` : undefined;
    }
  }
}
