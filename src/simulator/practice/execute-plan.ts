import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Millis } from '../../core/scalars.ts';
import type { ResponsePlan, ResponseEnding } from './response-plan.ts';
import { isSuccess } from './response-plan.ts';
import type { PracticeResponse } from './practice-response.ts';
import { errorResponse, withContentLength, isBodiless } from './practice-response.ts';
import type { PracticeRoute } from './practice-route.ts';

/** How a request was answered; `gone` if the client had disconnected. */
export type ResponseOutcome = number | 'reset' | 'hang' | 'cut' | 'gone';

/**
 * Executes a plan on a request. `onEnd` is called once, when the server has finished with it.
 * @param work calls back when the work is done; by default after the plan's delay
 */
export function executePlan(
  plan: ResponsePlan,
  route: PracticeRoute,
  request: IncomingMessage,
  response: ServerResponse,
  onEnd: (how: ResponseOutcome) => void,
  work: (onDone: () => void) => void = (onDone) => runAfter(plan.delay, onDone),
): void {
  if (!plan.runsHandler) {
    request.resume();
    return work(() => finishResponse(plan.ending, undefined, request, response, onEnd));
  }
  route(request, (respond) => {
    if (respond === undefined) return onEnd('gone');
    work(() => finishResponse(plan.ending, respond(), request, response, onEnd));
  });
}

function finishResponse(
  ending: ResponseEnding,
  handlerResponse: PracticeResponse | undefined,
  { socket }: IncomingMessage,
  response: ServerResponse,
  onEnd: (how: ResponseOutcome) => void,
): void {
  if (response.destroyed || socket.destroyed) return onEnd('gone');
  switch (ending.kind) {
    case 'reset':
      socket.resetAndDestroy();
      return onEnd('reset');
    case 'hang':
      response.once('close', () => onEnd('hang'));
      return;
    case 'answer': {
      const { fillerBytes, cutAfterBytes } = ending;
      if (
        fillerBytes === undefined &&
        cutAfterBytes === undefined &&
        handlerResponse !== undefined &&
        isSuccess(ending.status)
      ) {
        return onEnd(send(response, applyEnding(handlerResponse, ending)));
      }
      const length = cutAfterBytes === undefined ? fillerBytes : Math.max(fillerBytes ?? 0, cutAfterBytes + 1);
      const fallback = length === undefined ? explanatoryResponse(ending) : fillerResponse(ending, length);
      if (cutAfterBytes === undefined) return onEnd(send(response, fallback));
      response.writeHead(fallback.status, withContentLength(fallback.status, fallback.headers, fallback.body.length));
      response.flushHeaders();
      if (cutAfterBytes > 0) response.write(fallback.body.subarray(0, cutAfterBytes));
      socket.destroySoon();
      return onEnd('cut');
    }
  }
}

type StatusEnding = Extract<ResponseEnding, { kind: 'answer' }>;

/** The route's own rejection (a key in use, a malformed body) takes precedence over the planned success. */
function applyEnding(handlerResponse: PracticeResponse, { status, headers }: StatusEnding): PracticeResponse {
  if (status === 200 && headers.length === 0) return handlerResponse;
  return {
    status: isSuccess(handlerResponse.status) ? status : handlerResponse.status,
    headers: headers.length === 0 ? handlerResponse.headers : [...handlerResponse.headers, ...headers],
    body: handlerResponse.body,
  };
}

function explanatoryResponse({ status, headers }: StatusEnding): PracticeResponse {
  const [type, message] = status === 429 ? THROTTLED : status >= 500 ? FAILED : OTHER;
  const answer = errorResponse(status, type, message, status === 429 ? 'rate_limit' : undefined);
  return { ...answer, headers: [...answer.headers, ...headers] };
}

const THROTTLED = ['rate_limit_error', 'Too many requests.'] as const;
const FAILED = ['api_error', 'Something went wrong on our side.'] as const;
const OTHER = ['invalid_request_error', 'Set by the script.'] as const;

function fillerResponse({ status, headers }: StatusEnding, length: number): PracticeResponse {
  return {
    status,
    headers: ['Content-Type', 'application/octet-stream', ...headers],
    body: Buffer.alloc(length, 'tidegate '),
  };
}

function send(response: ServerResponse, { status, headers, body }: PracticeResponse): number {
  response.writeHead(status, withContentLength(status, headers, body.length));
  response.end(isBodiless(status) ? undefined : body);
  return status;
}

function runAfter(delay: Millis, run: () => void): void {
  if (delay <= 0) run();
  else setTimeout(run, delay).unref();
}
