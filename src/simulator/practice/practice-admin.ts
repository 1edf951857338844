import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Answer } from './practice-response.ts';
import { errorAnswer, jsonAnswer, textAnswer } from './practice-response.ts';
import type { LedgerSummary } from './charge-ledger.ts';
import type { PracticeSpec } from './practice-spec.ts';
import { practicePatch } from './practice-spec.ts';
import { whenRead } from './practice-route.ts';
import { SCRIPT_GRAMMAR } from './response-script.ts';
import type { PracticeStats } from './practice-counters.ts';

/** What the pages under /practice show and do. */
export interface Administered {
  stats(): PracticeStats;
  readonly ledger: { summary(): LedgerSummary };
  spec(): PracticeSpec;
  configure(patch: Partial<PracticeSpec>): void;
  reset(): void;
}

const ALLOWED: Readonly<Record<string, 'GET' | 'POST'>> = {
  '/practice/stats': 'GET',
  '/practice/ledger': 'GET',
  '/practice/script': 'GET',
  '/practice/configure': 'POST',
  '/practice/reset': 'POST',
};

/** Answers a request to a page under /practice: for people with a terminal, and tests in another process. */
export function administer(
  practice: Administered,
  path: string,
  request: IncomingMessage,
  reply: (answer: Answer) => void,
): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  whenRead(request, (whole) => {
    if (whole) reply(handle(practice, path, request.method ?? '', Buffer.concat(chunks).toString('utf8')));
  });
}

function handle(practice: Administered, path: string, method: string, body: string): Answer {
  const allowed = ALLOWED[path];
  if (allowed === undefined) return errorAnswer(404, 'invalid_request_error', `There is no ${path}.`);
  if (method !== allowed) {
    const answer = errorAnswer(405, 'invalid_request_error', `${path} wants ${allowed}.`);
    return { ...answer, headers: [...answer.headers, 'Allow', allowed] };
  }
  switch (path) {
    case '/practice/stats':
      return jsonAnswer(200, practice.stats());
    case '/practice/ledger':
      return jsonAnswer(200, practice.ledger.summary());
    case '/practice/script':
      return textAnswer(200, `${SCRIPT_GRAMMAR}\n`);
    case '/practice/configure':
      return configure(practice, body);
    default:
      practice.reset();
      return jsonAnswer(200, practice.stats());
  }
}

function configure(practice: Administered, body: string): Answer {
  let patch: unknown;
  try {
    patch = JSON.parse(body);
  } catch {
    return errorAnswer(400, 'invalid_request_error', 'The body is no JSON.');
  }
  const parsed = practicePatch.safeParse(patch);
  if (!parsed.success) return errorAnswer(400, 'invalid_request_error', z.prettifyError(parsed.error));
  practice.configure(parsed.data);
  return jsonAnswer(200, practice.spec());
}
