/** One request of a client that may be slow, break off, or leave. */
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../../src/core/exchange/attempt-outcome.ts';
import { begin } from '../send.ts';
import type { Intent } from './intent.ts';
import type { Told } from './judge.ts';
import { toldByAnswer } from './judge.ts';

export interface Manner {
  /** `soon`: after a time, wherever its request is then. `uploading`: half way. `answering`: when the answer has begun. */
  readonly leaves: 'never' | 'soon' | 'uploading' | 'answering';
  readonly leavesAfter: Millis;
  /** Pauses between the pieces of its body; 0: all at once. */
  readonly pause: Millis;
  readonly isChunked: boolean;
}

export interface Ask {
  readonly number: number;
  readonly intent: Intent;
  readonly token: string;
  readonly manner: Manner;
  /** How often its intent had been carried out when it began. */
  readonly timesBefore: number;
  /** Some attempt of it has left its write open. */
  isOpen: boolean;
  hasLeft: boolean;
  /** An answer to its write has begun, as far as its client knows. */
  hasBegun: boolean;
  told: Told;
  /** Of an answer of the upstream's: whose it is. */
  says: string | undefined;
}

const PIECES = 4;

export function drawManner(random: Random, ttl: Millis | undefined): Manner {
  const draw = random();
  const leaves = draw < 0.1 ? 'soon' : draw < 0.17 ? 'uploading' : draw < 0.24 ? 'answering' : 'never';
  const slowness = random();
  // A few take so long that the key may be forgotten before they end.
  const pause = slowness < 0.7 ? 0 : slowness < 0.97 || ttl === undefined ? 10 * random() : (ttl / PIECES) * random();
  return { leaves, leavesAfter: random() < 0.3 ? 0 : 60 * random(), pause, isChunked: random() < 0.3 };
}

/** What an answer has to be traced by in the log, where its client has not seen it. */
export function traceIdOf(number: number): string {
  return number.toString(16).padStart(32, '0');
}

/** Resolves when its client has its answer, or has none and waits no longer. */
export async function askFor(url: string, ask: Ask): Promise<void> {
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
    if (ask.told !== 'nothing') return;
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
  { intent, manner }: Ask,
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

function read(incoming: IncomingMessage, ask: Ask, leave: () => void, onOver: () => void): void {
  const chunks: Buffer[] = [];
  ask.hasBegun = incoming.headers['x-of-write'] !== undefined;
  incoming.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    // The upstream holds back the rest of what it answers to the write.
    if (ask.manner.leaves === 'answering' && ask.hasBegun) leave();
  });
  incoming.on('error', () => undefined);
  incoming.on('end', () => {
    onOver();
    if (ask.hasLeft || !incoming.complete) return;
    const text = Buffer.concat(chunks).toString();
    const { statusCode: status = 0, headers } = incoming;
    ask.told = toldByAnswer(status, (name) => headers[name]?.toString(), text);
    if (ask.told === 'done' || ask.told === 'declined') ask.says = text;
  });
  incoming.on('close', onOver);
}
