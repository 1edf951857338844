/**
 * The rows of a table or a list, one for each key. A row is created once and moved only when the order changes. While the
 * pointer or the keyboard focus is on the rows, none of them moves.
 *
 * @template T
 */
export class KeyedRows {
  #body;
  #keyOf;
  #make;
  /** @type {Map<string, {readonly row: HTMLElement, readonly fill: (item: T) => void}>} */
  #rowsByKey = new Map();
  #isHovered = false;
  #reorder;

  /**
   * @param {HTMLElement} body
   * @param {(item: T) => string} keyOf
   * @param {(item: T) => {readonly row: HTMLElement, readonly fill: (item: T) => void}} make
   * @param {'always' | 'unless held'} [reorder] `always` where the order hardly ever changes
   */
  constructor(body, keyOf, make, reorder = 'unless held') {
    this.#body = body;
    this.#keyOf = keyOf;
    this.#make = make;
    this.#reorder = reorder;
    body.addEventListener('pointerenter', ({ pointerType }) => (this.#isHovered = pointerType === 'mouse'));
    body.addEventListener('pointerleave', () => (this.#isHovered = false));
  }

  /** Whether the pointer or the focus is on the rows, so that they must not move. */
  get isHeld() {
    return this.#reorder === 'unless held' && (this.#isHovered || this.#hasFocus);
  }

  /** Only visible focus counts: a button that was clicked with a mouse keeps an invisible one. */
  get #hasFocus() {
    const focused = document.activeElement;
    return focused !== null && this.#body.contains(focused) && focused.matches(':focus-visible');
  }

  /**
   * @param {readonly T[]} items in the order to show
   * @param {boolean} [force] show them even while the rows are held, because the user asked for them
   */
  show(items, force = false) {
    const wanted = new Map(items.map((item) => [this.#keyOf(item), item]));
    if (this.isHeld && !force) return this.#refresh(wanted);
    for (const [key, { row }] of this.#rowsByKey) {
      if (wanted.has(key)) continue;
      row.remove();
      this.#rowsByKey.delete(key);
    }
    let next = this.#body.firstElementChild;
    for (const [key, item] of wanted) {
      const { row, fill } = this.#getOrCreate(key, item);
      fill(item);
      row.removeAttribute('data-gone');
      if (row === next) next = next.nextElementSibling;
      else this.#body.insertBefore(row, next);
    }
  }

  /** @param {ReadonlyMap<string, T>} wanted */
  #refresh(wanted) {
    for (const [key, { row, fill }] of this.#rowsByKey) {
      const item = wanted.get(key);
      row.toggleAttribute('data-gone', item === undefined);
      if (item !== undefined) fill(item);
    }
  }

  /**
   * @param {string} key
   * @param {T} item
   */
  #getOrCreate(key, item) {
    const known = this.#rowsByKey.get(key);
    if (known !== undefined) return known;
    const made = this.#make(item);
    this.#rowsByKey.set(key, made);
    return made;
  }
}
