import { writeFileSync } from 'node:fs';
import { explain } from '../config/load/substitute.ts';

/** Writes a file anew. @returns why it could not, in a line; undefined when it is written */
export function writeFile(path: string, text: string): string | undefined {
  try {
    writeFileSync(path, text);
    return undefined;
  } catch (error) {
    return `${path} cannot be written: ${explain(error)}`;
  }
}
