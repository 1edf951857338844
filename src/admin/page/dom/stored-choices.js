/** Choices of the user that outlast the page. */

/** @param {string} key */
export function readChoice(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage is not available
  }
}

/**
 * Without storage, the choice lasts until the page is closed.
 * @param {string} key
 * @param {string} value
 */
export function storeChoice(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage is not available.
  }
}
