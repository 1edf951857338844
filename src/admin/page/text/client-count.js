/** Wording of the number of clients and of their rows. */
import { formatCount } from './labels.js';

/**
 * A client has a row for each upstream that it uses: `3 clients, 8 of 9 rows`.
 * @param {{readonly clients: number | null, readonly rows: number, readonly shown: number}} counts `clients`: null if there are too many to tell
 */
export function formatClientCount({ clients, rows, shown }) {
  const of = shown < rows ? `${formatCount(shown)} of ` : '';
  const text = `${of}${formatNoun(rows, 'row')}`;
  return clients === null ? text : `${formatNoun(clients, 'client')}, ${text}`;
}

/**
 * @param {number} count
 * @param {string} noun
 */
function formatNoun(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
