import type { ClientHttp2Stream } from 'node:http2';
import type { Readable } from 'node:stream';

/**
 * Writes a body to a stream as fast as the stream takes it.
 * @param onWritten called for each part that was written
 * @param onAborted the body ended before its end
 */
export function uploadBody(
  stream: ClientHttp2Stream,
  body: Readable,
  onWritten: () => void,
  onAborted: (error: Error) => void,
): void {
  body.on('data', (chunk: Buffer) => {
    if (!stream.writable) return;
    if (!stream.write(chunk, onWritten)) body.pause();
  });
  body.once('end', () => stream.end(onWritten));
  body.once('close', () => {
    if (!body.readableEnded) onAborted(body.errored ?? new Error('the upload was aborted'));
  });
  stream.on('drain', () => void body.resume());
  stream.once('close', () => body.destroy());
}
