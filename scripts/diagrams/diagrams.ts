/** The drawings of docs/ that show parts and arrows, by the name of their file. */
import type { Box, Diagram } from './draw-diagram.ts';

const LIFE_OF_A_REQUEST: Diagram = {
  title: 'The life of a request',
  description:
    "A request's body is read. The gate admits the request, or rejects it with a Retry-After. It is sent. If the outcome is settled, it is forwarded. If not, a retry is reserved. If the retry is granted, the request waits and is admitted again. If it is denied, the response at hand is forwarded, or the client gets an error that states what is known of the outcome.",
  height: 330,
  boxes: [
    { look: 'box', at: [8, 60, 154, 64], name: 'body', notes: ['kept, or streamed once'] },
    { look: 'box', at: [210, 60, 150, 64], name: 'admit', notes: ['a token, shared fairly'] },
    { look: 'box', at: [420, 60, 130, 64], name: 'send', notes: ['one attempt'] },
    { look: 'end', at: [690, 60, 150, 64], name: 'forward', notes: ['the response'] },
    { look: 'box', at: [412, 210, 146, 64], name: 'reserve', notes: ['safe? budget? in time?'] },
    { look: 'box', at: [210, 210, 150, 64], name: 'wait', notes: ['backoff or Retry-After'] },
    { look: 'rejection', at: [686, 210, 166, 64], name: 'report outcome', notes: ['502, 504 or unknown'] },
    { look: 'rejection', at: [210, 8, 150, 30], name: 'reject: Retry-After' },
  ],
  arrows: [
    'M162 92H208',
    'M360 92H418',
    'M550 92H688',
    'M285 60V40',
    'M485 124V208',
    'M412 242H362',
    'M285 210V126',
    'M558 232H640V108H688',
    'M558 256H684',
  ],
  labels: [
    { text: 'settled', at: [572, 84], anchor: 'start' },
    { text: 'worth another', at: [495, 164], anchor: 'start' },
    { text: 'attempt', at: [495, 179], anchor: 'start' },
    { text: 'denied', at: [568, 224], anchor: 'start' },
    { text: 'granted', at: [386, 234] },
    { text: 'a response at hand', at: [648, 170], anchor: 'start' },
    { text: 'no response', at: [568, 274], anchor: 'start' },
    {
      text: 'The client may disconnect at any point: its request is then cancelled at once.',
      at: [20, 312],
      anchor: 'start',
    },
  ],
};

const replica = (y: number): Box => ({
  look: 'box',
  at: [190, y, 190, 60],
  name: 'replica',
  notes: ['queue · leased tokens'],
});

const REPLICAS: Diagram = {
  title: 'Replicas that share a limit',
  description:
    'Clients send to three replicas. Each has a queue and leased tokens, and sends to the upstream when a token is due. About every 50 milliseconds, a replica calls Redis: it reports results and demand, and gets tokens with their times. Redis keeps the limit, and publishes cuts, blocks and holds to all replicas.',
  height: 330,
  boxes: [
    replica(20),
    replica(100),
    replica(180),
    { look: 'box', at: [690, 90, 150, 80], name: 'upstream', notes: ['one unknown limit'] },
    {
      look: 'end',
      at: [300, 268, 330, 54],
      name: 'Redis: the limit',
      notes: ['rate · pace · epoch · probe · order of clients'],
    },
  ],
  arrows: [
    'M95 112 185 52',
    'M95 116 185 128',
    'M95 122 185 205',
    'M382 50 686 112',
    'M382 130 686 130',
    'M382 210 686 148',
  ],
  exchanges: ['M285 244 350 265', 'M385 150C470 170 480 220 480 264', 'M384 62C600 90 590 200 580 264'],
  labels: [
    { text: 'clients', at: [60, 120], look: 'name' },
    { text: 'one pace, one share for each client', at: [535, 120] },
    { text: 'about every 50 ms:', at: [150, 268] },
    { text: 'results and demand →', at: [150, 285] },
    { text: '← tokens, each with its time', at: [150, 302] },
    { text: 'published to all:', at: [745, 290] },
    { text: 'cuts, blocks, holds of clients', at: [745, 307] },
  ],
};

const SIDECAR: Diagram = {
  title: 'A sidecar in front of Stripe',
  description:
    "On one machine or in one pod, the application's SDK sends HTTP requests to Tidegate on 127.0.0.1:8080. Tidegate paces them by the limits of the account and of the endpoint, sends them by HTTPS to api.stripe.com, and retries with the same key and the same bytes where that is safe. The live page and metrics are on 127.0.0.1:9901.",
  height: 230,
  frame: [12, 34, 560, 180],
  boxes: [
    { look: 'box', at: [36, 80, 150, 64], name: 'application', notes: ["Stripe's SDK"] },
    {
      look: 'box',
      at: [330, 56, 210, 112],
      name: 'Tidegate',
      notes: ['paces by each limit', 'retries where that is safe:', 'same key, same bytes', 'reports unknown outcomes'],
    },
    { look: 'box', at: [690, 80, 150, 64], name: 'Stripe', notes: ['api.stripe.com'] },
  ],
  arrows: ['M186 104H324', 'M330 124H192', 'M540 104H684', 'M690 124H546', 'M435 168V190'],
  labels: [
    { text: 'one machine, or one pod', at: [24, 24], anchor: 'start' },
    { text: 'http, 127.0.0.1:8080', at: [258, 94] },
    { text: 'response', at: [258, 144] },
    { text: 'https', at: [626, 94] },
    { text: 'page and metrics, 127.0.0.1:9901', at: [435, 206] },
  ],
};

const THREE_JUDGEMENTS: Diagram = {
  title: 'Three judgements of one outcome',
  description:
    'The outcome of an attempt is the head of a response or a failure. First the endpoint is judged: it works, it failed, or it is not to blame; a failing endpoint is ejected. Then the limits are judged: accepted, rejected, failed or no evidence; rates, quotas and client allowances change. Last the retry is judged: settled, retry or stop; the client gets a response, or another attempt is admitted.',
  height: 330,
  boxes: [
    { look: 'end', at: [8, 130, 150, 64], name: 'outcome', notes: ['a head, or a failure'] },
    {
      look: 'box',
      at: [220, 20, 230, 76],
      name: '1 · endpoint',
      notes: ['does this address work?', 'works · failed · not to blame'],
    },
    {
      look: 'box',
      at: [220, 124, 230, 76],
      name: '2 · limit',
      notes: ['what does it show about capacity?', 'accepted · rejected · failed · none'],
    },
    {
      look: 'box',
      at: [220, 228, 230, 76],
      name: '3 · retry',
      notes: ['is another attempt safe and useful?', 'settled · retry · stop'],
    },
    {
      look: 'end',
      at: [540, 26, 310, 64],
      name: 'eject or re-admit the endpoint',
      notes: ['core/endpoints/outlier-detection.ts'],
    },
    {
      look: 'end',
      at: [540, 130, 310, 64],
      name: 'rate, quota, block, client allowance',
      notes: ['core/admission/record-outcome.ts'],
    },
    {
      look: 'end',
      at: [540, 234, 310, 64],
      name: 'forward, retry or report',
      notes: ['core/retry/choose-retry.ts'],
    },
  ],
  arrows: [
    'M158 150C190 150 186 58 218 58',
    'M158 162H218',
    'M158 174C190 174 186 266 218 266',
    'M450 58H538',
    'M450 162H538',
    'M450 266H538',
  ],
  labels: [],
};

export const DIAGRAMS: Readonly<Record<string, Diagram>> = {
  'life-of-a-request': LIFE_OF_A_REQUEST,
  replicas: REPLICAS,
  sidecar: SIDECAR,
  'three-judgements': THREE_JUDGEMENTS,
};
