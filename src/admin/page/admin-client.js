/** Asks the admin API, with the token if there is one. */
import { problemOf } from './sse-client.js';

/** @import { TokenKeeper } from './token-dialog.js' */

/** @typedef {{readonly ok: false, readonly status: number, readonly why: string}} Refusal status 0: no answer came */
/**
 * @template T
 * @typedef {{readonly ok: true, readonly data: T} | Refusal} Answer
 */

export class Admin {
  #tokens;

  /** @param {TokenKeeper} tokens */
  constructor(tokens) {
    this.#tokens = tokens;
  }

  /**
   * @template T what it is known to answer with
   * @param {string} path
   * @returns {Promise<Answer<T>>}
   */
  read(path) {
    return send('GET', path, this.#tokens.token);
  }

  /**
   * Asks for the token where one is missing, until it is right or nobody wants to any more.
   * @param {string} path
   * @returns {Promise<Answer<unknown>>}
   */
  async act(path) {
    for (;;) {
      const answer = await send('POST', path, this.#tokens.token);
      if (answer.ok || answer.status !== 401) return answer;
      const had = this.#tokens.token !== undefined;
      const why = had ? 'The token that is kept here is not accepted (any more).' : 'This needs the admin token.';
      if (!(await this.#tokens.ask(why))) return { ...answer, why: 'Nothing was done: it needs the admin token.' };
    }
  }
}

/**
 * What is wrong with a token; undefined when it is right. Asked by an action that changes nothing.
 * @param {string} token
 */
export async function checkToken(token) {
  const answer = await send('POST', '/api/config/validate', token, '{}');
  if (!answer.ok && answer.status === 401) return 'That is not the token: it was not accepted.';
  // Whatever else is wrong with the question, it was let in.
  return answer.ok || (answer.status >= 400 && answer.status !== 403) ? undefined : answer.why;
}

/**
 * @template T
 * @param {'GET' | 'POST'} method
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
    if (!response.ok) return { ok: false, status: response.status, why: sentence(await problemOf(response)) };
    return { ok: true, data: /** @type {T} */ (await response.json()) };
  } catch {
    return { ok: false, status: 0, why: 'No answer came: the connection to Tidegate is lost.' };
  }
}

/** @param {string} text */
function sentence(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
