import { type ServerUnaryCall, status } from '@grpc/grpc-js';
import type { Limit } from '../../../core/limits/limit.ts';
import { BufferedResponse } from '../../response/buffered-response.ts';
import type { RequestSink } from '../../server/request-source.ts';
import { DescribedRequest } from './described-request.ts';
import type { DescribedCheck } from './describe-check.ts';

/** The answer to a check, as over HTTP: 200 allows the request. */
export interface CheckAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** Of the request; empty if it was refused before they were known. */
  readonly limits: readonly Limit[];
}

/** An error of gRPC: the sender cannot use the answer, so its `failure_mode_allow` decides. */
export interface CallError {
  readonly code: status;
  readonly details: string;
}

const NOT_DECIDED: CallError = { code: status.UNAVAILABLE, details: 'The check was not decided.' };

/** Larger than any problem document. */
const MAX_BODY = 16 * 1024;

/** What a call needs of grpc-js. */
export type CheckCall = Pick<ServerUnaryCall<unknown, unknown>, 'getPeer' | 'on' | 'cancelled'>;

/** Decides on one request. @param onAnswer called once, unless the call is cancelled before, or its deadline passes */
export function runCheck(
  sink: RequestSink,
  call: CheckCall,
  { request: description, choice, maxWait }: DescribedCheck,
  onAnswer: (answer: CheckAnswer | CallError) => void,
): void {
  if (call.cancelled) return;
  const request = new DescribedRequest(description, peerAddress(call.getPeer()));
  const response = new BufferedResponse(MAX_BODY);
  let limits: readonly Limit[] = [];
  call.on('cancelled', () => response.destroy());
  const full = sink.problemIfFull(request) ?? sink.problemIfOverloaded(request);
  response.on('close', () => {
    if (call.cancelled) return;
    if (full !== undefined) return onAnswer({ code: status.RESOURCE_EXHAUSTED, details: full.detail });
    if (!response.writableFinished) return onAnswer(NOT_DECIDED);
    const { statusCode, body } = response;
    onAnswer({ status: statusCode, headers: toMap(response.headers), body: body?.toString() ?? '', limits });
  });
  if (full !== undefined) return sink.rejections.reject(request, response, full);
  sink.extAuthz.check(request, response, choice, { dialect: 'grpc', maxWait, onDecided: (of) => (limits = of) });
}

/** Without the port that grpc-js appends. Undefined on a Unix socket. */
function peerAddress(peer: string): string | undefined {
  return peer === 'unknown' ? undefined : peer.replace(/:\d+$/, '');
}

function toMap(headers: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < headers.length; i += 2) map.set((headers[i] ?? '').toLowerCase(), headers[i + 1] ?? '');
  return map;
}
