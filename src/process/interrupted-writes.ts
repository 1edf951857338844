import type { Logger } from 'pino';
import type { EventSink } from '../core/events/proxy-events.ts';
import type { OpenWrite, OpenWriteLog } from '../core/idempotency/open-writes.ts';
import type { GroupCommit } from '../store/sqlite/group-commit.ts';

/** Writes that a step reports at most. The smallest `log.buffer` has room for their lines. */
const MAX_REPORTED = 100;

export interface ReportParts {
  readonly report: (write: OpenWrite) => void;
  /** Calls back once all reports so far are written. */
  readonly flush: (done: () => void) => void;
  readonly openWrites: Pick<OpenWriteLog, 'onEnd'>;
  readonly commit: Pick<GroupCommit, 'nextStep'>;
  readonly onDone: () => void;
}

/**
 * Reports the open writes of an earlier process in steps. A write stays in the database until its report is written, and the next
 * step waits until the writes of this one are deleted. So if this process is killed, the next one reports all that this one has
 * not. It repeats the reports of one step if this process was killed after they were written and before their deletion was stored.
 */
export function reportInSteps(writes: readonly OpenWrite[], parts: ReportParts, start = 0): void {
  const end = start + MAX_REPORTED;
  const step = writes.slice(start, end);
  if (step.length === 0) return parts.onDone();
  for (const write of step) parts.report(write);
  parts.flush(() => {
    for (const { requestId } of step) parts.openWrites.onEnd(requestId);
    parts.commit.nextStep(() => reportInSteps(writes, parts, end));
  });
}

/**
 * The process of this write has ended, and nobody here knows its outcome.
 * @param mayBeAnswered its primary ended before its worker, which may have answered it but could not tell
 */
export function reportInterrupted(
  { route, upstream, requestId, method, sentAt }: OpenWrite,
  logger: Logger,
  listen: EventSink,
  mayBeAnswered = false,
): void {
  const fields = { route, upstream, requestId, method, sentAt: new Date(sentAt).toISOString() };
  const message = mayBeAnswered
    ? 'a write without an idempotency key was under way when its primary ended: its worker may have answered it'
    : 'a write without an idempotency key was interrupted: its outcome is unknown';
  logger.warn(fields, message);
  listen({ type: 'write-interrupted', route });
}
