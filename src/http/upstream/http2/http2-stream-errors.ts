import { constants } from 'node:http2';
import { RequestNotProcessedError } from '../send-failure.ts';
import type { Http2StreamCarrier } from './http2-upstream-stream.ts';

const REFUSED = constants.NGHTTP2_REFUSED_STREAM;

/** Errors when a connection can open no more streams. Node 24.21 throws some, and gives others to the stream that it returns. */
const CONNECTION_ERRORS: ReadonlySet<string> = new Set([
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_OUT_OF_STREAMS',
]);

/** Whether the request was not sent, because its connection can open no more streams. */
export function isOfConnection(error: Error | undefined): boolean {
  return error !== undefined && 'code' in error && CONNECTION_ERRORS.has(String(error.code));
}

interface ClosedStream {
  /** Undefined if Node did not open it. */
  readonly id: number | undefined;
  readonly rstCode: number;
  readonly error: Error | undefined;
}

/** The error of a stream without a response that the upstream did not read, as it has declared; else undefined. */
export function notProcessedError(
  { lastStreamId, errorCode }: Pick<Http2StreamCarrier, 'lastStreamId' | 'errorCode'>,
  { id, rstCode, error }: ClosedStream,
): RequestNotProcessedError | undefined {
  const isLater = lastStreamId !== undefined && (id === undefined || id > lastStreamId);
  if (isLater || (id === undefined && isOfConnection(error))) return new RequestNotProcessedError('GOAWAY');
  const isRefused = rstCode === REFUSED && errorCode !== REFUSED;
  return isRefused ? new RequestNotProcessedError('REFUSED_STREAM') : undefined;
}

export function streamResetError(rstCode: number): Error {
  return Object.assign(new Error(`the stream was reset with code ${rstCode}`), { code: 'ERR_HTTP2_STREAM_ERROR' });
}
