import { createHash } from 'node:crypto';
import type { PracticeResponse } from './practice-response.ts';
import { jsonResponse, textResponse } from './practice-response.ts';
import { chargeRoute } from './charge-route.ts';
import type { Charge, ChargeLedger } from './charge-ledger.ts';
import type { PracticeRoute } from './practice-route.ts';
import { hasBody, onBodyEnd } from './practice-route.ts';

/** The route of a path. An unknown path answers 200. */
export function findRoute(method: string | undefined, path: string, ledger: ChargeLedger): PracticeRoute {
  const object = chargedObject(method, path);
  if (object !== undefined) return chargeRoute(ledger, object);
  if (path === '/echo') return echo;
  return path === '/' && method === 'GET' ? welcome : plain;
}

/** The object that a request creates if it charges; undefined for any other request. */
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

const OK = jsonResponse(200, { ok: true });

const WELCOME = textResponse(
  200,
  `This is a practice upstream: an API with a limit that it may or may not announce.

  ANY  /anything                 {"ok":true}, when the limit lets it pass
  ANY  /echo                     what arrived: method, target, raw headers, the body's length and SHA-256
  POST /charges                  a simulated charge; also /v1/charges and /v1/payment_intents
                                 Idempotency-Key, or idempotency_key in a JSON body: the same key charges once
                                 X-Intent: counted as a double charge when one intent is charged twice
  GET  /practice/stats           requests received, accepted and rejected, by client (X-Api-Key)
  GET  /practice/ledger          the charges, and double charges
  GET  /practice/script          how X-Practice-Script makes a request fail
  POST /practice/configure       {"limit":{"kind":"token-bucket","rate":50,"burst":10},"hints":"retry-after"}
  POST /practice/reset           resets counts, charges and time
`,
);

const plain = always(OK);
const welcome = always(WELCOME);

function always(answer: PracticeResponse): PracticeRoute {
  const work = () => answer;
  return (request, ready) => {
    if (!hasBody(request)) return ready(work);
    onBodyEnd(request, (whole) => ready(whole ? work : undefined));
    request.resume();
  };
}

const echo: PracticeRoute = (request, ready) => {
  const hash = createHash('sha256');
  let length = 0;
  request.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    length += chunk.length;
  });
  onBodyEnd(request, (whole) => {
    if (!whole) return ready(undefined);
    const { method, url, httpVersion, rawHeaders, rawTrailers } = request;
    const body = { length, sha256: hash.digest('hex') };
    ready(() =>
      jsonResponse(200, { method, path: url, httpVersion, headers: rawHeaders, trailers: rawTrailers, body }),
    );
  });
};
