/**
 * Whether Node has closed a session because of what the upstream sent: nghttp2 then returns an error, with a number. A GOAWAY that
 * was received and a failure of the socket give other errors.
 */
export function isProtocolViolation(error: Error | undefined): error is Error {
  if (error === undefined || !('code' in error && 'errno' in error)) return false;
  return typeof error.code === 'string' && error.code.startsWith('ERR_HTTP2_') && typeof error.errno === 'number';
}
