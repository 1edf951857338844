/** Writes cases as bytes, and exchanges them between a client and an upstream over raw sockets. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { atEnd } from '../at-end.ts';
import type { Field, HttpMessage, HttpResponse } from '../clients/http-message.ts';
import { readRequest, readResponse, valuesOf } from '../clients/http-message.ts';
import type { CaseAnswer, MessageCase, FramedContent } from './cases.ts';

/** Header with the number of the case, which selects the upstream's response. */
const CASE = 'x-case';

/** Maximum duration of an exchange on a busy machine, in ms. */
const TIMEOUT = 10_000;

export function requestBytes({ method, target, version, fields, content }: MessageCase, number: number): string {
  const head: Field[] = [['Host', 'shop.example'], ...fields, ['X-Case', String(number)]];
  return `${method} ${target} HTTP/${version}\r\n${written(framedHead(head, content))}${framedBody(content)}`;
}

export function answerBytes({ interim, status, reason, fields, content }: CaseAnswer, method: string): string {
  const before = interim.map((each) => `${each.startLine}\r\n${written(each.fields)}`).join('');
  const startLine = `HTTP/1.1 ${status} ${reason}\r\n`;
  if (status === 204) return `${before}${startLine}${written(fields)}`;
  const head = `${before}${startLine}${written(framedHead(fields, content))}`;
  return method === 'HEAD' || status === 304 ? head : head + framedBody(content);
}

/** Inserts the framing field in the middle, so that changes of its position show. */
function framedHead(fields: readonly Field[], { framing, body }: FramedContent): Field[] {
  const framedBy: Field[] = [];
  if (framing === 'length') framedBy.push(['Content-Length', String(body.length)]);
  if (framing === 'chunked') framedBy.push(['Transfer-Encoding', 'chunked']);
  const middle = fields.length >> 1;
  return [...fields.slice(0, middle), ...framedBy, ...fields.slice(middle)];
}

function framedBody({ framing, body, chunks, extension, trailers }: FramedContent): string {
  if (framing === 'none') return '';
  if (framing !== 'chunked') return body;
  let text = '';
  for (let at = 0, i = 0; at < body.length; i += 1) {
    const chunk = body.slice(at, at + (chunks[i % chunks.length] ?? 1));
    const size = chunk.length.toString(16);
    text += `${i % 2 === 0 ? size : size.toUpperCase()}${extension}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  return `${text}0${extension}\r\n${written(trailers)}`;
}

/** Adds varied white space around values; llhttp 9.4 accepts no tab after a framing field's value. */
function written(fields: readonly Field[]): string {
  const lines = fields.map(([name, value], i) => {
    const [before, after] = FRAMING.test(name) ? [' ', ''] : [[' ', '', '\t', '   '][i % 4], ['', ' ', '\t'][i % 3]];
    return `${name}:${before}${value}${after}\r\n`;
  });
  return `${lines.join('')}\r\n`;
}

const FRAMING = /^(?:content-length|transfer-encoding|connection)$/i;

/** Writes the text in up to three packets. */
async function writeInPieces(socket: Socket, text: string, number: number): Promise<void> {
  const bytes = Buffer.from(text, 'latin1');
  const cuts = [0, (number * 7919) % bytes.length, (number * 104_729) % bytes.length, bytes.length];
  cuts.sort((a, b) => a - b);
  for (let i = 0; i + 1 < cuts.length; i += 1) {
    if (cuts[i] === cuts[i + 1]) continue;
    socket.write(bytes.subarray(cuts[i], cuts[i + 1]));
    await setImmediate();
  }
}

export interface CaseUpstream {
  readonly url: string;
  /** Messages received for a case, in order. */
  readonly received: (number: number) => readonly HttpMessage[];
}

/** Answers each case with its response. Closed when the test ends. */
export async function startUpstream(cases: readonly MessageCase[]): Promise<CaseUpstream> {
  const received = cases.map((): HttpMessage[] => []);
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let text = '';
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const read = readRequest(text, 0);
      if (read === undefined) return;
      text = text.slice(read.end);
      const number = Number(valuesOf(read.message.fields, CASE)[0]);
      received[number]?.push(read.message);
      const answered = cases[number];
      if (answered !== undefined) void answer(socket, answered, number);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: (number) => received[number] ?? [],
  };
}

async function answer(socket: Socket, { method, answer: caseAnswer }: MessageCase, number: number): Promise<void> {
  await writeInPieces(socket, answerBytes(caseAnswer, method), number);
  const isBare = method === 'HEAD' || caseAnswer.status === 204 || caseAnswer.status === 304;
  if (caseAnswer.content.framing === 'close' && !isBare) socket.end();
}

/** A client with one connection at a time, reused until the server closes it. */
export class CaseClient {
  readonly #url: URL;
  #socket: Socket | undefined;
  #text = '';
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(url: string) {
    this.#url = new URL(url);
    atEnd(() => {
      this.#socket?.destroy();
    });
  }

  /** Sends a case and reads its response. @throws if the response is incomplete or not HTTP/1 */
  async ask(each: MessageCase, number: number): Promise<HttpResponse> {
    const socket = this.#socket === undefined || this.#ended ? await this.#connect() : this.#socket;
    await writeInPieces(socket, requestBytes(each, number), number + 1);
    const late = AbortSignal.timeout(TIMEOUT);
    late.addEventListener('abort', () => this.#wake());
    for (;;) {
      const read = readResponse(this.#text, 0, each.method, this.#ended);
      if (read !== undefined) {
        this.#text = this.#text.slice(read.end);
        if (this.#text !== '') throw new Error(`bytes after the response: ${JSON.stringify(this.#text.slice(0, 200))}`);
        if (mustClose(read.message)) await this.#close();
        return read.message;
      }
      if (this.#ended || late.aborted) {
        throw new Error(`incomplete response: ${JSON.stringify(this.#text.slice(0, 400))}`);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #connect(): Promise<Socket> {
    const socket = connect({ host: this.#url.hostname, port: Number(this.#url.port), noDelay: true });
    this.#socket = socket;
    this.#text = '';
    this.#ended = false;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
      this.#wake();
    });
    socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
    await once(socket, 'connect');
    return socket;
  }

  async #close(): Promise<void> {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket === undefined || this.#ended) return;
    socket.end();
    await once(socket, 'close');
  }
}

function mustClose({ final }: HttpResponse): boolean {
  return final.framing === 'close' || valuesOf(final.fields, 'connection').some((each) => /\bclose\b/i.test(each));
}
