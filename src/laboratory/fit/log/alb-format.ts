/**
 * The access log of an AWS Application Load Balancer
 * (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html): `time` is the response's,
 * `request_creation_time` the arrival; the three processing times are in seconds, −1 without one.
 */
import type { LogFormat } from './log-format.ts';
import { parseRequestLine, parseSeconds, toLoggedRequest, withoutPort } from './access-record.ts';

const ENTRY =
  /^(?:https?|h2|grpcs|wss?) (\d{4}-\d\d-\d\dT[\d:.]+Z) (\S+) (\S+) (\S+) (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) (\d{3}|-) (\d{3}|-) \d+ \d+ "([^"]*)"(.*)$/;
/** Behind the request: the user agent, cipher, protocol, target group, trace, domain, certificate and rule, then the arrival. */
const CREATED = /" (?:\d+|-) (\d{4}-\d\d-\d\dT[\d:.]+Z) "/;

export const ALB: LogFormat = { parse: parseAlb, describeProblem, hasHeader: false };

/** Whether a line begins as an entry of an ALB does. */
export function isAlb(line: string): boolean {
  return ENTRY.test(line);
}

function parseAlb(text: string, line: number): ReturnType<LogFormat['parse']> {
  const match = ENTRY.exec(text);
  if (match === null) return 'none';
  const [
    ,
    time = '',
    ,
    client = '',
    target = '',
    first,
    second,
    third,
    status = '',
    targetStatus = '',
    request = '',
    rest = '',
  ] = match;
  const ended = Date.parse(time);
  const parts = [first, second, third].map(parseSeconds);
  const [waited, served, sent] = parts;
  const isTimed = waited !== undefined && served !== undefined && sent !== undefined;
  const took = isTimed ? waited + served + sent : undefined;
  const created = Date.parse(CREATED.exec(rest)?.[1] ?? '');
  const at = Number.isNaN(created) ? ended - (took ?? 0) : created;
  if (Number.isNaN(at)) return 'none';
  return toLoggedRequest(
    {
      at,
      client: withoutPort(client),
      status: status === '-' ? 0 : Number(status),
      ...parseRequestLine(request),
      took: took ?? (Number.isNaN(ended) ? undefined : Math.max(0, ended - at)),
      service: served,
      // The load balancer's own 503: no target.
      isUnreached: targetStatus === '-' && target === '-',
    },
    line,
  );
}

function describeProblem(text: string): string {
  return `is '${text.slice(0, 40)}': expected an entry of an Application Load Balancer, type time elb client:port target:port …`;
}
