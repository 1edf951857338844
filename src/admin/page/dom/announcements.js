/** Messages about what changed: a toast for the eye, a live region for screen readers. */
import { find, setAttribute, setShown, setText } from './dom.js';

/** @import { Severity } from '../text/labels.js' */

/** Long enough to read a message twice. */
const SHOWN_MS = 8000;

const toast = find(document, '#toast', HTMLElement);
const changes = find(document, '#changes', HTMLElement);
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * For screen readers only. Messages of one update are read out together.
 * @param {string} text
 */
export function announce(text) {
  const line = document.createElement('p');
  line.textContent = text;
  changes.append(line);
  setTimeout(() => line.remove(), SHOWN_MS);
}

/**
 * Shows the result of an action as a toast, and announces it.
 * @param {string} text
 * @param {Severity} severity
 */
export function showResult(text, severity) {
  announce(text);
  setText(toast, text);
  setAttribute(toast, 'data-severity', severity);
  setShown(toast, true);
  clearTimeout(timer);
  timer = setTimeout(() => setShown(toast, false), SHOWN_MS);
}
