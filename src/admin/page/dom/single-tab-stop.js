/** Lists of buttons with one tab stop: Tab enters and leaves a list, and the arrow keys move within it. */
import { setAttribute } from './dom.js';

/**
 * Up, Down, Home and End move between the rows of the list; Left and Right between the buttons of a row, or between rows of a
 * single button.
 * @param {HTMLElement} list its children are the rows, or the buttons themselves
 */
export function useSingleTabStop(list) {
  /** @type {HTMLButtonElement | undefined} */
  let current;
  const update = () => {
    const buttons = buttonsIn(list);
    if (current === undefined || !buttons.includes(current)) current = buttons[0];
    for (const button of buttons) setAttribute(button, 'tabindex', button === current ? '0' : '-1');
  };
  new MutationObserver(update).observe(list, { childList: true });
  list.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) return;
    current = target;
    update();
  });
  list.addEventListener('keydown', (event) => {
    const { target, key, altKey, ctrlKey, metaKey } = event;
    if (!(target instanceof HTMLButtonElement) || altKey || ctrlKey || metaKey) return;
    const next = nextButton(list, target, key);
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  });
  update();
}

/**
 * @param {HTMLElement} list
 * @param {HTMLButtonElement} from
 * @param {string} key
 */
function nextButton(list, from, key) {
  const rows = Array.from(list.children, (row) => visibleButtonsIn(row)).filter((row) => row.length > 0);
  const at = rows.findIndex((row) => row.includes(from));
  const row = rows[at] ?? [];
  const column = row.indexOf(from);
  const isHorizontal = key === 'ArrowLeft' || key === 'ArrowRight';
  if (isHorizontal && row.length > 1) return row[column + (key === 'ArrowRight' ? 1 : -1)];
  switch (key) {
    case 'ArrowDown':
    case 'ArrowRight':
      return inColumn(rows[at + 1], column);
    case 'ArrowUp':
    case 'ArrowLeft':
      return inColumn(rows[at - 1], column);
    case 'Home':
      return inColumn(rows[0], column);
    case 'End':
      return inColumn(rows.at(-1), column);
    default:
      return undefined;
  }
}

/**
 * @param {readonly HTMLButtonElement[] | undefined} row
 * @param {number} column
 */
function inColumn(row, column) {
  return row?.[Math.min(column, row.length - 1)];
}

/** @param {Element} row */
function visibleButtonsIn(row) {
  const buttons = row instanceof HTMLButtonElement ? [row] : buttonsIn(row);
  return buttons.filter((button) => !button.disabled && button.checkVisibility());
}

/** @param {Element} element */
function buttonsIn(element) {
  return Array.from(element.querySelectorAll('button'));
}
