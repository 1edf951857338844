/** A definition list that is updated in place. */
import { setText } from './dom.js';

/**
 * @param {HTMLElement} list a `dl`
 * @param {readonly (readonly [name: string, value: string])[]} facts
 */
export function fillDefinitionList(list, facts) {
  while (list.childElementCount > facts.length) list.lastElementChild?.remove();
  while (list.childElementCount < facts.length) {
    const pair = document.createElement('div');
    pair.append(document.createElement('dt'), document.createElement('dd'));
    list.append(pair);
  }
  for (const [index, [name, value]] of facts.entries()) {
    const [term, description] = list.children[index]?.children ?? [];
    if (term !== undefined) setText(term, name);
    if (description !== undefined) setText(description, value);
  }
}
