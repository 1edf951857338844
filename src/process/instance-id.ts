import { randomBytes } from 'node:crypto';

/** Identifies one run of the proxy among all replicas, in its log lines, request ids and Via. */
export function createInstanceId(): string {
  return randomBytes(4).toString('hex');
}
