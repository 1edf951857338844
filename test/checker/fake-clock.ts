import { renameSync, writeFileSync } from 'node:fs';
import { findFaketime } from '../setup/find-faketime.ts';

/** A file with the offset of the wall clock; the monotonic clock is the machine's. Undefined without libfaketime. */
export function fakeClock(
  file: string,
): { readonly env: NodeJS.ProcessEnv; readonly set: (seconds: number) => void } | undefined {
  const library = findFaketime();
  if (library === undefined || process.platform === 'darwin') return undefined;
  const set = (seconds: number): void => {
    writeFileSync(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    renameSync(`${file}.new`, file);
  };
  set(0);
  const env = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  return { env, set };
}
