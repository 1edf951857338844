import { existsSync, readFileSync, writeFileSync } from 'node:fs';

export const INTRODUCTION = `## Control

This section shows the share of a hidden limit that each controller uses, and the rejections that it causes. The runs are in virtual
time, with the exchange, gate and queue of the proxy. Only the controller, which decides when a request is sent, differs. All
controllers have the same upstreams, clients and retries. The rules and constants of Tidegate were chosen with seeds below 800. The
runs use other seeds: five for Tidegate, two for each other controller. The goals of the adverse rows were set after runs with other
seeds, so they only show that nothing became worse.

<!-- tried: by bench -->
\`\`\`sh
npm run bench:control                                # some minutes; exits with 1 when a goal is missed
npm run bench:control -- --rows step --seeds 1       # some rows
npm run bench:control -- --ablations                 # Tidegate without one rule at a time
npm run bench:control -- --markdown docs/benchmarks.md
\`\`\`

Ten clients offer twice the limit, unless the row says otherwise. *Goodput*: successes ÷ the successes that the limit allows, or ÷ the
demand if that is less. *Waste*: 429 and 5xx responses of the upstream ÷ successes. The worst seed is in parentheses.

| | what it does |
| --- | --- |
| \`none\` | sends at once, and retries 429 and 5xx with backoff, with four attempts at most |
| \`backoff\` | the same, but a budget limits retries, and a Retry-After holds the client |
| \`aimd\` | in each client: a paced rate, +1/s every second, half on a rejection |
| \`aws-cubic\` | in each client: the adaptive retry mode of the AWS SDKs |
| \`sre\` | in each client: the adaptive throttling of Google's SRE book, K = 2 |
| \`netflix-aimd\`, \`netflix-vegas\` | shared: the concurrency limits of Netflix, which refuse a request above the limit |
| \`oracle\` | knows the limit and paces by it, through the same queue; its waits are as long as ours |

Some of these controllers were made for another purpose. Concurrency limits protect a server that slows down under load. These
upstreams do not slow down, and their service times vary at random, which Vegas interprets as a queue. Waste is ∞ if nothing succeeds.
`;

export const ABOUT_ABLATIONS = `## Control, without one rule at a time

This section shows the value of each rule of the adaptive rate, and of each part around it: the same rows, with one rule removed or
simplified. The first line removes nothing; it only uses other random numbers, so it shows the noise. A rule whose removal changes no
more than that has no value in these rows.

<!-- tried: by bench -->
\`\`\`sh
npm run bench:control -- --ablations --markdown docs/benchmarks.md
\`\`\`
`;

export const ABOUT_SERVICES = `## Services that become slow

Most services reject nothing: under too much load, requests wait at the service. This section compares controllers at such services, in
virtual time ([simulator.md](simulator.md#simulate-a-service-that-becomes-slow)). \`tidegate+latency\` is Tidegate with
\`rateLimit.learnFromLatency\`: where latency has doubled, it tests whether fewer requests in flight bring as many responses a second
([control.md](control.md#learn-from-latency-latency-limiterts)).

<!-- tried: by bench -->
\`\`\`sh
npm run bench:control -- --services --markdown docs/benchmarks.md
\`\`\`

Three seeds. A cell has the goodput; the p99 of the wait at the upstream in milliseconds; and the share of attempts that the upstream
works on after their timeout.

| | what it does |
| --- | --- |
| \`none\` | sends at once |
| \`netflix-vegas\`, \`netflix-gradient2\` | the concurrency limits of Netflix, by the least and by the usual latency |
| \`envoy\` | the gradient controller of Envoy's adaptive concurrency filter |
| \`bbr\` | the greatest delivery rate × the least latency, as TCP BBR |
| \`cinnamon\` | the concurrency limit of Uber's Cinnamon, without its priorities |
| \`failsafe\` | the adaptive limiter of failsafe-go |
| \`oracle\` | keeps as many requests in flight as use the service fully |
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
