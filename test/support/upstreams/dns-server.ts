/** A DNS server whose records the test changes, and a lookup that queries it. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { once } from 'node:events';
import type { DnsLookup } from '../../../src/http/upstream/dns-resolver.ts';
import { atEnd } from '../at-end.ts';

export interface DnsServer {
  /** The lookup for `startTidegate`. */
  readonly lookup: DnsLookup;
  /** Sets the IPv4 and IPv6 addresses of every name; 'silence' sends no response, 'failure' SERVFAIL. */
  names(addresses: readonly string[] | 'silence' | 'failure'): void;
  /** Number of A queries so far. */
  readonly asked: () => number;
}

const A = 1;
const AAAA = 28;
const SERVFAIL = 2;

/** Starts a UDP server with the same records for every name. Closed when the test ends. */
export async function startDns(first: readonly string[]): Promise<DnsServer> {
  let state: readonly string[] | 'silence' | 'failure' = first;
  let asked = 0;
  const socket = createSocket('udp4', (question, peer) => {
    const type = question.readUInt16BE(question.indexOf(0, 12) + 1);
    if (type === A) asked += 1;
    if (state !== 'silence') socket.send(answer(question, type, state), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  atEnd(() => {
    resolver.cancel();
    socket.close();
  });
  const lookup: DnsLookup = (hostname, done) => {
    resolver.resolve6(hostname, (noSix, six) => {
      resolver.resolve4(hostname, (noFour, four) => {
        const all = [
          ...(noSix === null ? six : []).map((address) => ({ address, family: 6 })),
          ...(noFour === null ? four : []).map((address) => ({ address, family: 4 })),
        ];
        done(all.length === 0 ? noFour : null, all);
      });
    });
  };
  return {
    lookup,
    names: (addresses) => {
      state = addresses;
    },
    asked: () => asked,
  };
}

/** Builds a response (RFC 1035 §4.1) with the question and a record of TTL 0 for each address of its type. */
function answer(question: Buffer, type: number, state: readonly string[] | 'failure'): Buffer {
  const end = question.indexOf(0, 12) + 5;
  const addresses = state === 'failure' ? [] : state.filter((each) => (type === AAAA) === each.includes(':'));
  const records = type === A || type === AAAA ? addresses.map((address) => record(type, bytesOf(address))) : [];
  const head = Buffer.alloc(12);
  question.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | (state === 'failure' ? SERVFAIL : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, question.subarray(12, end), ...records]);
}

function record(type: number, address: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0); // the name in the question
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(address.length, 10);
  return Buffer.concat([head, address]);
}

/** Supports IPv6 addresses without `::`, and `::1`. */
function bytesOf(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const groups =
    address === '::1' ? [0, 0, 0, 0, 0, 0, 0, 1] : address.split(':').map((group) => Number.parseInt(group, 16));
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
