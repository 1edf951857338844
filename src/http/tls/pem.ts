import { readFileSync } from 'node:fs';

/** Whether the value is PEM text, and not the path of a PEM file. */
export function isPem(value: string): boolean {
  return value.includes('-----BEGIN');
}

/**
 * @param value PEM text, or the path of a PEM file
 * @throws an Error of node:fs that names the path, when a file cannot be read
 */
export function readPem(value: string): string {
  return isPem(value) ? value : readFileSync(value, 'utf8');
}
