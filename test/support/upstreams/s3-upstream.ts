/** A minimal S3: objects by path, behind a signature verifier. */
import type { ServerResponse } from 'node:http';
import type { RecordedRequest } from './recording-upstream.ts';
import { startRecordingUpstream } from './recording-upstream.ts';
import type { Credentials, SignedPayload } from './verify-sigv4.ts';
import { verifySignature } from './verify-sigv4.ts';

export interface S3Upstream {
  /** Without a trailing slash. */
  readonly url: string;
  /** Received requests with the verifier's result. */
  readonly seen: readonly S3Request[];
  /** Objects by path, as in the request target. */
  readonly objects: ReadonlyMap<string, Buffer>;
}

export interface S3Request {
  readonly request: RecordedRequest;
  /** An error code of S3 or, for a valid signature, how the body is authenticated. */
  readonly verdict: SignedPayload | 'SignatureDoesNotMatch' | (string & {});
  readonly status: number;
}

export interface S3Options {
  readonly credentials: Credentials;
  /** Answers this many validly signed requests with 503 SlowDown first; 0 by default. */
  readonly slowDowns?: number;
}

export async function startS3Upstream({ credentials, slowDowns = 0 }: S3Options): Promise<S3Upstream> {
  const objects = new Map<string, Buffer>();
  const seen: S3Request[] = [];
  let slow = slowDowns;
  const { url } = await startRecordingUpstream((request, response) => {
    const verified = verifySignature(request, credentials);
    let status: number;
    if (verified.kind === 'refused') {
      status = fail(response, 403, verified.code, verified.message);
    } else if (slow > 0) {
      slow -= 1;
      status = fail(response, 503, 'SlowDown', 'Please reduce your request rate.');
    } else {
      status = serve(objects, request, verified.body, response);
    }
    seen.push({ request, verdict: verified.kind === 'refused' ? verified.code : verified.payload, status });
  });
  return { url, seen, objects };
}

function serve(objects: Map<string, Buffer>, request: RecordedRequest, body: Buffer, response: ServerResponse): number {
  const path = request.target.replace(/\?.*$/s, '');
  switch (request.method) {
    case 'PUT':
      objects.set(path, body);
      response.writeHead(200, { 'Content-Length': 0 }).end();
      return 200;
    case 'DELETE':
      objects.delete(path);
      response.writeHead(204).end();
      return 204;
    case 'GET':
    case 'HEAD': {
      const object = objects.get(path);
      if (object === undefined) return fail(response, 404, 'NoSuchKey', 'The specified key does not exist.');
      response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': object.length });
      response.end(request.method === 'HEAD' ? undefined : object);
      return 200;
    }
    default:
      return fail(response, 405, 'MethodNotAllowed', request.method);
  }
}

function fail(response: ServerResponse, status: number, code: string, message: string): number {
  const text = message.replaceAll(/[<&]/g, (sign) => (sign === '<' ? '&lt;' : '&amp;'));
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${text}</Message></Error>`;
  response.writeHead(status, { 'Content-Type': 'application/xml', 'Content-Length': Buffer.byteLength(xml) }).end(xml);
  return status;
}
