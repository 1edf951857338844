/**
 * A provider that treats idempotency keys as Stripe documents: it compares the keys of one account; an equal key with other parameters is an
 * error; an equal key with equal parameters gets the stored response, marked as replayed.
 */
import type { ServerResponse } from 'node:http';
import { startRecordingUpstream, type RecordedRequest } from './recording-upstream.ts';

interface StoredCharge {
  readonly parameters: string;
  readonly response: string;
}

export interface KeyedProvider {
  readonly url: string;
  /** The bodies of the charges that were made, in order. */
  readonly charges: readonly string[];
  /** The keys of the requests so far, in order. */
  readonly keys: () => readonly (string | undefined)[];
  readonly received: readonly RecordedRequest[];
  /** From now on, charges are made and no response is sent, until it is called with false. */
  readonly beSilent: (isSilent: boolean) => void;
  /** From now on, charges are made and their responses wait, until it is called with false. */
  readonly hold: (isHeld: boolean) => void;
}

/** Listens until the test ends. */
export async function startKeyedProvider(): Promise<KeyedProvider> {
  const stored = new Map<string, StoredCharge>();
  const charges: string[] = [];
  let isSilent = false;
  let held: (() => void)[] | undefined;

  const charge = (body: string): string => {
    charges.push(body);
    return JSON.stringify({ id: `ch_${charges.length}` });
  };

  const respond = (request: RecordedRequest, response: ServerResponse): void => {
    const run = charged(request, response);
    if (held === undefined) run();
    else held.push(run);
  };

  /** Makes the charge. @returns what sends the response */
  const charged = ({ headers, target, body }: RecordedRequest, response: ServerResponse): (() => void) => {
    const key = headers['idempotency-key']?.toString();
    if (key === undefined) {
      const made = charge(body.toString());
      return () => void response.end(made);
    }
    const parameters = `${target} ${body.toString()}`;
    const id = `${headers.authorization} ${key}`;
    const known = stored.get(id);
    const made = known ?? { parameters, response: charge(body.toString()) };
    stored.set(id, made);
    if (isSilent) return () => undefined;
    return () => {
      response.setHeader('Content-Type', 'application/json').setHeader('Idempotency-Key', key);
      if (made.parameters !== parameters) {
        return void response.writeHead(400).end('{"error":{"type":"idempotency_error"}}');
      }
      if (known !== undefined) response.setHeader('Idempotent-Replayed', 'true');
      response.end(made.response);
    };
  };

  const { url, received } = await startRecordingUpstream(respond);
  return {
    url,
    received,
    charges,
    keys: () => received.map(({ headers }) => headers['idempotency-key']?.toString()),
    beSilent: (silent) => {
      isSilent = silent;
    },
    hold: (isHeld) => {
      for (const run of held ?? []) run();
      held = isHeld ? [] : undefined;
    },
  };
}
