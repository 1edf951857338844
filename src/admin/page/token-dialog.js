/** Asks for the admin token and keeps it for this tab (sessionStorage). The token is never part of a URL. */
import { find, setShown, setText } from './dom/dom.js';

const STORAGE_KEY = 'tidegate-token';

export class TokenDialog {
  #check;
  #onChange;
  #dialog = find(document, '#token-dialog', HTMLDialogElement);
  #form = find(this.#dialog, 'form', HTMLFormElement);
  #input = find(this.#dialog, '[data-input]', HTMLInputElement);
  #problem = find(this.#dialog, '[data-problem]', HTMLElement);
  #forget = find(this.#dialog, '[data-forget]', HTMLButtonElement);
  #submit = find(this.#dialog, '[type=submit]', HTMLButtonElement);
  /** @type {string | undefined} */
  #token = sessionStorage.getItem(STORAGE_KEY) ?? undefined;
  /** @type {Promise<boolean> | undefined} */
  #asking;

  /**
   * @param {(token: string) => Promise<string | undefined>} check resolves with the problem of a token; undefined: valid
   * @param {() => void} onChange called when the token is replaced or forgotten
   */
  constructor(check, onChange) {
    this.#check = check;
    this.#onChange = onChange;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submitToken(this.#input.value.trim());
    });
    find(this.#dialog, '[data-cancel]', HTMLButtonElement).addEventListener('click', () => this.#dialog.close());
    this.#forget.addEventListener('click', () => {
      this.#store(undefined);
      this.#dialog.close();
    });
  }

  get token() {
    return this.#token;
  }

  /**
   * @param {string} why
   * @returns {Promise<boolean>} whether the user entered a token that was accepted
   */
  ask(why) {
    this.#asking ??= this.#open(why).finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** @param {string} why */
  #open(why) {
    setText(
      find(this.#dialog, '#token-text', HTMLElement),
      `${why} The token is stored in this tab only, until the tab is closed.`,
    );
    setShown(this.#forget, this.#token !== undefined);
    setShown(this.#problem, false);
    this.#input.value = '';
    this.#dialog.returnValue = '';
    this.#dialog.showModal();
    this.#input.focus();
    return new Promise((resolve) => {
      this.#dialog.addEventListener('close', () => resolve(this.#dialog.returnValue === 'kept'), { once: true });
    });
  }

  /** @param {string} token */
  async #submitToken(token) {
    if (token === '') return this.#showProblem('Enter the token: admin.token in the Tidegate config.');
    this.#submit.disabled = true;
    const failure = await this.#check(token);
    this.#submit.disabled = false;
    if (!this.#dialog.open) return;
    if (failure !== undefined) return this.#showProblem(failure);
    this.#store(token);
    this.#dialog.close('kept');
  }

  /** @param {string} problem */
  #showProblem(problem) {
    setText(this.#problem, problem);
    setShown(this.#problem, true);
    this.#input.focus();
  }

  /** @param {string | undefined} token */
  #store(token) {
    this.#token = token;
    if (token === undefined) sessionStorage.removeItem(STORAGE_KEY);
    else sessionStorage.setItem(STORAGE_KEY, token);
    this.#onChange();
  }
}
