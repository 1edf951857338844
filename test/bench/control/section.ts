import { existsSync, readFileSync, writeFileSync } from 'node:fs';

export const INTRODUCTION = `## Control

How much of a hidden limit is used, and what finding it costs. In virtual time, with the proxy's own exchange, gate and
queue; only who decides when a request leaves is exchanged. Everybody meets the same upstreams, the same clients and the
same retries. Rules and constants of ours were chosen with seeds below 800; these are others: five for ours, two for the rest.
Goals of the adverse rows were set after figures of other seeds had been seen: they guard against getting worse, and prove
nothing.

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
| \`oracle\` | knows the limit and paces by it, through the same queue; its waits are as long as ours |

What these were made for is not always what they are measured by here. Concurrency limits guard a server that slows down
under load; these upstreams do not, and service times vary at random, which Vegas takes for a queue. Where nothing succeeds,
waste is ∞.
`;

export const ABOUT_ABLATIONS = `## Control, without one rule at a time

What each rule of the adaptive rate is worth, and each part around it: the same rows, with one rule left out or made
simpler. The first line leaves out nothing: with other chance, the same rules do that much better or worse. What changes
no more than that buys nothing here.

\`\`\`sh
npm run bench:control -- --ablations --markdown docs/benchmarks.md
\`\`\`
`;

/** Writes the text between the markers of that name; appends it, or creates the file, if they are missing. */
export function writeSection(path: string, name: string, text: string): void {
  const opening = `<!-- ${name}:begin -->`;
  const closing = `<!-- ${name}:end -->`;
  const old = existsSync(path) ? readFileSync(path, 'utf8') : '# Benchmarks\n';
  const section = `${opening}\n${text}\n${closing}`;
  const begin = old.indexOf(opening);
  const end = old.indexOf(closing);
  const isThere = begin >= 0 && end > begin;
  const whole = isThere ? old.slice(0, begin) + section + old.slice(end + closing.length) : `${old}\n${section}\n`;
  writeFileSync(path, whole);
}
