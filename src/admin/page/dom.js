/** Finds what the markup promises, and changes it only where it differs: what is set anew is laid out anew. */

/**
 * @template {Element} E
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => E} kind
 * @returns {E}
 * @throws {Error} where the markup does not have it
 */
export function find(root, selector, kind) {
  const found = root.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`the page has no ${selector}`);
  return found;
}

/**
 * A copy of what a template holds.
 * @param {string} id
 */
export function copyTemplate(id) {
  const template = find(document, `#${id}`, HTMLTemplateElement);
  const copy = document.importNode(template.content, true).firstElementChild;
  if (!(copy instanceof HTMLElement)) throw new Error(`the template ${id} is empty`);
  return copy;
}

/**
 * Never as markup: much of what is shown was named by strangers.
 * @param {Element} element that holds nothing but text
 * @param {string} text
 */
export function setText(element, text) {
  const node = element.firstChild;
  if (node instanceof Text) {
    if (node.data !== text) node.data = text;
  } else if (text !== '') {
    element.textContent = text;
  }
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string | undefined} value undefined: it has none
 */
export function setAttribute(element, name, value) {
  if (value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * @param {HTMLElement} element
 * @param {boolean} shown
 */
export function setShown(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/**
 * Shows a time of the server's, by the clock on the wall here.
 * @param {Element} element a `time`
 * @param {string} time
 * @param {string} text
 */
export function setTime(element, time, text) {
  setText(element, text);
  setAttribute(element, 'datetime', time);
  setAttribute(element, 'title', time);
}
