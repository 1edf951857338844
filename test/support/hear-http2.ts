import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

export interface Heard {
  /** Undefined: none came. */
  readonly head: IncomingHttpHeaders | undefined;
  /** It came to its end. */
  readonly whole: boolean;
  readonly body: string;
}

/** Asks once, on a connection that others share. */
export function hearHttp2(session: ClientHttp2Session, { method, path, headers, body }: Asked): Promise<Heard> {
  return new Promise((resolve) => {
    const stream = session.request(
      { ':method': method, ':path': path, ...headers, ...(body === null ? {} : { 'content-length': body.length }) },
      { endStream: body === null },
    );
    let head: IncomingHttpHeaders | undefined;
    let ended = false;
    let broken = false;
    const chunks: Buffer[] = [];
    stream.on('response', (received) => (head = received));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    // Of one that is reset with an error too (Node 24); one that is reset without has its answer, and is whole.
    stream.on('end', () => (ended = true));
    stream.on('error', () => (broken = true));
    stream.on('close', () => {
      const whole = head !== undefined && ended && !broken && stream.rstCode === 0;
      resolve({ head, whole, body: Buffer.concat(chunks).toString() });
    });
    if (body !== null) stream.end(body);
  });
}
