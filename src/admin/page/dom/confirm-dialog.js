/** The confirmation dialog before an action. */
import { find, setShown, setText } from './dom.js';

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} text the effects of the action
 * @property {string} confirm label of the confirming button
 * @property {boolean} [danger]
 * @property {Field} [field]
 * @property {(value: string) => Promise<string | undefined>} act performs the action; resolves with the error, if any
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
let current;

cancel.addEventListener('click', () => dialog.close());
dialog.addEventListener('close', () => (current = undefined));
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void submit();
});

/** @param {Question} question */
export function confirmAction(question) {
  current = question;
  setText(title, question.title);
  setText(text, question.text);
  setText(confirm, question.confirm);
  confirm.classList.toggle('danger', question.danger === true);
  confirm.disabled = false;
  setShown(problem, false);
  showField(question.field);
  dialog.showModal();
  // Enter alone must not trigger an action that cannot be undone.
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
  // Without this the label belongs to the first control, even if it is hidden.
  field.htmlFor = wanted?.kind === 'choice' ? select.id : input.id;
  if (wanted?.kind === 'text') input.value = wanted.value;
  if (wanted?.kind !== 'choice') return;
  select.replaceChildren(...wanted.options.map(([value, shown]) => new Option(shown, value)));
}

async function submit() {
  const question = current;
  if (question === undefined) return;
  const value = question.field?.kind === 'choice' ? select.value : input.value.trim();
  const invalid = question.field?.kind === 'text' ? question.field.check(value) : undefined;
  if (invalid !== undefined) {
    input.focus();
    return showProblem(invalid);
  }
  confirm.disabled = true;
  const failure = await question.act(value);
  confirm.disabled = false;
  if (current !== question) return;
  if (failure === undefined) dialog.close();
  else showProblem(failure);
}

/** @param {string} message */
function showProblem(message) {
  setText(problem, message);
  setShown(problem, true);
}
