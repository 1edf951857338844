/**
 * nginx's access log: `combined`, with fields behind it (https://nginx.org/en/docs/http/ngx_http_log_module.html). The line is
 * written at the end of a request.
 *
 *     log_format tidegate '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
 *                         '"$http_referer" "$http_user_agent" $request_time $upstream_response_time $msec';
 */
import type { Millis } from '../../../core/scalars.ts';
import type { LogFormat } from './log-format.ts';
import type { AccessRecord } from './access-record.ts';
import { parseRequestLine, parseSeconds, toLoggedRequest } from './access-record.ts';

const COMBINED =
  /^(\S+) \S+ [^[]*\[(\d{2}\/[A-Z][a-z]{2}\/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4})\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:\d+|-)(?: "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*")?(.*)$/;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** A number of seconds since 1970 is no duration. */
const EPOCH = 1e9;

export const NGINX: LogFormat = { parse: parseNginx, describeProblem, hasHeader: false };

/** Whether a line begins as nginx's does. */
export function isNginx(line: string): boolean {
  return COMBINED.test(line);
}

function parseNginx(text: string, line: number): ReturnType<LogFormat['parse']> {
  const match = COMBINED.exec(text.trimEnd());
  if (match === null) return 'none';
  const [, client = '', time = '', request = '', status = '', rest = ''] = match;
  const local = parseLocalTime(time);
  if (local === undefined) return 'none';
  const { took, service, ended = local, isRetried } = parseTimes(rest);
  const record: AccessRecord = {
    at: ended - (took ?? 0),
    client,
    status: Number(status),
    ...parseRequestLine(request),
    took,
    service: isRetried ? undefined : (service ?? took),
  };
  return toLoggedRequest(record, line);
}

/**
 * The fields behind `combined`, by their form, because their order is free: `$msec` is a time since 1970; of the others, the first is
 * `$request_time` and the second `$upstream_response_time`, unless named (`rt=0.012 urt="0.011"`). Several attempts (`0.1, 0.2`) have no
 * time of the upstream.
 */
function parseTimes(rest: string): {
  readonly took?: Millis | undefined;
  readonly service?: Millis | undefined;
  readonly ended?: Millis;
  readonly isRetried: boolean;
} {
  let [took, service, ended]: (Millis | undefined)[] = [];
  let hasRequestTime = false;
  // `0.100, 0.150` and, after an internal redirect, `0.100 : 0.150`.
  const fields = rest.replaceAll(', ', ',').replaceAll(' : ', ',');
  const isRetried = /\d\.\d{3},\d/.test(fields);
  for (const [, name = '', quoted, plain = ''] of fields.matchAll(/(?:([\w-]+)=)?(?:"([^"]*)"|([^\s"|]+))/g)) {
    const value = parseSeconds(quoted ?? plain);
    if (/^(?:rt|request_time)$/.test(name)) took = value;
    else if (/^(?:urt|upstream_response_time)$/.test(name)) service = value;
    else if (name !== '' || !/^(?:\d+\.\d{3}(?:,\d+\.\d{3})*|-)$/.test(quoted ?? plain)) continue;
    else if (value !== undefined && value >= 1000 * EPOCH) ended = value;
    else if (hasRequestTime) service ??= value;
    else [took, hasRequestTime] = [took ?? value, true];
  }
  return { took, service, isRetried, ...(ended === undefined ? {} : { ended }) };
}

/** `10/Oct/2000:13:55:36 -0700` */
function parseLocalTime(text: string): Millis | undefined {
  const [, day = '', month = '', year = '', clock = '', zone = ''] =
    /^(\d+)\/(\w+)\/(\d+):([\d:]+) ([+-]\d{4})$/.exec(text) ?? [];
  const index = MONTHS.indexOf(month) + 1;
  const time = Date.parse(
    `${year}-${String(index).padStart(2, '0')}-${day}T${clock}${zone.slice(0, 3)}:${zone.slice(3)}`,
  );
  return Number.isNaN(time) ? undefined : time;
}

function describeProblem(text: string): string {
  return `is '${text.slice(0, 40)}': expected nginx's combined format, best with $request_time, $upstream_response_time and $msec behind it`;
}
