/** A row for each of several upstreams: its state in a sentence, and a button that opens and closes its card. */
import { find, setAttribute, setShown, setText } from './dom/dom.js';
import { useSingleTabStop } from './dom/single-tab-stop.js';
import { KeyedRows } from './keyed-rows.js';
import { formatHeadline, upstreamSeverity } from './text/limit-labels.js';

/** @import { PageModel } from './page-model.js' */
/** @import { UpstreamStatus } from './api-types.ts' */

export class UpstreamOverview {
  #model;
  #onOpen;
  #list = find(document, '#short', HTMLElement);
  #rows;
  /** Names of the upstreams whose card is open. The address of the page may name one. */
  #open = new Set([nameInHash()]);

  /**
   * @param {PageModel} model
   * @param {(name: string) => void} onOpen called when a card is opened or closed
   */
  constructor(model, onOpen) {
    this.#model = model;
    this.#onOpen = onOpen;
    /** @type {KeyedRows<UpstreamStatus>} */
    this.#rows = new KeyedRows(
      this.#list,
      ({ name }) => name,
      ({ name }) => this.#makeRow(name),
      'always',
    );
    useSingleTabStop(this.#list);
  }

  /** @param {string} name */
  isOpen(name) {
    return this.#open.has(name);
  }

  /** @param {readonly UpstreamStatus[]} upstreams */
  draw(upstreams) {
    setShown(this.#list, upstreams.length > 1);
    if (upstreams.length > 1) this.#rows.show(upstreams);
  }

  /** @param {string} name */
  #toggle(name) {
    if (!this.#open.delete(name)) this.#open.add(name);
    this.#onOpen(name);
  }

  /** @param {string} name */
  #makeRow(name) {
    const row = document.createElement('li');
    const [mark, line, button, text] = [
      document.createElement('span'),
      document.createElement('p'),
      document.createElement('button'),
      document.createElement('span'),
    ];
    mark.className = 'mark';
    mark.ariaHidden = 'true';
    button.type = 'button';
    button.className = 'link';
    button.textContent = name;
    button.title = 'Show or hide the rates, the figures and the actions';
    button.addEventListener('click', () => this.#toggle(name));
    line.append(button, ' ', text);
    row.append(mark, line);
    /** @param {UpstreamStatus} upstream */
    const fill = (upstream) => {
      setAttribute(row, 'data-severity', upstreamSeverity(upstream));
      setAttribute(button, 'aria-expanded', String(this.isOpen(name)));
      setText(text, formatHeadline(upstream, this.#model.now));
    };
    return { row, fill };
  }
}

/** @param {string} name */
export function cardId(name) {
  return `upstream-${encodeURIComponent(name)}`;
}

function nameInHash() {
  const [, name] = /^#upstream-(.+)$/.exec(location.hash) ?? [];
  try {
    return name === undefined ? undefined : decodeURIComponent(name);
  } catch {
    return undefined; // no address that this page has made
  }
}
