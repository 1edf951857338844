import type { ExplanationStep } from './build-explanation.ts';
import type { ExplanationRecord } from './explanation-record.ts';

export function formatArrival({ record, identifiedBy, keyLocation }: ExplanationRecord): ExplanationStep {
  const name = record.clientName === undefined ? '' : `${record.clientName}, `;
  const clientText =
    identifiedBy === undefined ? '' : ` from client ${name}${record.client}, identified by ${identifiedBy}`;
  const where = record.upstream === '' ? 'no route' : `route ${record.route} to ${record.upstream}`;
  const what = record.method === '' ? 'an unreadable request' : `${record.method} ${record.path}`;
  const sentAs = record.upstreamKey === undefined ? '' : `, sent as ${record.upstreamKey}`;
  const keyed = keyLocation === undefined ? '' : `; idempotency key: ${keyLocation}${sentAs}`;
  return { at: 0, what: 'arrived', text: `${what} arrived${clientText}; ${where}${keyed}` };
}
