/** The request that a delivery sends. A sender chooses all of it, so it is shown as text only. */
import { find, setShown, setText } from '../dom/dom.js';

/** @import { DeliveryContent } from '../api-types.ts' */

/** Characters of a body that are shown: a browser lays out a longer text slowly. */
const MAX_SHOWN = 100_000;

export class DeliveryMessage {
  #section;
  #target;
  #headers;
  #note;
  #body;

  /** @param {HTMLElement} section */
  constructor(section) {
    this.#section = section;
    this.#target = find(section, '[data-target]', HTMLElement);
    this.#headers = find(section, '[data-headers]', HTMLElement);
    this.#note = find(section, '[data-note]', HTMLElement);
    this.#body = find(section, '[data-body]', HTMLElement);
  }

  get isShown() {
    return !this.#section.hidden;
  }

  /** @param {DeliveryContent | null} content null: it cannot be read */
  show(content) {
    setText(this.#target, content === null ? '' : `${content.method} ${content.target} from ${content.peer}`);
    this.#headers.replaceChildren(...(content?.headers ?? []).map(makeHeader));
    setText(this.#note, describeBody(content));
    setText(this.#body, content?.body.slice(0, MAX_SHOWN) ?? '');
    setShown(this.#body, content !== null && content.body !== '');
    setShown(this.#section, true);
  }

  /** Removes it from the page. */
  clear() {
    setShown(this.#section, false);
    this.#headers.replaceChildren();
    for (const element of [this.#target, this.#note, this.#body]) setText(element, '');
  }
}

/** @param {readonly [name: string, value: string]} header */
function makeHeader([name, value]) {
  const row = document.createElement('tr');
  const [nameCell, valueCell] = [document.createElement('th'), document.createElement('td')];
  nameCell.scope = 'row';
  nameCell.textContent = name;
  valueCell.textContent = value;
  row.append(nameCell, valueCell);
  return row;
}

/** @param {DeliveryContent | null} content */
function describeBody(content) {
  if (content === null) return 'The message has expired, or cannot be decrypted.';
  const { body, encoding } = content;
  if (body === '') return 'The body is empty.';
  const kind = encoding === 'text' ? 'Body' : 'The body is not UTF-8. In base64';
  return body.length > MAX_SHOWN ? `${kind}, the first ${MAX_SHOWN} of ${body.length} characters:` : `${kind}:`;
}
