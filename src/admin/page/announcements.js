/** Says what changed, to those who look and to those who listen. */
import { find, setAttribute, setShown, setText } from './dom.js';

/** @import { Mood } from './labels.js' */

/** Long enough to be read twice. */
const SHOWN = 8000;

const toast = find(document, '#toast', HTMLElement);
const changes = find(document, '#changes', HTMLElement);
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * For screen readers alone: the page shows it anyway. What is said in one go is heard together.
 * @param {string} text
 */
export function speak(text) {
  const line = document.createElement('p');
  line.textContent = text;
  changes.append(line);
  setTimeout(() => line.remove(), SHOWN);
}

/**
 * What came of an action.
 * @param {string} text
 * @param {Mood} mood
 */
export function tellResult(text, mood) {
  speak(text);
  setText(toast, text);
  setAttribute(toast, 'data-mood', mood);
  setShown(toast, true);
  clearTimeout(timer);
  timer = setTimeout(() => setShown(toast, false), SHOWN);
}
