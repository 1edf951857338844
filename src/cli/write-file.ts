import { writeFileSync } from 'node:fs';
import { describeFileError } from '../config/load/substitute.ts';

/** Writes or replaces a file. @returns the problem in one line; undefined on success */
export function writeFile(path: string, text: string): string | undefined {
  try {
    writeFileSync(path, text);
    return undefined;
  } catch (error) {
    return `${path} cannot be written: ${describeFileError(error)}`;
  }
}
