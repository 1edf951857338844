/** Loaded into a process before its own program: on SIGWINCH it says, in a line of JSON, what it holds on to. */
import { heldBytes } from './heap.ts';

process.on('SIGWINCH', () => {
  process.stdout.write(`${JSON.stringify({ held: heldBytes() })}\n`);
});
