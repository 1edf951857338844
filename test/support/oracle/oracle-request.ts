/** One request of a client that may be slow, abort or leave. */
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { begin } from '../clients/send.ts';
import type { Intent } from './intent.ts';
import type { ReportedOutcome } from './reported-outcome.ts';
import { outcomeOfAnswer } from './reported-outcome.ts';

export interface RequestManner {
  /** `soon`: after a random time. `uploading`: half way through the body. `answering`: after the response has begun. */
  readonly leaves: 'never' | 'soon' | 'uploading' | 'answering';
  readonly leavesAfter: Millis;
  /** Pause between the pieces of its body; 0: sent at once. */
  readonly pause: Millis;
  readonly isChunked: boolean;
}

export interface OracleRequest {
  readonly number: number;
  readonly intent: Intent;
  readonly token: string;
  readonly manner: RequestManner;
  /** How often its intent had been carried out before. */
  readonly timesBefore: number;
  /** An attempt left the outcome of its write unknown. */
  isOpen: boolean;
  /** The upstream declined an attempt. */
  wasDeclined: boolean;
  hasLeft: boolean;
  /** The client has received the beginning of a response to the write. */
  hasBegun: boolean;
  reported: ReportedOutcome;
  /** The intent that an upstream response belongs to. */
  answeredName: string | undefined;
  /** Called with each complete response. */
  readonly onAnswer?: (status: number, body: string) => void;
}

const PIECES = 4;

export function drawManner(random: Random, ttl: Millis | undefined): RequestManner {
  const draw = random();
  const leaves = draw < 0.1 ? 'soon' : draw < 0.17 ? 'uploading' : draw < 0.24 ? 'answering' : 'never';
  const slowness = random();
  // A few take so long that the key may expire before they end.
  const pause = slowness < 0.7 ? 0 : slowness < 0.97 || ttl === undefined ? 10 * random() : (ttl / PIECES) * random();
  return { leaves, leavesAfter: random() < 0.3 ? 0 : 60 * random(), pause, isChunked: random() < 0.3 };
}

/** Returns the trace id by which a request is found in the log if its client has not seen the response. */
export function traceIdOf(number: number): string {
  return number.toString(16).padStart(32, '0');
}

/** Resolves when the client has its response or has left. */
export async function sendOracleRequest(url: string, ask: OracleRequest): Promise<void> {
  const { intent, manner, number, token } = ask;
  const headers = [
    ...intent.keyed,
    ...intent.account,
    ...['Authorization', token, 'X-Ask', String(number)],
    ...['Traceparent', `00-${traceIdOf(number)}-00000000000000ff-01`],
    ...(manner.isChunked ? [] : ['Content-Length', String(intent.body.length)]),
  ];
  const { method } = intent;
  let incoming: IncomingMessage | undefined;
  const answered = Promise.withResolvers<undefined>();
  const leave = (): void => {
    if (ask.reported !== 'nothing') return;
    ask.hasLeft = true;
    outgoing.destroy();
  };
  const outgoing = begin(url, intent.path, { method, headers, chunked: manner.isChunked }, (answer) => {
    incoming = answer;
    read(answer, ask, leave, () => answered.resolve(undefined));
  });
  outgoing.on('close', () => {
    if (incoming === undefined) answered.resolve(undefined);
  });
  if (manner.leaves === 'soon') setTimeout(leave, manner.leavesAfter);
  await Promise.all([answered.promise, upload(outgoing, () => incoming?.complete === true, ask, leave)]);
}

async function upload(
  outgoing: ReturnType<typeof begin>,
  isAnswered: () => boolean,
  { intent, manner }: OracleRequest,
  leave: () => void,
): Promise<void> {
  const { body } = intent;
  if (manner.pause === 0 && manner.leaves !== 'uploading') return void outgoing.end(body);
  const size = Math.ceil(body.length / PIECES);
  for (let i = 0; i < PIECES; i += 1) {
    if (outgoing.destroyed || isAnswered()) return void outgoing.destroy();
    if (manner.leaves === 'uploading' && i === PIECES / 2) return leave();
    outgoing.write(body.subarray(i * size, (i + 1) * size));
    if (i + 1 < PIECES) await sleep(manner.pause);
  }
  outgoing.end();
}

function read(incoming: IncomingMessage, ask: OracleRequest, leave: () => void, onOver: () => void): void {
  const chunks: Buffer[] = [];
  ask.hasBegun = incoming.headers['x-of-write'] !== undefined;
  incoming.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    // The upstream withholds the rest of its response.
    if (ask.manner.leaves === 'answering' && ask.hasBegun) leave();
  });
  incoming.on('error', () => undefined);
  incoming.on('end', () => {
    onOver();
    if (ask.hasLeft || !incoming.complete) return;
    const text = Buffer.concat(chunks).toString();
    const { statusCode: status = 0, headers } = incoming;
    ask.reported = outcomeOfAnswer(status, (name) => headers[name]?.toString(), text);
    ask.onAnswer?.(status, text);
    if (ask.reported === 'done' || ask.reported === 'declined') ask.answeredName = text;
  });
  incoming.on('close', onOver);
}
