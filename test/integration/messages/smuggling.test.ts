/**
 * Request smuggling in published forms (Linhart et al. 2005; Kettle 2019, 2021 and 2025; Klein 2020;
 * Jabiyev et al. 2021; Weikop 2025; the tools smuggler, HTTP Request Smuggler and Http11Probe). Whatever is sent, the
 * upstream, which parses strictly, sees no request except those that a strict parser finds in it.
 */
import { describe, expect, test } from 'vitest';
import { openRaw, sendRaw } from '../../support/clients/raw-socket.ts';
import type { AttackTarget } from '../../support/proxy/attack-harness.ts';
import { runAttack } from '../../support/proxy/attack-harness.ts';
import { readResponses } from '../../support/clients/strict-http.ts';

const HIDDEN = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const post = (headers: string, body: string) => `POST /first HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`;
const byte = (code: number) => String.fromCharCode(code);
const hex = (text: string) => text.length.toString(16);

/** Sends the bytes and a tail, and reads everything until the connection closes. */
async function ask({ gate }: AttackTarget, bytes: string): Promise<{ statuses: number[]; isWhole: boolean }> {
  const client = await openRaw(gate.url);
  client.write(bytes);
  // A valid request leaves the connection open: this closes it in any case.
  client.write('\r\n\r\nEND\r\n\r\n');
  const responses = readResponses(await client.ended(10_000), ['POST']);
  return {
    statuses: responses.map(({ status }) => status),
    isWhole: responses.every((response) => response.isWhole),
  };
}

/** Expects that each is rejected, and that nothing of it reaches the upstream. */
async function expectRefused(payloads: readonly (readonly [name: string, bytes: string])[]): Promise<void> {
  await runAttack({}, async (attack) => {
    for (let i = 0; i < payloads.length; i += 16) {
      const some = payloads.slice(i, i + 16);
      const results = await Promise.all(some.map(async ([name, bytes]) => ({ name, ...(await ask(attack, bytes)) })));
      expect(results).toEqual(some.map(([name]) => ({ name, statuses: [400], isWhole: true })));
      expect(attack.reached()).toEqual([]);
    }
  });
}

/** Expects that each is forwarded as one request with this body. */
async function expectOneRequest(payloads: readonly (readonly [name: string, bytes: string, body: string])[]) {
  await runAttack({}, async (attack) => {
    for (const [name, bytes, body] of payloads) {
      const before = attack.reached().length;
      const { statuses } = await ask(attack, bytes);
      expect([name, statuses]).toEqual([name, [200, 400]]);
      const reached = attack.reached().slice(before);
      expect([name, reached.map((request) => [request.target, request.body])]).toEqual([name, [['/first', body]]]);
    }
  });
}

/** Bytes to place around the name, the colon and the value, one at a time. */
const SPECIAL = [...Array.from({ length: 32 }, (_, code) => code), 0x20, 0x7f, 0x80, 0x85, 0xa0, 0xff];

/** Forms of Transfer-Encoding that only some parsers recognize. */
const ENCODINGS: readonly (readonly [string, string])[] = [
  ['plain', 'Transfer-Encoding: chunked'],
  ['in capitals', 'TRANSFER-ENCODING: CHUNKED'],
  ['in both', 'tRANSFER-ENCODING: cHuNkeD'],
  ['no space', 'Transfer-Encoding:chunked'],
  ['two spaces', 'Transfer-Encoding:  chunked'],
  ['a tab', 'Transfer-Encoding:\tchunked'],
  ['a tab behind', 'Transfer-Encoding: chunked\t'],
  ['a space behind', 'Transfer-Encoding: chunked '],
  ['a space before the colon', 'Transfer-Encoding : chunked'],
  ['tabs around the colon', 'Transfer-Encoding\t:\tchunked'],
  ['junk before the colon', 'Transfer-Encoding x: chunked'],
  ['a space for the hyphen', 'Transfer Encoding: chunked'],
  ['an underscore for the hyphen', 'Transfer_Encoding: chunked'],
  ['a backslash for the hyphen', 'Transfer\\Encoding: chunked'],
  ['an accent in the name', 'Transf\x82r-Encoding: chunked'],
  ['an accent in the value', 'Transfer-Encoding: ch\x96nked'],
  ['a CR in the name', 'Tra\rnsfer-Encoding: chunked'],
  ['a CR behind the value', 'Transfer-Encoding: chunked\r'],
  ['a CR before the name', 'Foo: bar\r\n\rTransfer-Encoding: chunked'],
  ['behind a CR', 'Foo: bar\rTransfer-Encoding: chunked'],
  ['behind an LF', 'Foo: bar\nTransfer-Encoding: chunked'],
  ['before an LF', 'Transfer-Encoding: chunked\nFoo: bar'],
  ['behind an empty line of LF', 'Foo: bar\n\nTransfer-Encoding: chunked'],
  ['a folded value', 'Transfer-Encoding:\r\n chunked'],
  ['a value folded by a tab', 'Transfer-Encoding:\r\n\tchunked'],
  ['a value folded by a bare LF', 'Transfer-Encoding:\n chunked'],
  ['a value folded by a vertical tab', 'Transfer-Encoding:\n\x0bchunked'],
  ['a folded colon', 'Transfer-Encoding\r\n : chunked'],
  ['a fold of another', 'Foo: bar\r\n Transfer-Encoding: chunked'],
  ['a fold of another by a tab', 'Foo: bar\r\n\tTransfer-Encoding: chunked'],
  ['quoted', 'Transfer-Encoding: "chunked"'],
  ['in apostrophes', "Transfer-Encoding: 'chunked'"],
  ['a part of it', 'Transfer-Encoding: chunk'],
  ['more than it', 'Transfer-Encoding: xchunked'],
  ['chunked and more', 'Transfer-Encoding: chunked, cow'],
  ['more and chunked', 'Transfer-Encoding: cow, chunked'],
  ['within others', 'Transfer-Encoding: identity, chunked, identity'],
  ['twice', 'Transfer-Encoding: chunked, chunked'],
  ['with empty elements', 'Transfer-Encoding: ,chunked,'],
  ['not by commas', 'Transfer-Encoding: cow chunked bar'],
  ['with a parameter', 'Transfer-Encoding: chunked;a=b'],
  ['two of them', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
  ['two that differ', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
  ['two that differ, in turn', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'],
  ['two in another case', 'Transfer-Encoding: chunked\r\nTransfer-encoding: cow'],
  ['identity', 'Transfer-Encoding: identity'],
  ['gzip', 'Transfer-Encoding: gzip'],
  ['nothing', 'Transfer-Encoding: '],
  ['hidden from the next hop', 'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked'],
  ['without a name', ': chunked\r\nTransfer-Encoding: chunked'],
  ['without a colon', 'Foo\r\nTransfer-Encoding: chunked'],
];

describe('a length beside a Transfer-Encoding that some parsers miss is rejected', () => {
  const clTe = (line: string) => {
    const body = `0\r\n\r\n${HIDDEN}`;
    return post(`Content-Length: ${body.length}\r\n${line}\r\n`, body);
  };
  const teCl = (line: string) => {
    const size = `${hex(HIDDEN)}\r\n`;
    return post(`${line}\r\nContent-Length: ${size.length}\r\n`, `${size}${HIDDEN}\r\n0\r\n\r\n`);
  };

  test('CL.TE', () => expectRefused(ENCODINGS.map(([name, line]) => [name, clTe(line)])));

  test('TE.CL', () => expectRefused(ENCODINGS.map(([name, line]) => [name, teCl(line)])));

  test.each([
    ['before the name', (code: number) => `${byte(code)}Transfer-Encoding: chunked`],
    ['after the name', (code: number) => `Transfer-Encoding${byte(code)}: chunked`],
    ['before the value', (code: number) => `Transfer-Encoding:${byte(code)}chunked`],
    ['after the value', (code: number) => `Transfer-Encoding: chunked${byte(code)}`],
    ['after the value of another', (code: number) => `Foo: bar${byte(code)}Transfer-Encoding: chunked`],
  ])('any special byte %s', async (place, line) => {
    // Within another header's value, non-ASCII bytes, tabs and spaces are valid.
    const isSound = (code: number) => place.endsWith('another') && (code === 9 || code === 32 || code >= 0x80);
    const name = (code: number) => code.toString(16);
    await expectRefused(
      SPECIAL.filter((code) => !isSound(code)).flatMap((code) => [
        [`${name(code)} CL.TE`, clTe(line(code))],
        [`${name(code)} TE.CL`, teCl(line(code))],
      ]),
    );
  });

  test('forwards a mere lookalike as an ordinary header, and uses the length', async () => {
    const body = `0\r\n\r\n${HIDDEN}`;
    await expectOneRequest(
      ['Content-Encoding: chunked', 'Transfer-%45ncoding: chunked', 'X-Transfer-Encoding: chunked', 'TE: chunked'].map(
        (line) => [line, clTe(line), body],
      ),
    );
  });
});

describe('Transfer-Encoding alone is rejected', () => {
  const chunks = `5\r\nhello\r\n0\r\n\r\n`;

  test('when it is not plainly chunked', async () => {
    const sound = new Set(['plain', 'in capitals', 'in both', 'no space', 'two spaces', 'a tab', 'a tab behind']);
    await expectRefused(
      ENCODINGS.filter(([name]) => !sound.has(name) && name !== 'a space behind' && !name.startsWith('hidden'))
        // No parser takes it for Transfer-Encoding: what follows is no body, and is rejected as a request.
        .map(([name, line]) => [name, post(`${line}\r\n`, chunks + HIDDEN)]),
    );
  });

  test('in HTTP/1.0, which does not define it (RFC 9112 §6.1)', () =>
    expectRefused(
      ['', 'Connection: keep-alive\r\n'].map((more) => [
        more,
        `POST /first HTTP/1.0\r\nHost: x\r\n${more}Transfer-Encoding: chunked\r\n\r\n${chunks}${HIDDEN}`,
      ]),
    ));
});

test('rejects two lengths, and invalid lengths', () =>
  expectRefused(
    [
      ['two that differ', 'Content-Length: 5\r\nContent-Length: 0'],
      ['two that differ, in turn', 'Content-Length: 0\r\nContent-Length: 5'],
      ['two equal', 'Content-Length: 5\r\nContent-Length: 5'],
      ['a list', 'Content-Length: 5, 5'],
      ['a list that differs', 'Content-Length: 5, 0'],
      ['an empty element', 'Content-Length: 5,'],
      ['negative', 'Content-Length: -5'],
      ['a plus', 'Content-Length: +5'],
      ['hexadecimal', 'Content-Length: 0x5'],
      ['octal', 'Content-Length: 0o5'],
      ['a fraction', 'Content-Length: 5.0'],
      ['an exponent', 'Content-Length: 5e0'],
      ['a separator', 'Content-Length: 5_0'],
      ['a space within', 'Content-Length: 5 0'],
      ['in quotes', 'Content-Length: "5"'],
      ['not ASCII', 'Content-Length: \xb2'],
      ['nothing', 'Content-Length:'],
      ['a space before the colon', 'Content-Length : 5'],
      ['an underscore', 'Content_Length: 0\r\nContent-Length: 5'],
      ['folded', 'Content-Length:\r\n 5'],
      ['folded by a bare LF', 'Content-Length:\n 5'],
      ['more than 64 bits', 'Content-Length: 18446744073709551621'],
      ['more than 128 bits', `Content-Length: ${'9'.repeat(40)}`],
      ['a thousand digits', `Content-Length: ${'0'.repeat(1000)}${'9'.repeat(1000)}`],
      ['a null byte behind', 'Content-Length: 5\0'],
    ].map(([name = '', lines]) => [name, post(`${lines}\r\n`, `hello${HIDDEN}`)] as const),
  ));

test('rejects two Hosts, none, and an invalid one', async () => {
  await runAttack({}, async (attack) => {
    const hosts = [
      ['none', ''],
      ['two', 'Host: x\r\nHost: y\r\n'],
      ['two equal', 'Host: x\r\nHost: x\r\n'],
      ['two in another case', 'Host: x\r\nhOST: x\r\n'],
      ['a list', 'Host: x, y\r\n'],
      ['a space before the colon', 'Host : x\r\n'],
      ['folded', 'Host:\r\n x\r\n'],
      ['a space within', 'Host: x y\r\n'],
      ['a path', 'Host: x/y\r\n'],
      ['a user', 'Host: u@x\r\n'],
      ['a query', 'Host: x?y\r\n'],
      ['a fragment', 'Host: x#y\r\n'],
      ['a scheme', 'Host: http://x\r\n'],
      ['a port that is none', 'Host: x:http\r\n'],
      ['two ports', 'Host: x:1:2\r\n'],
      ['a port of many digits', 'Host: x:123456\r\n'],
      ['half a bracket', 'Host: [::1\r\n'],
      ['a name in brackets', 'Host: [zz]\r\n'],
      ['a number in brackets', 'Host: [1]\r\n'],
      ['an IPv4 address in brackets', 'Host: [127.0.0.1]\r\n'],
      ['an IPv6 address with a zone', 'Host: [::1%25eth0]\r\n'],
      ['an address of a version to come', 'Host: [v1.x]\r\n'],
      ['an IPv6 address without brackets', 'Host: ::1\r\n'],
      ['a quote', 'Host: x"y\r\n'],
      ['markup', 'Host: <x>\r\n'],
      ['bad encoding', 'Host: x%zz\r\n'],
      ['a backslash', 'Host: x\\y\r\n'],
      ['not ASCII', 'Host: caf\xe9\r\n'],
      ['a null byte', 'Host: x\0\r\n'],
      ['a control character', 'Host: x\x01\r\n'],
    ] as const;
    for (const [name, lines] of hosts) {
      const { statuses } = await ask(attack, `GET /first HTTP/1.1\r\n${lines}\r\n`);
      expect([name, statuses[0], attack.reached()]).toEqual([name, 400, []]);
    }
  });
});

describe('chunks', () => {
  const chunked = (body: string) => post('Transfer-Encoding: chunked\r\n', body);
  const sized = (size: string) => chunked(`${size}\r\nhello\r\n0\r\n\r\n${HIDDEN}`);

  test('with an invalid size are rejected', () =>
    expectRefused(
      [
        '0x5',
        '0X5',
        '+5',
        '-5',
        ' 5',
        '\t5',
        '5_0',
        '5.0',
        '5,5',
        '5h',
        'g',
        '',
        '"5"',
        '\xb2',
        '5\0',
        '\x005',
        '5 5',
      ].map((size) => [JSON.stringify(size), sized(size)]),
    ));

  test('with a size of more than 64 bits are rejected', () =>
    expectRefused(['10000000000000005', '1'.repeat(100), '100000000000000000000'].map((size) => [size, sized(size)])));

  test('with other line endings are rejected', () =>
    expectRefused([
      ['LF behind the size', chunked(`5\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['CR behind the size', chunked(`5\rhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['CR and another behind the size', chunked(`5\rXhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['LF CR behind the size', chunked(`5\n\rhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['LF behind the data', chunked(`5\r\nhello\n0\r\n\r\n${HIDDEN}`)],
      ['CR behind the data', chunked(`5\r\nhello\r0\r\n\r\n${HIDDEN}`)],
      ['nothing behind the data', chunked(`5\r\nhello0\r\n\r\n${HIDDEN}`)],
      ['two others behind the data', chunked(`5\r\nhelloXX0\r\n\r\n${HIDDEN}`)],
      ['more data than said', chunked(`4\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['LF behind the last size', chunked(`5\r\nhello\r\n0\n\r\n${HIDDEN}`)],
      ['LF behind the last line', chunked(`5\r\nhello\r\n0\r\n\n${HIDDEN}`)],
      ['LF all along', chunked(`5\nhello\n0\n\n${HIDDEN}`)],
      ['CR all along', chunked(`5\rhello\r0\r\r${HIDDEN}`)],
    ]));

  test('with a line hidden in an extension are rejected', () =>
    expectRefused([
      ['LF behind the semicolon', chunked(`5;\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['LF within a name', chunked(`5;a\nb\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['LF within a value', chunked(`5;a=b\nc\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['LF within quotes', chunked(`5;a="b\nc"\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['CR LF within quotes', chunked(`5;a="b\r\nc"\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['CR within a name', chunked(`5;a\rb\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['CR before the end', chunked(`5;a\r\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['a null byte', chunked(`5;a\0\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
      ['in the last', chunked(`5\r\nhello\r\n0;\n\r\n${HIDDEN}`)],
    ]));

  test('with invalid trailers are rejected', () =>
    expectRefused([
      ['a length', chunked(`5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n${HIDDEN}`)],
      ['a coding', chunked(`5\r\nhello\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n${HIDDEN}`)],
      ['a request', chunked(`5\r\nhello\r\n0\r\n${HIDDEN}`)],
      ['LF', chunked(`5\r\nhello\r\n0\r\nX: y\n\r\n${HIDDEN}`)],
      ['a fold', chunked(`5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n${HIDDEN}`)],
      ['a space before the colon', chunked(`5\r\nhello\r\n0\r\nX : y\r\n\r\n${HIDDEN}`)],
      ['a null byte', chunked(`5\r\nhello\r\n0\r\nX: \0\r\n\r\n${HIDDEN}`)],
    ]));

  test('that are unusual but valid are read as intended', () =>
    expectOneRequest([
      ['leading zeros', chunked('0005\r\nhello\r\n000\r\n\r\n'), 'hello'],
      ['capitals', chunked('A\r\nhellohello\r\n0\r\n\r\n'), 'hellohello'],
      ['an extension', chunked('5;a=b\r\nhello\r\n0\r\n\r\n'), 'hello'],
      ['a quoted extension', chunked('5;a="b;c"\r\nhello\r\n0\r\n\r\n'), 'hello'],
      ['an extension of the last', chunked('5\r\nhello\r\n0;a=b\r\n\r\n'), 'hello'],
      ['a Host among the trailers', chunked('5\r\nhello\r\n0\r\nHost: evil\r\n\r\n'), 'hello'],
      ['one byte each', chunked('1\r\nh\r\n1\r\ni\r\n0\r\n\r\n'), 'hi'],
      ['a request as data', chunked(`${hex(HIDDEN)}\r\n${HIDDEN}\r\n0\r\n\r\n`), HIDDEN],
    ]));
});

test('reads a body as a body, for any method and whatever it resembles', async () => {
  await runAttack({}, async (attack) => {
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'PUT', 'PATCH', 'TRACE', 'QUERY']) {
      for (const more of ['', 'Expect: 100-continue\r\n', 'Connection: Content-Length, Host\r\n', 'Upgrade: h2c\r\n']) {
        const head = `${method} /first HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${HIDDEN.length}\r\n\r\n`;
        const before = attack.reached().length;
        expect([method, more, (await ask(attack, head + HIDDEN)).statuses]).toEqual([method, more, [200, 400]]);
        const reached = attack.reached().slice(before);
        expect(reached).toMatchObject([{ method, target: '/first', body: HIDDEN }]);
      }
    }
  });
});

test('does not change the response before malformed data after a body', async () => {
  await runAttack({}, async ({ gate, reached }) => {
    const text = await sendRaw(gate.url, post('Content-Length: 5\r\n', `hello${HIDDEN.slice(1)}`));
    expect(readResponses(text, ['POST'])).toMatchObject([
      { status: 200, body: 'POST /first hello' },
      { status: 400, isWhole: true },
    ]);
    expect(reached()).toMatchObject([{ target: '/first', body: 'hello' }]);
  });
});

test('aborts the upstream request of a long upload that turns out malformed', async () => {
  await runAttack({}, async ({ gate, reached, upstream }) => {
    const client = await openRaw(gate.url);
    const chunk = `${hex('x'.repeat(40_000))}\r\n${'x'.repeat(40_000)}\r\n`;
    client.write(post('Transfer-Encoding: chunked\r\n', chunk.repeat(3)));
    client.write(`5\r\nhelloXX\r\n0\r\n\r\n${HIDDEN}`);
    const text = await client.ended(10_000);
    expect(readResponses(text, ['POST'])).toMatchObject([{ status: 400, isWhole: true }]);
    expect(reached()).toEqual([]);
    expect(upstream.faults).toEqual([]);
  });
});
