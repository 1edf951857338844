import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const BEGIN = '<!-- control:begin -->';
const END = '<!-- control:end -->';

export const INTRODUCTION = `## Control

How much of a hidden limit is used, and what finding it costs. In virtual time, with the proxy's own exchange, gate and
queue; only who decides when a request leaves is exchanged. Everybody meets the same upstreams, the same clients and the
same retries. The rules of ours were tuned on seeds 1 to 8; these are others: five for ours, two for the rest.

\`\`\`sh
npm run bench:control                                # some minutes; ends with 1 when a goal is missed
npm run bench:control -- --rows step --seeds 1       # some rows
npm run bench:control -- --ablations                 # ours without one rule at a time
npm run bench:control -- --markdown docs/benchmarks.md
\`\`\`

Ten clients offer twice the limit, unless the row says otherwise. *Goodput*: successes ÷ what the limit, or the demand if
that is less, would have allowed. *Waste*: answers 429 and 5xx of the upstream ÷ successes. In parentheses: the worst seed.

| | what it does |
| --- | --- |
| \`none\` | sends at once, retries 429 and 5xx with backoff, four sends at most |
| \`backoff\` | the same, but every retry is paid from a budget, and a Retry-After holds the client |
| \`aimd\` | in each client: a paced rate, +1/s every second, half on a rejection |
| \`aws-cubic\` | in each client: the adaptive retry mode of the AWS SDKs |
| \`sre\` | in each client: the adaptive throttling of Google's SRE book, K = 2 |
| \`netflix-aimd\`, \`netflix-vegas\` | shared: the concurrency limits of Netflix, which refuse what finds no place |
| \`oracle\` | is told the limit and paces by it, through the same queue; waits as ours does |

What these were made for is not always what they are measured by here. Concurrency limits guard a server that slows down
under load; these upstreams do not, and service times vary at random, which Vegas takes for a queue. Where nothing succeeds,
waste is ∞.
`;

/** Puts the text between the markers of the file, or at its end, or makes the file. */
export function writeSection(path: string, text: string): void {
  const old = existsSync(path) ? readFileSync(path, 'utf8') : '# Benchmarks\n';
  const section = `${BEGIN}\n${text}\n${END}`;
  const begin = old.indexOf(BEGIN);
  const end = old.indexOf(END);
  const isThere = begin >= 0 && end > begin;
  const whole = isThere ? old.slice(0, begin) + section + old.slice(end + END.length) : `${old}\n${section}\n`;
  writeFileSync(path, whole);
}
