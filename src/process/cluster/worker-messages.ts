/** What a primary and its workers say to each other: over the channel between them, never by the environment or arguments. */
import type { Config } from '../../config/schema/config-schema.ts';
import type { ProcessMetrics } from '../../telemetry/metrics/exposition/merged-metrics.ts';
import type { Dialogue, UpstreamOrder } from '../../admin/operations/process-api.ts';
import type { Report, Tidings } from '../../sharing/workers/worker-protocol.ts';

export type ToWorker =
  /** The first. */
  | { readonly type: 'start'; readonly start: Start }
  | { readonly type: 'tidings'; readonly tidings: Tidings }
  /** Another configuration. Answered by the same number. */
  | Reload
  | Question<QuestionName>
  /** Takes no more, and ends when all is answered. */
  | { readonly type: 'drain' }
  /** Ends at once. */
  | { readonly type: 'close' };

export type FromWorker =
  | { readonly type: 'listening'; readonly url: string }
  /** It could not be started, and ends. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** The configuration of this number is in effect; or is not, and why. */
  | { readonly type: 'reloaded'; readonly generation: number; readonly problem: string | undefined }
  /** And of what was configured before, nothing is left. */
  | { readonly type: 'settled'; readonly generation: number }
  | { readonly type: 'report'; readonly report: Report }
  | Answer<QuestionName>
  /** The question of this number could not be answered. */
  | { readonly type: 'unanswered'; readonly number: number };

export interface Reload {
  readonly type: 'reload';
  readonly generation: number;
  /** Its own part of what is configured for all. */
  readonly config: Config;
  /** What operators have said so far: some of it may be of upstreams that it hears of only now. */
  readonly orders: readonly UpstreamOrder[];
}

/** What a worker is asked, and told to do. */
export interface WorkerDialogue extends Dialogue {
  readonly metrics: { readonly asks: null; readonly tells: readonly ProcessMetrics[] };
}

export type QuestionName = keyof WorkerDialogue;

/** Whether it is less a question than something to do. */
export function isOrder(name: QuestionName): boolean {
  return name === 'steer' || name === 'reset';
}

export interface Question<K extends QuestionName> {
  readonly type: 'question';
  /** Its answer has the same. */
  readonly number: number;
  readonly name: K;
  readonly asks: WorkerDialogue[K]['asks'];
}

export interface Answer<K extends QuestionName> {
  readonly type: 'answer';
  readonly number: number;
  readonly name: K;
  readonly tells: WorkerDialogue[K]['tells'];
}

export function isAnswerTo<K extends QuestionName>(name: K, answer: Answer<QuestionName>): answer is Answer<K> {
  return answer.name === name;
}

/** What a worker has to know. */
export interface Start {
  /** Its own part of what is configured for all. */
  readonly config: Config;
  readonly worker: number;
  readonly instance: string;
  readonly version: string;
  readonly practiceUrl: string | undefined;
  readonly ticketKeys: Uint8Array;
  /** What operators have said so far. */
  readonly orders: readonly UpstreamOrder[];
}

/** An error of Node's, as far as a user is told of it. */
export interface Failure {
  readonly message: string;
  readonly code?: string | undefined;
  readonly syscall?: string | undefined;
  readonly address?: string | undefined;
  readonly port?: number | undefined;
}

/** Both ends run the same program: what has a type is one of these. */
export function isToWorker(message: unknown): message is ToWorker {
  return isMessage(message);
}

export function isFromWorker(message: unknown): message is FromWorker {
  return isMessage(message);
}

function isMessage(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'type' in message && typeof message.type === 'string';
}

export function describeFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, code, syscall, address, port }: Failure = error;
  return { message, code, syscall, address, port };
}

/** An error like the one that was described. In a worker, what listen(2) refuses is told as of bind(2). */
export function errorOf({ message, syscall, ...rest }: Failure): Error {
  return Object.assign(new Error(message), { ...rest, syscall: syscall === 'bind' ? 'listen' : syscall });
}
