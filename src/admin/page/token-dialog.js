/** Keeps the admin token for as long as this tab is open, and asks for it. It is never part of an address. */
import { find, setShown, setText } from './dom.js';

const KEY = 'tidegate-token';

export class TokenKeeper {
  #check;
  #onChange;
  #dialog = find(document, '#token-dialog', HTMLDialogElement);
  #form = find(this.#dialog, 'form', HTMLFormElement);
  #input = find(this.#dialog, '[data-input]', HTMLInputElement);
  #problem = find(this.#dialog, '[data-problem]', HTMLElement);
  #forget = find(this.#dialog, '[data-forget]', HTMLButtonElement);
  #submit = find(this.#dialog, '[type=submit]', HTMLButtonElement);
  /** @type {string | undefined} */
  #token = sessionStorage.getItem(KEY) ?? undefined;
  /** @type {Promise<boolean> | undefined} */
  #asking;

  /**
   * @param {(token: string) => Promise<string | undefined>} check what is wrong with a token
   * @param {() => void} onChange there is another, or none any more
   */
  constructor(check, onChange) {
    this.#check = check;
    this.#onChange = onChange;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#take(this.#input.value.trim());
    });
    find(this.#dialog, '[data-cancel]', HTMLButtonElement).addEventListener('click', () => this.#dialog.close());
    this.#forget.addEventListener('click', () => {
      this.#keep(undefined);
      this.#dialog.close();
    });
  }

  get token() {
    return this.#token;
  }

  /**
   * @param {string} why
   * @returns {Promise<boolean>} whether there is a token now that was accepted
   */
  ask(why) {
    this.#asking ??= this.#open(why).finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** @param {string} why */
  #open(why) {
    setText(
      find(this.#dialog, '#token-text', HTMLElement),
      `${why} It is kept in this tab only, until the tab is closed.`,
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
  async #take(token) {
    if (token === '') return this.#tell('Type the token: admin.token in the config of Tidegate.');
    this.#submit.disabled = true;
    const wrong = await this.#check(token);
    this.#submit.disabled = false;
    if (!this.#dialog.open) return;
    if (wrong !== undefined) return this.#tell(wrong);
    this.#keep(token);
    this.#dialog.close('kept');
  }

  /** @param {string} problem */
  #tell(problem) {
    setText(this.#problem, problem);
    setShown(this.#problem, true);
    this.#input.focus();
  }

  /** @param {string | undefined} token */
  #keep(token) {
    this.#token = token;
    if (token === undefined) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
    this.#onChange();
  }
}
