import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';

export interface Http2Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

export interface Http2Result {
  /** Undefined if none arrived. */
  readonly head: IncomingHttpHeaders | undefined;
  /** True if the response is complete. */
  readonly whole: boolean;
  readonly body: string;
}

/** Sends one request on a shared connection. */
export function requestHttp2(
  session: ClientHttp2Session,
  { method, path, headers, body }: Http2Request,
): Promise<Http2Result> {
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
    // Node 24 also emits `end` for a stream reset with an error; one reset without an error is complete.
    stream.on('end', () => (ended = true));
    stream.on('error', () => (broken = true));
    stream.on('close', () => {
      const whole = head !== undefined && ended && !broken && stream.rstCode === 0;
      resolve({ head, whole, body: Buffer.concat(chunks).toString() });
    });
    if (body !== null) stream.end(body);
  });
}
