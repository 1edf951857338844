/** Client of the admin API. Sends the token if there is one. */
import { problemDetail } from './sse-client.js';

/** @import { TokenDialog } from './token-dialog.js' */

/** @typedef {{readonly ok: false, readonly status: number, readonly why: string}} Refusal status 0: no response */
/**
 * @template T
 * @typedef {{readonly ok: true, readonly data: T} | Refusal} Answer
 */

export class AdminClient {
  #tokens;

  /** @param {TokenDialog} tokens */
  constructor(tokens) {
    this.#tokens = tokens;
  }

  /**
   * @template T type of the response
   * @param {string} path
   * @returns {Promise<Answer<T>>}
   */
  get(path) {
    return send('GET', path, this.#tokens.token);
  }

  /**
   * Asks the user for the token on 401, until a token is accepted or the user cancels.
   * @param {'POST' | 'DELETE'} method
   * @param {string} path
   * @returns {Promise<Answer<unknown>>}
   */
  act(method, path) {
    return this.#sendWithToken(method, path, {
      why: 'This action requires the admin token.',
      canceled: 'Nothing was changed: this action requires the admin token.',
    });
  }

  /**
   * Reads what requires the token even on a loopback address. Asks for it as `act` does.
   * @template T type of the response
   * @param {string} path
   * @returns {Promise<Answer<T>>}
   */
  getWithToken(path) {
    return this.#sendWithToken('GET', path, {
      why: 'This requires the admin token.',
      canceled: 'Nothing is shown: this requires the admin token.',
    });
  }

  /**
   * @template T
   * @param {'GET' | 'POST' | 'DELETE'} method
   * @param {string} path
   * @param {{readonly why: string, readonly canceled: string}} texts why it asks, and the problem if no token is entered
   * @returns {Promise<Answer<T>>}
   */
  async #sendWithToken(method, path, { why, canceled }) {
    for (;;) {
      /** @type {Answer<T>} */
      const answer = await send(method, path, this.#tokens.token);
      if (answer.ok || answer.status !== 401) return answer;
      const hadToken = this.#tokens.token !== undefined;
      if (!(await this.#tokens.ask(hadToken ? 'The stored token was not accepted.' : why))) {
        return { ...answer, why: canceled };
      }
    }
  }
}

/**
 * Checks a token with an action that changes nothing. Resolves with the problem; undefined: valid.
 * @param {string} token
 */
export async function checkToken(token) {
  const answer = await send('POST', '/api/config/validate', token, '{}');
  if (!answer.ok && answer.status === 401) return 'The token was not accepted.';
  // Any other 4xx, such as 422 for the empty config, comes after the check of the token.
  return answer.ok || (answer.status >= 400 && answer.status !== 403) ? undefined : answer.why;
}

/**
 * @template T
 * @param {'GET' | 'POST' | 'DELETE'} method
 * @param {string} path
 * @param {string | undefined} token
 * @param {string} [body]
 * @returns {Promise<Answer<T>>}
 */
async function send(method, path, token, body) {
  try {
    const response = await fetch(path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/yaml' }),
      },
      cache: 'no-store',
      ...(body === undefined ? {} : { body }),
    });
    if (!response.ok) return { ok: false, status: response.status, why: endWithPeriod(await problemDetail(response)) };
    return { ok: true, data: /** @type {T} */ (await response.json()) };
  } catch {
    return { ok: false, status: 0, why: 'No response: the connection to Tidegate is lost.' };
  }
}

/** @param {string} text */
function endWithPeriod(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
