/** The dialog before an action: says what will happen, and does nothing unless that is wanted. */
import { find, setShown, setText } from './dom.js';

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} text what will happen
 * @property {string} confirm what the button says that does it
 * @property {boolean} [danger]
 * @property {Field} [field]
 * @property {(value: string) => Promise<string | undefined>} act does it; answers with what went wrong
 *
 * @typedef {(
 *   | {readonly kind: 'text', readonly label: string, readonly value: string, readonly check: (value: string) => string | undefined}
 *   | {readonly kind: 'choice', readonly label: string, readonly options: readonly (readonly [value: string, text: string])[]}
 * )} Field
 */

const dialog = find(document, '#ask', HTMLDialogElement);
const form = find(dialog, 'form', HTMLFormElement);
const title = find(dialog, 'h2', HTMLElement);
const text = find(dialog, '#ask-text', HTMLElement);
const field = find(dialog, '[data-field]', HTMLLabelElement);
const label = find(dialog, '[data-label]', HTMLElement);
const input = find(dialog, '[data-input]', HTMLInputElement);
const select = find(dialog, '[data-select]', HTMLSelectElement);
const problem = find(dialog, '[data-problem]', HTMLElement);
const confirm = find(dialog, '[data-confirm]', HTMLButtonElement);
const cancel = find(dialog, '[data-cancel]', HTMLButtonElement);

/** @type {Question | undefined} */
let asked;

cancel.addEventListener('click', () => dialog.close());
dialog.addEventListener('close', () => (asked = undefined));
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void answer();
});

/** @param {Question} question */
export function ask(question) {
  asked = question;
  setText(title, question.title);
  setText(text, question.text);
  setText(confirm, question.confirm);
  confirm.classList.toggle('danger', question.danger === true);
  confirm.disabled = false;
  setShown(problem, false);
  showField(question.field);
  dialog.showModal();
  // What cannot be taken back is not what Enter does by itself.
  if (question.field?.kind === 'text') input.select();
  else if (question.field?.kind === 'choice') select.focus();
  else if (question.danger === true) cancel.focus();
  else confirm.focus();
}

/** @param {Field | undefined} wanted */
function showField(wanted) {
  setShown(field, wanted !== undefined);
  setShown(input, wanted?.kind === 'text');
  setShown(select, wanted?.kind === 'choice');
  setText(label, wanted?.label ?? '');
  // Otherwise it would be that of the first of them, shown or not.
  field.htmlFor = wanted?.kind === 'choice' ? select.id : input.id;
  if (wanted?.kind === 'text') input.value = wanted.value;
  if (wanted?.kind !== 'choice') return;
  select.replaceChildren(...wanted.options.map(([value, shown]) => new Option(shown, value)));
}

async function answer() {
  const question = asked;
  if (question === undefined) return;
  const value = question.field?.kind === 'choice' ? select.value : input.value.trim();
  const mistake = question.field?.kind === 'text' ? question.field.check(value) : undefined;
  if (mistake !== undefined) {
    input.focus();
    return tell(mistake);
  }
  confirm.disabled = true;
  const wrong = await question.act(value);
  confirm.disabled = false;
  if (asked !== question) return;
  if (wrong === undefined) dialog.close();
  else tell(wrong);
}

/** @param {string} wrong */
function tell(wrong) {
  setText(problem, wrong);
  setShown(problem, true);
}
