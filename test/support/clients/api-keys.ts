/** Files with API keys. */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey, hashApiKey } from '../../../src/config/auth/api-key.ts';
import { formatKeyLine } from '../../../src/config/auth/key-file.ts';
import { atEnd } from '../at-end.ts';

export interface KeyFile {
  readonly path: string;
  /** A key of each client, in the order of their names. */
  readonly keys: readonly string[];
  /** Replaces the keys by new ones of these clients, and returns them. */
  readonly replace: (...clients: readonly string[]) => readonly string[];
  /** Adds a key of a client that expires at this time, to the second, and returns it. */
  readonly addExpiring: (client: string, at: Date) => string;
}

/** Removed when the test ends. */
export function makeKeyFile(...clients: readonly string[]): KeyFile {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'keys');
  const replace = (...names: readonly string[]): readonly string[] => {
    const created = names.map((client) => ({ client, ...createApiKey() }));
    const lines = created.map(({ client, id, text }) =>
      formatKeyLine({ id, hash: hashApiKey(text), createdAt: '2026-11-30T10:00:00Z', client }),
    );
    writeFileSync(path, lines.join(''));
    return created.map(({ text }) => text);
  };
  const addExpiring = (client: string, at: Date): string => {
    const { id, text } = createApiKey();
    const expiresAt = `${at.toISOString().slice(0, 19)}Z`;
    const key = { id, hash: hashApiKey(text), createdAt: '2026-11-30T10:00:00Z', expiresAt, client };
    appendFileSync(path, formatKeyLine(key));
    return text;
  };
  return { path, keys: replace(...clients), replace, addExpiring };
}
