/** A record of texts and bytes: version, number of texts, each text with its length (as varints, UTF-8), and the bytes as they are. */
export interface TextRecord {
  readonly texts: readonly string[];
  readonly bytes: Buffer;
}

/** The first byte of a record, unless another is given. */
const VERSION = 1;

export function encodeTextRecord({ texts, bytes: rest }: TextRecord, version = VERSION): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const size = lengths.reduce((sum, length) => sum + varintBytes(length) + length, 1 + varintBytes(texts.length));
  const bytes = Buffer.allocUnsafe(size + rest.length);
  let at = bytes.writeUInt8(version);
  at = writeVarint(bytes, texts.length, at);
  for (const [i, text] of texts.entries()) {
    at = writeVarint(bytes, lengths[i] ?? 0, at);
    at += bytes.write(text, at);
  }
  rest.copy(bytes, at);
  return bytes;
}

/** Undefined if the bytes are no record of this version, or one with fewer texts. */
export function decodeTextRecord(bytes: Buffer, minTexts: number, version = VERSION): TextRecord | undefined {
  const reader = new TextReader(bytes);
  if (bytes[0] !== version) return undefined;
  const count = reader.varint();
  if (count === undefined || count < minTexts || count > bytes.length) return undefined;
  const texts: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const text = reader.text();
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return { texts, bytes: reader.rest() };
}

class TextReader {
  readonly #bytes: Buffer;
  #at = 1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  varint(): number | undefined {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) return undefined;
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return undefined;
  }

  text(): string | undefined {
    const length = this.varint();
    if (length === undefined || this.#at + length > this.#bytes.length) return undefined;
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#at);
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

/** @returns where the next byte goes */
function writeVarint(bytes: Buffer, value: number, at: number): number {
  let next = at;
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) next = bytes.writeUInt8((rest % 128) + 128, next);
  return bytes.writeUInt8(rest, next);
}
