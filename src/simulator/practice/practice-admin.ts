import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { PracticeResponse } from './practice-response.ts';
import { errorResponse, jsonResponse, textResponse } from './practice-response.ts';
import type { LedgerSummary } from './charge-ledger.ts';
import type { PracticeSpec } from './practice-spec.ts';
import { practicePatch } from './practice-spec.ts';
import { onBodyEnd } from './practice-route.ts';
import { SCRIPT_GRAMMAR } from './response-script.ts';
import type { PracticeStats } from './practice-counters.ts';
import type { LoggedWait } from './wait-log.ts';

/** The actions of the pages under /practice. */
export interface PracticeAdminTarget {
  stats(): PracticeStats;
  readonly waits: { list(): readonly LoggedWait[] };
  readonly ledger: { summary(): LedgerSummary };
  spec(): PracticeSpec;
  configure(patch: Partial<PracticeSpec>): void;
  reset(): void;
}

const ALLOWED_METHODS: Readonly<Record<string, 'GET' | 'POST'>> = {
  '/practice/stats': 'GET',
  '/practice/waits': 'GET',
  '/practice/ledger': 'GET',
  '/practice/script': 'GET',
  '/practice/configure': 'POST',
  '/practice/reset': 'POST',
};

/** Answers a request to a page under /practice, for people with a terminal and for tests in another process. */
export function handleAdminRequest(
  practice: PracticeAdminTarget,
  path: string,
  request: IncomingMessage,
  reply: (answer: PracticeResponse) => void,
): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  onBodyEnd(request, (whole) => {
    if (whole) reply(routeAdminRequest(practice, path, request.method ?? '', Buffer.concat(chunks).toString('utf8')));
  });
}

function routeAdminRequest(
  practice: PracticeAdminTarget,
  path: string,
  method: string,
  body: string,
): PracticeResponse {
  const allowed = ALLOWED_METHODS[path];
  if (allowed === undefined) return errorResponse(404, 'invalid_request_error', `${path} does not exist.`);
  if (method !== allowed) {
    const answer = errorResponse(405, 'invalid_request_error', `${path} only allows ${allowed}.`);
    return { ...answer, headers: [...answer.headers, 'Allow', allowed] };
  }
  switch (path) {
    case '/practice/stats':
      return jsonResponse(200, practice.stats());
    case '/practice/waits':
      return jsonResponse(200, practice.waits.list());
    case '/practice/ledger':
      return jsonResponse(200, practice.ledger.summary());
    case '/practice/script':
      return textResponse(200, `${SCRIPT_GRAMMAR}\n`);
    case '/practice/configure':
      return configure(practice, body);
    default:
      practice.reset();
      return jsonResponse(200, practice.stats());
  }
}

function configure(practice: PracticeAdminTarget, body: string): PracticeResponse {
  let patch: unknown;
  try {
    patch = JSON.parse(body);
  } catch {
    return errorResponse(400, 'invalid_request_error', 'The body is not JSON.');
  }
  const parsed = practicePatch.safeParse(patch);
  if (!parsed.success) return errorResponse(400, 'invalid_request_error', z.prettifyError(parsed.error));
  practice.configure(parsed.data);
  return jsonResponse(200, practice.spec());
}
