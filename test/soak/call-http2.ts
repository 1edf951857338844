import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import type { Millis } from '../../src/core/scalars.ts';
import type { CallOptions, CallResult } from './call.ts';
import { CALL_TIMEOUT } from './call.ts';

/** Node 24.21 sometimes leaves a stream open whose upload was reset after its response had ended. */
const MAX_CLOSE_TIME: Millis = 5000;

/** Sends one request on a shared connection and returns its result. */
export function callHttp2(session: ClientHttp2Session, ask: CallOptions): Promise<CallResult> {
  const { method, path, headers = {}, body, chunked = false } = ask;
  const length = body === undefined || chunked ? {} : { 'content-length': String(body.length) };
  return new Promise((resolve) => {
    const stream = session.request(
      { ':method': method, ':path': path, ...headers, ...length },
      { endStream: body === undefined },
    );
    let head: IncomingHttpHeaders | undefined;
    let why = 'closed before its head';
    const chunks: Buffer[] = [];
    let closing: NodeJS.Timeout | undefined;
    let ended = false;
    let broken = false;
    let left = false;
    const leave = (): void => {
      left = true;
      stream.close(8); // CANCEL
    };
    const timeout = setTimeout(() => {
      why = `no end within ${CALL_TIMEOUT} ms`;
      stream.destroy(new Error(why));
    }, CALL_TIMEOUT);
    const leaving = ask.leavesAfter === undefined ? undefined : setTimeout(leave, ask.leavesAfter);
    stream.on('response', (received) => (head = received));
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (ask.readsEvery === undefined) return;
      stream.pause();
      setTimeout(() => stream.resume(), ask.readsEvery);
    });
    // Node 24 emits `end` for a stream reset with an error too; one reset without an error has its complete response.
    stream.on('end', () => {
      ended = true;
      closing = setTimeout(() => stream.closed && stream.destroy(), MAX_CLOSE_TIME);
    });
    stream.on('error', (error: Error) => {
      broken = true;
      why = error.message;
    });
    stream.on('close', () => {
      clearTimeout(timeout);
      clearTimeout(leaving);
      clearTimeout(closing);
      // From here on Node 24.21 miscounts the memory of its session, as src/http/server/http2-server-sessions.ts says: it would refuse answers.
      if (head !== undefined && body !== undefined && !stream.writableFinished) session.close();
      if (left) return resolve({ kind: 'left' });
      if (head === undefined) return resolve({ kind: 'lost', why });
      const status = Number(head[':status']);
      if (broken || !ended || stream.rstCode !== 0) {
        // Not reset, but dropped with its connection: it may have been complete.
        const isDropped = session.destroyed && !broken && stream.rstCode === 0;
        if (isDropped) return resolve({ kind: 'dropped', status, id: String(head['tidegate-request-id']) });
        return resolve({ kind: 'cut', status });
      }
      const answerHead = head;
      const header = (name: string): string => String(answerHead[name] ?? '');
      resolve({ kind: 'answered', status, header, body: Buffer.concat(chunks) });
    });
    stream.on('continue', () => stream.end(body));
    if (headers['expect'] === undefined && body !== undefined) stream.end(body);
  });
}
