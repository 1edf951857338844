/** What `tidegate help` prints. */
export type CommandName = (typeof COMMAND_NAMES)[number];

export const COMMAND_NAMES = [
  'serve',
  'check',
  'schema',
  'explain',
  'diff',
  'schema',
  'backoff',
  'lab',
  'simulate',
  'demo',
  'top',
  'help',
  'version',
] as const;

const OVERVIEW = `Tidegate: an HTTP reverse proxy that learns an upstream's limit, paces and shares it,
and retries only what is safe to retry.

usage: tidegate [COMMAND] [OPTIONS]

  serve            serve clients, as a file or --upstream says; the default
  check FILE       say what is wrong with a configuration, or print what it comes to
  diff OLD NEW     what a reload would change, what it would not, and what becomes of what was learned
  schema           the JSON Schema of the configuration, for editors
  explain ID       why a request ended as it did: the id is its answer's Tidegate-Request-Id
  backoff NAME     what a backoff strategy will do, or several side by side; without a name, all of them
  lab STUDY        experiments on backoff: contention, aloha, ethernet, thundering-herd, fit
  simulate NAME    a scenario in virtual time, with the proxy's own policy
  demo             a practice upstream, the proxy and traffic, in one process
  top              what a running Tidegate does, live in the terminal
  help [COMMAND]   this, or more about a command
  version          the version

The quickest start: tidegate --upstream https://api.example.com
`;

const TOPICS: Readonly<Record<CommandName, string>> = {
  serve: `usage: tidegate [serve] [--config FILE] [--upstream URL] [OPTIONS]

  --config FILE        the configuration (TIDEGATE_CONFIG)
  --upstream URL       the upstream: alone, or instead of the file's (TIDEGATE_UPSTREAM)
  --listen ADDRESS     where clients connect; host:port, [::]:port or unix:/path (TIDEGATE_LISTEN)
  --admin ADDRESS      where the admin port listens; false turns it off (TIDEGATE_ADMIN)
  --client-key LIST    what tells clients apart, tried in order: header:NAME, bearer, ip, path:N
  --log-level LEVEL    trace, debug, info, warn, error, fatal or silent

TIDEGATE_REDIS_URL has replicas share what they know through Redis: state.url of the file, with store: redis.

Flags come before variables, variables before the file.
SIGTERM drains; a second one ends at once. SIGHUP reads the configuration again, and so does a change of its file.
`,
  check: `usage: tidegate check FILE

Prints the configuration in effect, its worst cases and its warnings, and exits with 0;
or everything that is wrong with it, each with its place, and exits with 1.
Secrets are not printed.
`,
  diff: `usage: tidegate diff OLD NEW [--json]

  --json        the changes as one JSON object

Tells what differs between two configurations in effect: routes, upstreams, each setting from old to new, what needs
a restart, and what becomes of what was learned. Exits with 0 when they come to the same, 1 when they differ, and
2 when one of them cannot be read or is not sound. Secrets are not printed.
`,
  schema: `usage: tidegate schema

Prints the JSON Schema of the configuration. An editor with the YAML language server takes it from a first line
  # yaml-language-server: $schema=tidegate.schema.json
`,
  explain: `usage: tidegate explain ID [--admin URL] [--token TOKEN] [--json]

  --admin URL      the admin port of the proxy: http://host:port, host:port or unix:/path;
                   127.0.0.1:9901 unless given (TIDEGATE_ADMIN)
  --token TOKEN    its token, where it has one; TIDEGATE_ADMIN_TOKEN keeps it out of the list of processes
  --json           the explanation as one JSON object

Tells what was decided of a request, with the numbers behind it, what each attempt came to, and why it waited.
The id is in its answer (Tidegate-Request-Id) and in its line of the log. docs/explain.md says which stories are kept.
`,
  backoff: `usage: tidegate backoff [NAME...] [OPTIONS]

  --base DURATION         the first delay, or the unit delays grow from
  --multiplier N          how much longer each delay is than the one before
  --max DURATION          the longest delay
  --jitter N | DURATION   a part from 0 to 1, or the most that additive-jitter adds
  --exponent N            the power of polynomial
  --table N,N,…           slots to choose from, retry after retry
  --slot DURATION         the length of a slot, of ethernet and table
  --attempts N            how many delays to show
  --json                  rows as JSON, in milliseconds; of several names, by name
  --svg FILE              draws them

What is left out is the strategy's own default. Several names are compared side by side. Without a name, lists the
strategies. What each is good for is in docs/backoff.md.
`,
  lab: `usage: tidegate lab contention [STRATEGY...] [--n N,N,…] [--trials N]
       tidegate lab aloha [--slots N]
       tidegate lab aloha --n USERS --load LOAD --k K
       tidegate lab aloha [STRATEGY...] --n USERS --load LOAD [--table N,N,…] [--slots N]
       tidegate lab ethernet [--n N,N,…] [--frame BYTES] [--load PART] [--seconds N]
       tidegate lab thundering-herd [STRATEGY...] [--n N] [--limit RATE] [--burst N] [--trials N]
       tidegate lab fit LOG [SCENARIO...] [--limit RATE] [--burst N]

  --seed N      another run of the same: a whole number from 0; 1 unless given
  --json        one object
  --svg FILE    draws it

contention: clients write to one row, by strategy: calls and time. aloha: what comes through of what is sent at random;
with --k, Lam's Markov chain of a slotted channel; with --n and --load, the same channel simulated with strategies, whose
delays of 1ms are a slot. ethernet: stations on a segment with truncated binary backoff. thundering-herd: refused
clients come back, by what their refusals say and by strategy. fit: plays the traffic of a log (ours, or CSV with time,
client, status, and perhaps method, path and ms; sorted by time) through policies, that of each SCENARIO too.
Strategies take --base, --max and what else tidegate backoff takes. Equal seeds give equal figures. Ctrl-C shows what
there is by then. More in docs/backoff.md.
`,
  simulate: `usage: tidegate simulate FILE|NAME [OPTIONS]
       tidegate simulate --list

  --list        the scenarios that come with the program
  --seed N      another run of the same scenario: a whole number from 0
  --json        the report as one JSON object; a rate without a limit is null
  --svg FILE    draws rate, queue and waste over time
  --check       exits with 1 when a goal of the scenario is missed

Runs a scenario in virtual time, with the exchange, the gate and the queues of the proxy and a model of an upstream.
Equal files and seeds give equal reports. What a scenario can say is in docs/simulator.md.
`,
  demo: `usage: tidegate demo [--listen ADDRESS] [--admin ADDRESS]

Starts a practice upstream, the proxy in front of it, and traffic.
`,
  top: `usage: tidegate top [--admin URL] [--token TOKEN] [--once]

  --admin URL      its admin port: http://127.0.0.1:9901 unless given (TIDEGATE_ADMIN)
  --token TOKEN    where that port asks for it (TIDEGATE_ADMIN_TOKEN, which others on the machine cannot see)
  --once           prints what there is, and ends; so it does where the output is no terminal

Shows upstreams, clients by trouble and what happened. q or Ctrl-C leaves; NO_COLOR is kept to.
`,
  help: `usage: tidegate help [COMMAND]
`,
  version: `usage: tidegate version
`,
};

export function helpText(topic?: CommandName): string {
  return topic === undefined ? OVERVIEW : TOPICS[topic];
}
