/**
 * Of an HTTP/2 session, in MB, the most that can be said. Node 24.21 counts what a session takes of memory, and never takes back
 * what was still to be sent of a stream that broke off: sooner or later a session with a bound has every new stream reset
 * (ENHANCE_YOUR_CALM; of a client's, each that is answered), with nothing in use. So there is no such bound: streams, heads,
 * windows and buffers have bounds of their own.
 */
export const MOST_SESSION_MEMORY = 2 ** 32 - 1;
