/** Preloaded into a process: on SIGWINCH it prints its live memory as a line of JSON. */
import { heldBytes } from './heap.ts';

process.on('SIGWINCH', () => {
  process.stdout.write(`${JSON.stringify({ held: heldBytes() })}\n`);
});
