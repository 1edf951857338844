import { createHash } from 'node:crypto';
import type { Answer } from './practice-response.ts';
import { jsonAnswer, textAnswer } from './practice-response.ts';
import { chargeRoute } from './charge-route.ts';
import type { Charge, Ledger } from './charge-ledger.ts';
import type { Route } from './practice-route.ts';
import { hasBody, whenRead } from './practice-route.ts';

/** What serves a path. Those it does not know say that they are there. */
export function findRoute(method: string | undefined, path: string, ledger: Ledger): Route {
  const object = chargedObject(method, path);
  if (object !== undefined) return chargeRoute(ledger, object);
  if (path === '/echo') return echo;
  return path === '/' && method === 'GET' ? welcome : plain;
}

/** What a request makes, if it charges; undefined for every other. */
export function chargedObject(method: string | undefined, path: string): Charge['object'] | undefined {
  if (method !== 'POST') return undefined;
  switch (path) {
    case '/charges':
    case '/v1/charges':
      return 'charge';
    case '/v1/payment_intents':
      return 'payment_intent';
    default:
      return undefined;
  }
}

const OK = jsonAnswer(200, { ok: true });

const WELCOME = textAnswer(
  200,
  `This is a practice upstream: an API with a limit that it may or may not tell.

  ANY  /anything                 {"ok":true}, when the limit lets it pass
  ANY  /echo                     what arrived: method, target, raw headers, the body's length and SHA-256
  POST /charges                  a pretended charge; also /v1/charges and /v1/payment_intents
                                 Idempotency-Key, or idempotency_key in a JSON body: the same key charges once
                                 X-Intent: counted as a double charge when one intent is charged twice
  GET  /practice/stats           what came, what passed, what was refused, by client (X-Api-Key)
  GET  /practice/ledger          the charges, and those made twice
  GET  /practice/script          how X-Practice-Script makes a request fail
  POST /practice/configure       {"limit":{"kind":"token-bucket","rate":50,"burst":10},"hints":"retry-after"}
  POST /practice/reset           counts, charges and time from zero
`,
);

const plain = always(OK);
const welcome = always(WELCOME);

function always(answer: Answer): Route {
  const work = () => answer;
  return (request, ready) => {
    if (!hasBody(request)) return ready(work);
    whenRead(request, (whole) => ready(whole ? work : undefined));
    request.resume();
  };
}

const echo: Route = (request, ready) => {
  const hash = createHash('sha256');
  let length = 0;
  request.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    length += chunk.length;
  });
  whenRead(request, (whole) => {
    if (!whole) return ready(undefined);
    const { method, url, httpVersion, rawHeaders, rawTrailers } = request;
    const body = { length, sha256: hash.digest('hex') };
    ready(() => jsonAnswer(200, { method, path: url, httpVersion, headers: rawHeaders, trailers: rawTrailers, body }));
  });
};
