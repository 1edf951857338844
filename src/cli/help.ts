/** The text of `tidegate help`. */
export type CommandName = (typeof COMMAND_NAMES)[number];

export const COMMAND_NAMES = [
  'serve',
  'check',
  'diff',
  'schema',
  'explain',
  'clients',
  'keys',
  'deliveries',
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

  serve            run the proxy with a configuration file or --upstream; the default command
  check FILE       validate a configuration; print its warnings, worst cases and, with --full, every setting
  diff OLD NEW     show what a reload would change, and what needs a restart
  schema           print the JSON Schema of the configuration, for editors
  explain ID       explain why a request ended as it did; ID is the Tidegate-Request-Id of its response
  clients ACTION   create, list or remove the API keys of clients
  keys ACTION      list, show or forget the idempotency keys that a running Tidegate remembers
  deliveries ACTION
                   list, show, retry, cancel or export the deliveries that a running Tidegate stores
  backoff NAME     show the delays of a backoff strategy, or compare several; without a NAME, list them
  lab STUDY        run experiments on backoff: contention, aloha, ethernet, thundering-herd, fit
  simulate NAME    run a scenario in virtual time, with the code of the proxy
  demo             run a practice upstream, the proxy and traffic in one process
  top              show a running Tidegate live in the terminal
  help [COMMAND]   print this overview, or the help of a command
  version          print the version

Quick start: tidegate --upstream https://api.example.com
`;

const TOPICS: Readonly<Record<CommandName, string>> = {
  serve: `usage: tidegate [serve] [--config FILE] [--upstream URL] [OPTIONS]

  --config FILE        configuration file (TIDEGATE_CONFIG)
  --upstream URL       the only upstream, or a replacement for that of the file (TIDEGATE_UPSTREAM)
  --listen ADDRESS     address for clients: host:port, [::]:port, unix:/path, or a port of 127.0.0.1 (TIDEGATE_LISTEN)
  --admin ADDRESS      address of the admin port, in the same forms; false disables it (TIDEGATE_ADMIN)
  --client-key LIST    how to identify clients, tried in order: header:NAME, bearer, ip, path:N
  --log-level LEVEL    trace, debug, info, warn, error, fatal or silent

TIDEGATE_REDIS_URL sets state.url and state.store: redis, so that replicas share their limits through Redis.

Flags override environment variables, which override the file.
SIGTERM drains; a second SIGTERM exits at once. SIGHUP reloads the configuration, as does a change of its file.
`,
  check: `usage: tidegate check FILE [--full] [--probe]

  --full        also print every setting in effect, as a configuration with the report in its comments
  --probe       also open a connection to each endpoint, without a request; exit with 1 if one accepts none

Prints the verdict and the warnings, then the worst cases, and exits with 0.
If the configuration is invalid, prints every error with its position, and exits with 1.
Secrets are not printed.
`,
  diff: `usage: tidegate diff OLD NEW [--json]

  --json        print the changes as one JSON object

Compares two effective configurations: routes, upstreams, each changed setting, what needs a restart, and what happens to
learned limits. Exits with 0 if they are equal, with 1 if they differ, and with 2 if one of them cannot be read or is
invalid. Secrets are not printed.
`,
  schema: `usage: tidegate schema

Prints the JSON Schema of the configuration. Editors with the YAML language server use it if the first line of the file is
  # yaml-language-server: $schema=tidegate.schema.json
`,
  explain: `usage: tidegate explain ID [--admin URL] [--token TOKEN] [--json]

  --admin URL      admin port of the proxy: http://host:port, host:port, port or unix:/path (TIDEGATE_ADMIN);
                   default: 127.0.0.1:9901
  --token TOKEN    admin token; TIDEGATE_ADMIN_TOKEN keeps it out of the process list
  --json           print the explanation as one JSON object

Explains a request: each decision with its numbers, the result of each attempt, and the reason for each wait.
The ID is in the response (Tidegate-Request-Id) and in the log. docs/explain.md says which requests are recorded.
`,
  clients: `usage: tidegate clients add NAME --file FILE [--expires TIME] [--json]
       tidegate clients list --file FILE [--json]
       tidegate clients remove NAME|ID --file FILE [--json]

  --file FILE     the file of clients.auth.apiKeys.file; add creates it
  --expires TIME  when the key expires: days or hours such as 90d or 12h, or a date such as 2027-06-30; default: never
  --json          print one JSON object

add creates a key for a client, prints it once, and stores only its hash. A client may have several keys. remove takes the
ID of a key, or the NAME of a client for all of its keys. A running Tidegate uses the changed file within a second.
docs/clients.md describes the setup.
`,
  keys: `usage: tidegate keys list [--upstream NAME] [--state STATE] [--oldest] [--limit N] [OPTIONS]
       tidegate keys show ID [OPTIONS]
       tidegate keys show --key KEY [--upstream NAME] [OPTIONS]
       tidegate keys forget ID [OPTIONS]
       tidegate keys forget --key KEY [--upstream NAME] [OPTIONS]

  --state STATE      in_progress, unresolved, answered, or open: in_progress or unresolved
  --upstream NAME    only keys of requests to this upstream
  --key KEY          the key, as the client sent it; other users of the machine see it in the process list
  --oldest           oldest first; default: newest first
  --limit N          at most so many keys, 1 to 500; default: 50
  --admin URL        admin port of the proxy: http://host:port, host:port, port or unix:/path (TIDEGATE_ADMIN);
                     default: 127.0.0.1:9901
  --token TOKEN      admin token, which forget always needs; TIDEGATE_ADMIN_TOKEN keeps it out of the process list
  --json             print one JSON object

Tidegate keeps hashes of keys, and derives the ID from them; log lines have it as \`write\`. Eight first digits of it suffice.
After forget, a request with the key is sent as a new write. A key in use is not forgotten. docs/idempotency.md says when to
use it. With state.store: redis, each replica shows and forgets the keys of all replicas.
`,
  deliveries: `usage: tidegate deliveries list [--state STATE] [--route ROUTE] [--after ID] [--limit N] [OPTIONS]
       tidegate deliveries show ID [--message] [OPTIONS]
       tidegate deliveries retry ID [OPTIONS]
       tidegate deliveries retry --state STATE [--route ROUTE] [--confirm N] [OPTIONS]
       tidegate deliveries cancel ID [OPTIONS]
       tidegate deliveries export [--state STATE] [--route ROUTE] [--after ID] [--message] [OPTIONS]

  --state STATE      waiting, sending, delivered, dead, canceled, unknown, or open: waiting or sending; retry takes dead,
                     canceled or waiting
  --route ROUTE      only deliveries of this route, by its name in metrics: methods, host and path
  --after ID         only deliveries that were accepted after this one
  --limit N          at most N deliveries, 1 to 500; default: 50
  --message          also the stored request, and the response to an async write that is delivered
  --confirm N        retry the deliveries that match, if exactly N do; without it, only count them
  --admin URL        admin port of the proxy: http://host:port, host:port, port or unix:/path (TIDEGATE_ADMIN);
                     default: 127.0.0.1:9901
  --token TOKEN      admin token, which retry, cancel and --message always need; TIDEGATE_ADMIN_TOKEN keeps it out of the
                     process list
  --json             print one JSON object; export always prints one for each delivery, one a line

Lists are in the order of acceptance. retry makes a dead, canceled, waiting or unknown delivery due now, with a new schedule.
With --state, it retries all that match, reports those that it could not retry, and then exits with 1. Before you retry an
unknown write, look it up at the upstream. cancel ends a waiting delivery. See docs/deliveries.md and docs/runbooks.md.
`,
  backoff: `usage: tidegate backoff [NAME...] [OPTIONS]

  --base DURATION         first delay, or the unit from which delays grow
  --multiplier N          factor from each delay to the next
  --max DURATION          maximum delay
  --jitter N | DURATION   share from 0 to 1, or the maximum that additive-jitter adds
  --exponent N            exponent of polynomial
  --table N,N,…           number of slots to choose from, for each retry
  --slot DURATION         length of a slot, for ethernet and table
  --attempts N            number of delays to show
  --json                  print rows as JSON, in milliseconds; several strategies by name
  --svg FILE              draw the delays into a file

Options that are not given have the defaults of the strategy. Several names are compared side by side. Without a name,
lists the strategies. docs/backoff.md says when to use which.
`,
  lab: `usage: tidegate lab contention [STRATEGY...] [--n N,N,…] [--trials N]
       tidegate lab aloha [--slots N]
       tidegate lab aloha --n USERS --load LOAD --k K
       tidegate lab aloha [STRATEGY...] --n USERS --load LOAD [--table N,N,…] [--slots N]
       tidegate lab ethernet [--n N,N,…] [--frame BYTES] [--load PART] [--seconds N]
       tidegate lab thundering-herd [STRATEGY...] [--n N] [--limit RATE] [--burst N] [--trials N]
       tidegate lab fit LOG [SCENARIO...] [--limit RATE] [--burst N]

  --seed N      seed of the random numbers: a whole number from 0; default: 1
  --json        print one JSON object
  --svg FILE    draw the result into a file

contention: clients update one row; calls and time by strategy. aloha: throughput of random access to a channel; with --k,
Lam's Markov chain of a slotted channel; with --n and --load, a simulation of that channel with strategies, where a delay
of 1ms is one slot. ethernet: stations on a segment with truncated binary backoff. thundering-herd: refused clients return,
by Retry-After and by strategy. fit: learns the limit from a log (token bucket, window, requests in flight, or a queue) and
replays its traffic with several policies, including that of each SCENARIO. The log is of Tidegate, nginx, Envoy, Caddy or
ALB, or CSV with time, client, status, and optionally method, path and ms; sorted by time.
Strategies take --base, --max and the other options of tidegate backoff. Equal seeds give equal results. Ctrl-C prints the
results so far. See docs/backoff.md.
`,
  simulate: `usage: tidegate simulate FILE|NAME [OPTIONS]
       tidegate simulate --list

  --list        list the bundled scenarios
  --seed N      seed of the random numbers: a whole number from 0; default: that of the scenario
  --json        print the report as one JSON object; a rate without a limit is null
  --svg FILE    draw rate, queue and waste over time into a file
  --check       exit with 1 if a goal of the scenario is missed

Runs a scenario in virtual time, with the exchange, the gate and the queues of the proxy and a model of an upstream.
Equal files and seeds give equal reports. docs/simulator.md describes the scenario format.
`,
  demo: `usage: tidegate demo [--listen ADDRESS] [--admin ADDRESS]

  --listen ADDRESS   address for clients; default: 127.0.0.1:8080, or a free port if that is in use
  --admin ADDRESS    address of the live page; default: 127.0.0.1:9901, or a free port if that is in use

Runs a practice upstream, the proxy in front of it, and traffic. Prints a line each second: requests offered, responses with
200, requests refused, 429s of the upstream, and the learned rate. A response counts in the second in which it ends, so a
line can have more responses than offered requests. Ctrl-C stops it.
`,
  top: `usage: tidegate top [--admin URL] [--token TOKEN] [--once]

  --admin URL      admin port; default: http://127.0.0.1:9901 (TIDEGATE_ADMIN)
  --token TOKEN    admin token; TIDEGATE_ADMIN_TOKEN keeps it out of the process list
  --once           print one frame and exit; the default if the output is not a terminal

Shows upstreams, the most restricted clients and the timeline. q or Ctrl-C exits. NO_COLOR disables colours.
`,
  help: `usage: tidegate help [COMMAND]
`,
  version: `usage: tidegate version
`,
};

export function helpText(topic?: CommandName): string {
  return topic === undefined ? OVERVIEW : TOPICS[topic];
}
