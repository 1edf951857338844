import cluster from 'node:cluster';
import type { Logger } from 'pino';
import { startApp } from '../../app.ts';
import { StdoutDestination } from '../../telemetry/log/stdout-destination.ts';
import { logDestination } from '../../telemetry/log/log-destination.ts';
import { createLogger } from '../../telemetry/log/logger.ts';
import { LimitClient } from '../../sharing/workers/limit-client.ts';
import type { DeliveryReply } from '../../sharing/deliveries/delivery-protocol.ts';
import { RemoteDeliveryStore } from '../../sharing/deliveries/remote-delivery-store.ts';
import { KeyClient } from '../../sharing/keys/key-client.ts';
import type { KeyReply } from '../../sharing/keys/key-protocol.ts';
import { cancellableTimer } from '../../http/idempotency/create-key-store.ts';
import { KeptResponses } from '../../http/idempotency/kept-responses.ts';
import { WriteDigests } from '../../http/idempotency/write-digests.ts';
import { PrimaryQuotas, type NumberedQuotaTerms } from '../../sharing/quotas/primary-quotas.ts';
import { QuotaClient } from '../../sharing/quotas/quota-client.ts';
import { backgroundTimer } from '../sharing/background-timer.ts';
import type { LimitUpdates } from '../../sharing/workers/worker-protocol.ts';
import { answerQuery, createQueryHandlers } from './worker-query-handlers.ts';
import { EarlyMessages } from './early-messages.ts';
import { createCoalescedTimer } from './coalesced-timer.ts';
import { hostClock } from './host-clock.ts';
import type { MessageFromWorker, WorkerQuery, WorkerQueryName, ReloadMessage, WorkerStart } from './worker-messages.ts';
import { serializeError, isCommand, isToWorker } from './worker-messages.ts';
import type { WorkerMembership } from '../worker-membership.ts';

/** A worker that serves. */
export interface RunningWorker {
  readonly logger: Logger;
  /** Resolves when the worker is to end: on a message of the primary, or because the primary has exited. */
  readonly shutdown: Promise<'drain' | 'close'>;
  end(how: 'drain' | 'close'): Promise<void>;
}

type ExposedParts = Parameters<WorkerMembership['exposeToPrimary']>;

/**
 * Serves as one of several workers, as the primary at the other end of the channel directs.
 * @returns undefined when it could not start: the primary has received the error, or has exited
 */
export async function startWorker(): Promise<RunningWorker | undefined> {
  const messages = new PrimaryMessages();
  const start = await messages.start;
  if (start === undefined) return undefined;
  const logOutput = new StdoutDestination(start.config.log.buffer, true);
  const { level, format } = start.config.log;
  const logger = createLogger({ level, destination: logDestination(logOutput, format, process.env) }).child({
    instance: start.instance,
    worker: start.worker,
  });
  const limitClient = new LimitClient({
    schedule: createCoalescedTimer(() => limitClient.flush(hostClock.now())),
    send: (report) => sendToPrimary({ type: 'report', report }),
  });
  messages.updates.attach((updates) => limitClient.onUpdates(updates, hostClock.now()));
  const keys = new KeyClient({
    clock: hostClock,
    send: (operations) => sendToPrimary({ type: 'keys', operations }),
    schedule: setImmediate,
    after: cancellableTimer,
  });
  messages.keyReplies.attach((reply) => keys.onReply(reply));
  const deliveries = new RemoteDeliveryStore({
    send: (operations) => sendToPrimary({ type: 'deliveries', operations }),
    schedule: setImmediate,
  });
  messages.deliveryReplies.attach((replies) => deliveries.onReplies(replies));
  const quotas = new PrimaryQuotas({
    send: (call) => sendToPrimary({ type: 'quota', call }),
    schedule: setImmediate,
  });
  messages.quotaTerms.attach((terms) => quotas.onTerms(terms));
  process.once('disconnect', () => {
    quotas.onKeeperGone();
    keys.onKeeperGone();
    deliveries.onKeeperGone();
  });
  let generation = 0;
  const exposed = Promise.withResolvers<ExposedParts>();
  try {
    const starting = startApp(start.config, {
      logger,
      logOutput,
      version: start.version,
      membership: {
        worker: start.worker,
        instance: start.instance,
        clock: hostClock,
        limitClient,
        quotaClient: new QuotaClient({
          clock: hostClock,
          call: quotas.call,
          schedule: backgroundTimer,
          isKeeperForgetful: false,
        }),
        secret: start.config.secret ?? '',
        openWrites: start.reportsOpenWrites ? keys : undefined,
        deliveries: start.storesDeliveries ? deliveries : undefined,
        writeKeys: {
          keys,
          digests: new WriteDigests(Buffer.from(start.keySecret)),
          responses: new KeptResponses(keys.responses),
        },
        practiceUrl: start.practiceUrl,
        ticketKeys: Buffer.from(start.ticketKeys),
        onFailure: (upstream, failure) => sendToPrimary({ type: 'failure', upstream, failure }),
        onSettled: () => sendToPrimary({ type: 'settled', generation }),
        overrides: start.overrides,
        exposeToPrimary: (...parts) => exposed.resolve(parts),
      },
    });
    // Only the primary can give it a listening socket. Node never reports that it does not, and a connection to Redis keeps the process.
    const app = await Promise.race([starting, messages.disconnected]);
    if (app === undefined) return undefined;
    sendToPrimary({ type: 'listening', url: app.url });
    const [registry, processApi, ...shared] = await exposed.promise;
    const reload = async (next: ReloadMessage): Promise<void> => {
      generation = next.generation;
      // A reload does not change where it listens.
      const config = { ...next.config, listen: start.config.listen };
      const result = await app.apply({ config, substituted: new Map() });
      for (const override of next.overrides) await processApi.applyOverride(override);
      const problem = result.kind === 'refused' ? result.problem : undefined;
      sendToPrimary({ type: 'reloaded', generation: next.generation, problem });
    };
    let reloading = Promise.resolve();
    messages.reloads.attach((each) => {
      reloading = reloading.then(() => reload(each));
    });
    const queryHandlers = createQueryHandlers(registry, processApi, ...shared);
    messages.queries.attach((query) => {
      // A command sent after a reload may concern an upstream that is new with it.
      const ready = isCommand(query.name) ? reloading : Promise.resolve();
      void ready.then(async () => sendToPrimary(await answerQuery(queryHandlers, query, logger)));
    });
    return {
      logger,
      shutdown: messages.shutdown,
      // The primary has already waited for `drain.delay`.
      end: async (how) => {
        await (how === 'drain' ? app.drain(0) : app.close());
        keys.flush();
        deliveries.flush();
        await sendAndFlush({ type: 'settled', generation }); // after the messages before it
      },
    };
  } catch (error) {
    await sendAndFlush({ type: 'failed', failure: serializeError(error) });
    return undefined;
  }
}

/** The primary's messages, by type. */
class PrimaryMessages {
  readonly start: Promise<WorkerStart | undefined>;
  readonly shutdown: Promise<'drain' | 'close'>;
  /** Resolves when the primary has exited. */
  readonly disconnected: Promise<undefined>;
  readonly updates = new EarlyMessages<LimitUpdates>();
  readonly keyReplies = new EarlyMessages<KeyReply>();
  readonly deliveryReplies = new EarlyMessages<readonly DeliveryReply[]>();
  readonly quotaTerms = new EarlyMessages<NumberedQuotaTerms>();
  readonly reloads = new EarlyMessages<ReloadMessage>();
  readonly queries = new EarlyMessages<WorkerQuery<WorkerQueryName>>();

  constructor() {
    const started = Promise.withResolvers<WorkerStart | undefined>();
    const over = Promise.withResolvers<'drain' | 'close'>();
    this.start = started.promise;
    const gone = Promise.withResolvers<undefined>();
    this.shutdown = over.promise;
    this.disconnected = gone.promise;
    process.on('message', (message: unknown) => {
      if (!isToWorker(message)) return;
      switch (message.type) {
        case 'start':
          return started.resolve(message.start);
        case 'updates':
          return this.updates.add(message.updates);
        case 'key':
          return this.keyReplies.add(message.reply);
        case 'deliveries':
          return this.deliveryReplies.add(message.replies);
        case 'quota':
          return this.quotaTerms.add(message.terms);
        case 'reload':
          return this.reloads.add(message);
        case 'question':
          return this.queries.add(message);
        case 'drain':
        case 'close':
          return over.resolve(message.type);
      }
    });
    // Node 24 ends a worker at once when its primary has exited, unless this is set (lib/internal/cluster/child.js).
    Object.assign(cluster.worker ?? {}, { exitedAfterDisconnect: true });
    // Node confirms each connection that the primary hands over. If the primary has just been killed, that fails with EPIPE, and without
    // a listener the worker would end with its requests. A `disconnect` follows.
    cluster.worker?.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && error.code !== 'ERR_IPC_CHANNEL_CLOSED') throw error;
    });
    // Without the primary there are no more tokens and no new connections.
    process.once('disconnect', () => {
      started.resolve(undefined);
      over.resolve('drain');
      gone.resolve(undefined);
    });
  }
}

/** Does nothing but call `onSent` if the primary has exited. */
function sendToPrimary(message: MessageFromWorker, onSent?: () => void): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => onSent?.());
  else onSent?.();
}

function sendAndFlush(message: MessageFromWorker): Promise<void> {
  return new Promise((resolve) => {
    sendToPrimary(message, resolve);
  });
}
