import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Act, Ending } from './response-plan.ts';
import { isSuccess } from './response-plan.ts';
import type { Answer } from './practice-response.ts';
import { errorAnswer, framed, isBodiless } from './practice-response.ts';
import type { Route } from './practice-route.ts';

/** What a request was answered with; `gone` when nobody was there any more. */
export type Answered = number | 'reset' | 'hang' | 'cut' | 'gone';

/** Does to a request what the act says. `ended` is called once, when it takes the server's attention no longer. */
export function perform(
  act: Act,
  route: Route,
  request: IncomingMessage,
  response: ServerResponse,
  ended: (how: Answered) => void,
): void {
  if (!act.works) {
    request.resume();
    return after(act.delay, () => finish(act.ending, undefined, request, response, ended));
  }
  route(request, (work) => {
    if (work === undefined) return ended('gone');
    after(act.delay, () => finish(act.ending, work(), request, response, ended));
  });
}

function finish(
  ending: Ending,
  worked: Answer | undefined,
  { socket }: IncomingMessage,
  response: ServerResponse,
  ended: (how: Answered) => void,
): void {
  if (response.destroyed || socket.destroyed) return ended('gone');
  switch (ending.kind) {
    case 'reset':
      socket.resetAndDestroy();
      return ended('reset');
    case 'hang':
      response.once('close', () => ended('hang'));
      return;
    case 'answer': {
      const { filler, cut } = ending;
      if (filler === undefined && cut === undefined && worked !== undefined && isSuccess(ending.status)) {
        return ended(send(response, withEnding(worked, ending)));
      }
      const length = cut === undefined ? filler : Math.max(filler ?? 0, cut + 1);
      const answer = length === undefined ? explain(ending) : filled(ending, length);
      if (cut === undefined) return ended(send(response, answer));
      response.writeHead(answer.status, framed(answer.status, answer.headers, answer.body.length));
      response.flushHeaders();
      if (cut > 0) response.write(answer.body.subarray(0, cut));
      socket.destroySoon();
      return ended('cut');
    }
  }
}

type AnswerEnding = Extract<Ending, { kind: 'answer' }>;

/** The route's own refusal (a key in use, a malformed body) stands, whatever success was wished for. */
function withEnding(worked: Answer, { status, headers }: AnswerEnding): Answer {
  if (status === 200 && headers.length === 0) return worked;
  return {
    status: isSuccess(worked.status) ? status : worked.status,
    headers: headers.length === 0 ? worked.headers : [...worked.headers, ...headers],
    body: worked.body,
  };
}

function explain({ status, headers }: AnswerEnding): Answer {
  const [type, message] = status === 429 ? THROTTLED : status >= 500 ? FAILED : OTHER;
  const answer = errorAnswer(status, type, message, status === 429 ? 'rate_limit' : undefined);
  return { ...answer, headers: [...answer.headers, ...headers] };
}

const THROTTLED = ['rate_limit_error', 'Too many requests.'] as const;
const FAILED = ['api_error', 'Something went wrong on our side.'] as const;
const OTHER = ['invalid_request_error', 'As the script says.'] as const;

function filled({ status, headers }: AnswerEnding, length: number): Answer {
  return {
    status,
    headers: ['Content-Type', 'application/octet-stream', ...headers],
    body: Buffer.alloc(length, 'tidegate '),
  };
}

function send(response: ServerResponse, { status, headers, body }: Answer): number {
  response.writeHead(status, framed(status, headers, body.length));
  response.end(isBodiless(status) ? undefined : body);
  return status;
}

function after(delay: Millis, act: () => void): void {
  if (delay <= 0) act();
  else setTimeout(act, delay).unref();
}
