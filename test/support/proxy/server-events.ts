import type { EventEmitter } from 'node:events';
import { vi } from 'vitest';
import { atEnd } from '../at-end.ts';
import { eventually } from './tidegate.ts';

/** Resolves once the server emits an event from now on, whether or not its listeners are called. */
export function serverEvents(server: EventEmitter): (event: string) => Promise<void> {
  const emit = vi.spyOn(server, 'emit');
  atEnd(() => emit.mockRestore());
  return async (event) => {
    await eventually(
      () => emit.mock.calls.some(([name]) => name === event),
      (isSeen) => isSeen,
    );
  };
}
