/** DOM helpers. Setters write only on change, because each write costs the browser a layout. */

/**
 * @template {Element} E
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => E} kind
 * @returns {E}
 * @throws {Error} if the markup has no such element
 */
export function find(root, selector, kind) {
  const found = root.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`the page has no ${selector}`);
  return found;
}

/**
 * A copy of a template's first element.
 * @param {string} id
 */
export function copyTemplate(id) {
  const template = find(document, `#${id}`, HTMLTemplateElement);
  const copy = document.importNode(template.content, true).firstElementChild;
  if (!(copy instanceof HTMLElement)) throw new Error(`the template ${id} is empty`);
  return copy;
}

/**
 * Sets text, never markup: clients choose much of what the page shows.
 * @param {Element} element holds nothing but text
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
 * @param {string | undefined} value undefined removes the attribute
 */
export function setAttribute(element, name, value) {
  if (value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * Disables a button for a reason, which the tooltip shows.
 * @param {HTMLButtonElement} button
 * @param {string | null} reason null enables it
 */
export function setDisabled(button, reason) {
  if (button.disabled !== (reason !== null)) button.disabled = reason !== null;
  setAttribute(button, 'title', reason ?? undefined);
}

/**
 * @param {HTMLElement} element
 * @param {boolean} shown
 */
export function setShown(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/**
 * Shows a server time in the browser's time zone.
 * @param {Element} element a `time`
 * @param {string} time ISO 8601
 * @param {string} text
 */
export function setTime(element, time, text) {
  setText(element, text);
  setAttribute(element, 'datetime', time);
  setAttribute(element, 'title', time);
}
