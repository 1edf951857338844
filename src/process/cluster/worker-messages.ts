/** The messages between a primary and its workers: over their channel, never by environment variables or arguments. */
import type { Config } from '../../config/schema/config-schema.ts';
import type {
  KeysUnavailable,
  WriteLookup,
  WriteMatches,
  WriteQuery,
  WriteRemoval,
} from '../../core/idempotency/key-inspection.ts';
import type { ClientQuotaView, QuotasUnavailable } from '../../core/quota/clients/client-quota-inspection.ts';
import type { DeliveryTotals } from '../../core/delivery/delivery-store.ts';
import type { EndpointFailure } from '../../core/events/gate-views.ts';
import type { ProcessMetrics } from '../../telemetry/metrics/exposition/merged-metrics.ts';
import type { ProcessQueries, UpstreamOverride } from '../../admin/operations/process-api.ts';
import type {
  CalledMethod,
  DeliveryCall,
  DeliveryOperation,
  DeliveryReply,
  OperationReply,
} from '../../sharing/deliveries/delivery-protocol.ts';
import type { KeyOperation, KeyReply } from '../../sharing/keys/key-protocol.ts';
import type { NumberedQuotaCall, NumberedQuotaTerms } from '../../sharing/quotas/primary-quotas.ts';
import type { UsageReport, LimitUpdates } from '../../sharing/workers/worker-protocol.ts';

export type MessageToWorker =
  /** The first message. */
  | { readonly type: 'start'; readonly start: WorkerStart }
  | { readonly type: 'updates'; readonly updates: LimitUpdates }
  | { readonly type: 'key'; readonly reply: KeyReply }
  | { readonly type: 'deliveries'; readonly replies: readonly DeliveryReply[] }
  | { readonly type: 'quota'; readonly terms: NumberedQuotaTerms }
  /** A new configuration, answered with the same generation. */
  | ReloadMessage
  | WorkerQuery<WorkerQueryName>
  /** Accept no more requests, and exit when all are answered. */
  | { readonly type: 'drain' }
  /** Exit at once. */
  | { readonly type: 'close' };

export type MessageFromWorker =
  | { readonly type: 'listening'; readonly url: string }
  /** The worker could not start, and exits. */
  | { readonly type: 'failed'; readonly failure: SerializedError }
  /** The configuration of this generation is in effect, or the problem that prevented it. */
  | { readonly type: 'reloaded'; readonly generation: number; readonly problem: string | undefined }
  /** No request uses a configuration before this generation any more. */
  | { readonly type: 'settled'; readonly generation: number }
  | { readonly type: 'report'; readonly report: UsageReport }
  | { readonly type: 'keys'; readonly operations: readonly KeyOperation[] }
  | { readonly type: 'deliveries'; readonly operations: readonly DeliveryOperation[] }
  | { readonly type: 'quota'; readonly call: NumberedQuotaCall }
  /** The last failed attempt at an upstream, sent before the report that counts it. */
  | { readonly type: 'failure'; readonly upstream: string; readonly failure: EndpointFailure }
  | WorkerQueryResult<WorkerQueryName>
  /** The query of this number could not be answered. */
  | { readonly type: 'unanswered'; readonly number: number };

export interface ReloadMessage {
  readonly type: 'reload';
  readonly generation: number;
  /** The worker's part of the configuration: see `divideConfig`. */
  readonly config: Config;
  /** The overrides in force, some perhaps of upstreams that are new to the worker. */
  readonly overrides: readonly UpstreamOverride[];
}

/** The queries and commands that a worker answers. */
export interface WorkerQueries extends ProcessQueries {
  readonly metrics: { readonly input: null; readonly result: readonly ProcessMetrics[] };
  /** Of one worker, if Redis has the keys; undefined if it has not. */
  readonly keys: { readonly input: WriteQuery; readonly result: WriteMatches | KeysUnavailable | undefined };
  readonly key: { readonly input: { readonly id: string }; readonly result: WriteLookup | KeysUnavailable | undefined };
  readonly forgetKey: {
    readonly input: { readonly id: string };
    readonly result: WriteRemoval | KeysUnavailable | undefined;
  };
  /** Of one worker, if Redis counts the quotas of clients; undefined if it does not. */
  readonly clientQuotas: {
    readonly input: { readonly client: string };
    readonly result: ClientQuotasReply | undefined;
  };
  readonly resetQuotas: { readonly input: { readonly client: string }; readonly result: ClientQuotasReply | undefined };
  /** Of one worker, if Redis has the deliveries; undefined if it has not. */
  readonly delivery: { readonly input: DeliveryCall<CalledMethod>; readonly result: OperationReply | undefined };
  readonly deliveryTotals: { readonly input: null; readonly result: DeliveryTotals | undefined };
}

type ClientQuotasReply = readonly ClientQuotaView[] | QuotasUnavailable;

export type WorkerQueryName = keyof WorkerQueries;

/** Whether a query is a command, which changes something. */
export function isCommand(name: WorkerQueryName): boolean {
  return name === 'applyOverride' || name === 'reset';
}

export interface WorkerQuery<K extends WorkerQueryName> {
  readonly type: 'question';
  /** The number of the query, which its result repeats. */
  readonly number: number;
  readonly name: K;
  readonly input: WorkerQueries[K]['input'];
}

export interface WorkerQueryResult<K extends WorkerQueryName> {
  readonly type: 'answer';
  readonly number: number;
  readonly name: K;
  readonly result: WorkerQueries[K]['result'];
}

export function isResultOf<K extends WorkerQueryName>(
  name: K,
  result: WorkerQueryResult<WorkerQueryName>,
): result is WorkerQueryResult<K> {
  return result.name === name;
}

/** What a worker needs to start. */
export interface WorkerStart {
  /** The worker's part of the configuration: see `divideConfig`. */
  readonly config: Config;
  readonly worker: number;
  readonly instance: string;
  readonly version: string;
  readonly practiceUrl: string | undefined;
  readonly ticketKeys: Uint8Array;
  /** For the digests of keys of writes. */
  readonly keySecret: Uint8Array;
  /** The primary reports writes without a key whose worker has ended. */
  readonly reportsOpenWrites: boolean;
  /** The primary stores what is delivered later. */
  readonly storesDeliveries: boolean;
  /** The overrides in force. */
  readonly overrides: readonly UpstreamOverride[];
}

/** The parts of a Node.js error that are shown to a user. */
export interface SerializedError {
  readonly message: string;
  readonly code?: string | undefined;
  readonly syscall?: string | undefined;
  readonly address?: string | undefined;
  readonly port?: number | undefined;
}

/** Both ends run the same program, so a message with a type is one of these. */
export function isToWorker(message: unknown): message is MessageToWorker {
  return isMessage(message);
}

export function isFromWorker(message: unknown): message is MessageFromWorker {
  return isMessage(message);
}

function isMessage(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'type' in message && typeof message.type === 'string';
}

export function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, code, syscall, address, port }: SerializedError = error;
  return { message, code, syscall, address, port };
}

/** Restores an error. In a worker, Node.js names bind(2) as the call that failed where it was listen(2). */
export function deserializeError({ message, syscall, ...rest }: SerializedError): Error {
  return Object.assign(new Error(message), { ...rest, syscall: syscall === 'bind' ? 'listen' : syscall });
}
