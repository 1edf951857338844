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

export function streamResetError(rstCode: number): Error {
  return Object.assign(new Error(`the stream was reset with code ${rstCode}`), { code: 'ERR_HTTP2_STREAM_ERROR' });
}
