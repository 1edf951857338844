/**
 * The largest possible `maxSessionMemory`, in MB: no limit. Node 24.21 counts the memory of a session and never subtracts what was
 * unsent of an aborted stream. A session with a limit sooner or later resets every new stream (ENHANCE_YOUR_CALM; a client session
 * every one with a response) with no memory in use. Streams, heads, windows and buffers have limits of their own.
 */
export const MAX_SESSION_MEMORY = 2 ** 32 - 1;
