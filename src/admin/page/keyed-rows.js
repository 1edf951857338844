/**
 * The rows of a table or a list, kept in place: each belongs to a key, is made once and moved only when the order has
 * changed. While somebody points at them, or has the focus in them, nothing moves under his hand.
 *
 * @template T
 */
export class Rows {
  #body;
  #keyOf;
  #make;
  /** @type {Map<string, {readonly row: HTMLElement, readonly fill: (item: T) => void}>} */
  #known = new Map();
  #pointed = false;
  #moves;

  /**
   * @param {HTMLElement} body
   * @param {(item: T) => string} keyOf
   * @param {(item: T) => {readonly row: HTMLElement, readonly fill: (item: T) => void}} make
   * @param {'always' | 'unless held'} [moves] `always` where the order hardly ever changes
   */
  constructor(body, keyOf, make, moves = 'unless held') {
    this.#body = body;
    this.#keyOf = keyOf;
    this.#make = make;
    this.#moves = moves;
    body.addEventListener('pointerenter', ({ pointerType }) => (this.#pointed = pointerType === 'mouse'));
    body.addEventListener('pointerleave', () => (this.#pointed = false));
  }

  /** Whether somebody is about to press something here. */
  get isHeld() {
    return this.#moves === 'unless held' && (this.#pointed || this.#hasFocus);
  }

  /** A button that was pressed with a mouse keeps the focus, and nobody sees it there. */
  get #hasFocus() {
    const focused = document.activeElement;
    return focused !== null && this.#body.contains(focused) && focused.matches(':focus-visible');
  }

  /**
   * @param {readonly T[]} items in the order they are wanted
   * @param {boolean} [asked] somebody asked for others: held or not, those are shown
   */
  show(items, asked = false) {
    const wanted = new Map(items.map((item) => [this.#keyOf(item), item]));
    if (this.isHeld && !asked) return this.#refresh(wanted);
    for (const [key, { row }] of this.#known) {
      if (wanted.has(key)) continue;
      row.remove();
      this.#known.delete(key);
    }
    let next = this.#body.firstElementChild;
    for (const [key, item] of wanted) {
      const { row, fill } = this.#find(key, item);
      fill(item);
      row.removeAttribute('data-gone');
      if (row === next) next = next.nextElementSibling;
      else this.#body.insertBefore(row, next);
    }
  }

  /** @param {ReadonlyMap<string, T>} wanted */
  #refresh(wanted) {
    for (const [key, { row, fill }] of this.#known) {
      const item = wanted.get(key);
      row.toggleAttribute('data-gone', item === undefined);
      if (item !== undefined) fill(item);
    }
  }

  /**
   * @param {string} key
   * @param {T} item
   */
  #find(key, item) {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = this.#make(item);
    this.#known.set(key, made);
    return made;
  }
}
