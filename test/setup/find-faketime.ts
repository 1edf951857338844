import { globSync } from 'node:fs';

/** Debian and Ubuntu (a folder for each architecture), Fedora and Arch, Homebrew on Apple silicon and on Intel. */
const PLACES: readonly string[] = [
  '/usr/lib/*-linux-gnu*/faketime/libfaketime.so.1',
  '/usr/lib{64,}/faketime/libfaketime.so.1',
  '/opt/homebrew/lib/faketime/libfaketime.1.dylib',
  '/usr/local/lib/faketime/libfaketime.1.dylib',
];

/** Returns the path of libfaketime, which changes a program's clock; undefined if it is not installed. */
export function findFaketime(): string | undefined {
  return globSync(PLACES)[0];
}
