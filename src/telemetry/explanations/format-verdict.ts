import type { Step } from '../../core/exchange/exchange-observer.ts';
import type { Story } from './explanation-record.ts';
import { originOf } from './explanation-record.ts';
import { RETRY_ENDS } from './format-attempt.ts';
import { becauseOf } from './format-decision.ts';
import { count } from './format-values.ts';

/** How it ended for its client, in words. */
export function tellVerdict(story: Story): string {
  const { record, steps = [] } = story;
  const { outcome, status, attempts, polls, reason, detail, wouldHave, wouldRetry } = record;
  const parts: string[] = [];
  switch (outcome) {
    case 'forwarded':
      parts.push(
        status === 0
          ? 'forwarded'
          : `forwarded: the upstream’s ${status}${polls === undefined ? '' : `, at poll ${polls}`}`,
      );
      break;
    case 'recovered':
      parts.push(`recovered: the upstream’s ${status}, at attempt ${attempts}`);
      break;
    case 'checked':
      parts.push(`let pass${reason === undefined ? '' : ` (${reason})`}: whoever asked sends it`);
      break;
    case 'preflight':
      parts.push(`a preflight, answered here with ${status}`);
      break;
    case 'refused':
    case 'queue_timeout':
      parts.push(`refused with ${status} (${reason})${detail === undefined ? '' : `: ${bare(detail)}`}`);
      break;
    case 'upstream_error':
      parts.push(`failed, told as ${status} (${reason})${detail === undefined ? '' : `: ${bare(detail)}`}`);
      break;
    case 'unknown':
      parts.push(
        `unknown, told as ${status}: it may have taken effect${detail === undefined ? '' : `. ${bare(detail)}`}`,
      );
      break;
    case 'client_gone':
      parts.push(`the client went away${whileWhat(steps)}`);
      break;
  }
  parts.push(...tellNotRetried(record), ...tellBack(story));
  if (record.cut) parts.push('the body was cut short');
  if (wouldHave !== undefined && wouldHave.decision !== 'passed') {
    parts.push(
      `observed: it would have been ${wouldHave.decision}${wouldHave.why === undefined ? '' : ` (${wouldHave.why})`}`,
    );
  }
  if (wouldRetry !== undefined) parts.push(`observed: it would have been sent again (${wouldRetry})`);
  return parts.join('; ');
}

function tellNotRetried({ retryEnd, attempts, outcome }: Story['record']): string[] {
  if (retryEnd === undefined || retryEnd === 'success' || outcome === 'client_gone') return [];
  const after = attempts > 1 ? ` after ${count(attempts, 'attempt', 'attempts')}` : '';
  return [`not sent again${after}: ${RETRY_ENDS[retryEnd]}`];
}

function tellBack(story: Story): string[] {
  const { record, steps = [] } = story;
  const { retryAfter, retryAfterFrom } = record;
  if (retryAfterFrom === 'upstream') {
    return [
      `Retry-After of the upstream: ${retryAfter === undefined ? 'not one that can be read' : `${retryAfter} s`}`,
    ];
  }
  if (retryAfter === undefined) return [];
  if (record.outcome === 'forwarded') return [`Retry-After of Tidegate: ${retryAfter} s, as the upstream gave none`];
  const decided = steps.findLast(
    (step) => (step.what === 'decided' || step.what === 'dequeued') && step.why !== undefined,
  );
  const because =
    (decided?.what === 'decided' || decided?.what === 'dequeued') && decided.grounds !== undefined
      ? becauseOf(decided.why, decided.grounds, originOf(story))
      : undefined;
  return [`told to come back in ${retryAfter} s${because === undefined ? '' : `, because ${because}`}`];
}

const WHILES = {
  body: 'its body was read',
  claim: 'it waited for another request with its idempotency key',
  queue: 'it waited for its turn',
  attempt: 'the upstream was awaited',
  wait: 'it waited to be sent again',
} as const;

function whileWhat(steps: readonly Step[]): string {
  const gone = steps.findLast((step) => step.what === 'gone');
  return gone?.what === 'gone' ? ` while ${WHILES[gone.during]}` : '';
}

/** Without the full stop. */
function bare(detail: string): string {
  return detail.replace(/\.$/, '');
}
