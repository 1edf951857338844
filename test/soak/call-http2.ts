import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import type { Ask, Heard } from './call.ts';
import { PATIENCE } from './call.ts';

/** Asks once on a connection that others share, and tells what came of it. */
export function callHttp2(session: ClientHttp2Session, ask: Ask): Promise<Heard> {
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
    let ended = false;
    let broken = false;
    let left = false;
    const leave = (): void => {
      left = true;
      stream.close(8); // CANCEL
    };
    const patience = setTimeout(() => {
      why = `no end within ${PATIENCE} ms`;
      stream.destroy(new Error(why));
    }, PATIENCE);
    const leaving = ask.leavesAfter === undefined ? undefined : setTimeout(leave, ask.leavesAfter);
    stream.on('response', (received) => (head = received));
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (ask.readsEvery === undefined) return;
      stream.pause();
      setTimeout(() => stream.resume(), ask.readsEvery);
    });
    // Of one that is reset with an error too (Node 24); one that is reset without has its answer, and is whole.
    stream.on('end', () => (ended = true));
    stream.on('error', (error: Error) => {
      broken = true;
      why = error.message;
    });
    stream.on('close', () => {
      clearTimeout(patience);
      clearTimeout(leaving);
      // Node 24.21 counts the memory of its session wrong from there on, as src/http/server/http2-server-sessions.ts says: it would refuse answers.
      if (head !== undefined && body !== undefined && !stream.writableFinished) session.close();
      if (left) return resolve({ kind: 'left' });
      if (head === undefined) return resolve({ kind: 'lost', why });
      const status = Number(head[':status']);
      if (broken || !ended || stream.rstCode !== 0) {
        // Nobody reset it, and what had come of it was dropped with its connection: it may have been whole.
        const isDropped = session.destroyed && !broken && stream.rstCode === 0;
        if (isDropped) return resolve({ kind: 'dropped', status, id: String(head['tidegate-request-id']) });
        return resolve({ kind: 'cut', status });
      }
      const told = head;
      const header = (name: string): string => String(told[name] ?? '');
      resolve({ kind: 'answered', status, header, body: Buffer.concat(chunks) });
    });
    stream.on('continue', () => stream.end(body));
    if (headers['expect'] === undefined && body !== undefined) stream.end(body);
  });
}
