/** An upstream that knows accounts by their bearer token, each with the behaviour that a test gives it. */
import type { ServerResponse } from 'node:http';
import { startRecordingUpstream, type RecordedRequest, type RecordingUpstream } from './recording-upstream.ts';

/** Answers a request that was sent with the token of an account. */
export type AnswerAs = (response: ServerResponse, request: RecordedRequest) => void;

export interface AccountUpstream extends RecordingUpstream {
  /** The tokens of the requests so far, in order; `none` for a request without one. */
  readonly tokens: () => readonly string[];
  /** Changes the behaviour of one token; any other gets a 401. */
  readonly set: (token: string, answer: AnswerAs) => void;
}

export const accept: AnswerAs = (response) => void response.end('{}');

export function reject(status: number, headers: Readonly<Record<string, string>> = {}): AnswerAs {
  return (response) => void response.writeHead(status, headers).end('{}');
}

/** The key `accounts` of an upstream. @param tokens by the name of the account */
export function accountsOf(tokens: Readonly<Record<string, string>>): string {
  const list = Object.entries(tokens).map(([name, token]) => `{name: ${name}, value: "Bearer ${token}"}`);
  return `accounts: [${list.join(', ')}]`;
}

export async function startAccountUpstream(answers: Readonly<Record<string, AnswerAs>>): Promise<AccountUpstream> {
  const byToken = new Map(Object.entries(answers));
  const upstream = await startRecordingUpstream((request, response) => {
    (byToken.get(tokenOf(request)) ?? reject(401, { 'WWW-Authenticate': 'Bearer' }))(response, request);
  });
  return {
    ...upstream,
    tokens: () => upstream.received.map(tokenOf),
    set: (token, answer) => void byToken.set(token, answer),
  };
}

function tokenOf({ headers }: RecordedRequest): string {
  return headers.authorization?.replace(/^Bearer /, '') ?? 'none';
}
