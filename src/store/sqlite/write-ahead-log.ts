import { closeSync, openSync, readSync } from 'node:fs';

/** The format of the write-ahead log: https://sqlite.org/walformat.html */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The lowest bit: whether checksums are of words with the most significant byte first. */
const MAGIC = 0x377f0682;
const VERSION = 3_007_000;

/** A write-ahead log that nobody writes. */
export type LogContents = { readonly problem: 'missing' | 'empty' | 'header' } | RecoverableLog;

export interface RecoverableLog {
  readonly problem?: undefined;
  /** SQLite recovers so many: up to the last whole transaction before the first frame that is not valid. */
  readonly recovered: number;
  /** Transactions after these of which a part is still there. SQLite ignores them. */
  readonly unreachable: number;
}

type Checksum = readonly [number, number];

export function readWriteAheadLog(file: string): LogContents {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { problem: 'missing' };
    throw error;
  }
  try {
    return readFrames(handle);
  } finally {
    closeSync(handle);
  }
}

function readFrames(handle: number): LogContents {
  const header = Buffer.alloc(HEADER_BYTES);
  const length = readSync(handle, header);
  if (length === 0) return { problem: 'empty' };
  const isBigEndian = header.readUInt32BE(0) === MAGIC + 1;
  const pageSize = header.readUInt32BE(8);
  const isKnown = (isBigEndian || header.readUInt32BE(0) === MAGIC) && header.readUInt32BE(4) === VERSION;
  if (length < HEADER_BYTES || !isKnown || pageSize < 512 || pageSize > 65_536) return { problem: 'header' };
  let last = addToChecksum([0, 0], header.subarray(0, 24), isBigEndian);
  if (!isChecksum(last, header, 24)) return { problem: 'header' };

  const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageSize);
  let count = 0;
  let recovered = 0;
  let unreachable = 0;
  let seen = 0; // commits after the first frame that is not valid, whether they are valid or not
  let isChainWhole = true;
  while (readSync(handle, frame) === frame.length) {
    count += 1;
    const isOfThisLog = frame.compare(header, 16, 24, 8, 16) === 0; // older logs leave their frames behind
    const isCommit = isOfThisLog && frame.readUInt32BE(4) > 0;
    const sum = addToChecksum(
      addToChecksum(last, frame.subarray(0, 8), isBigEndian),
      frame.subarray(FRAME_HEADER_BYTES),
      isBigEndian,
    );
    const isValid = isOfThisLog && isChecksum(sum, frame, 16) && frame.readUInt32BE(0) > 0;
    isChainWhole &&= isValid;
    if (isChainWhole) {
      if (isCommit) recovered = count;
    } else if (isCommit) {
      seen += 1;
      if (isValid) unreachable = seen;
    }
    last = [frame.readUInt32BE(16), frame.readUInt32BE(20)]; // each frame continues the checksum that is stored before it
  }
  return { recovered, unreachable };
}

function addToChecksum([first, second]: Checksum, bytes: Buffer, isBigEndian: boolean): Checksum {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let a = first | 0;
  let b = second | 0;
  for (let i = 0; i < bytes.length; i += 8) {
    a = (a + view.getInt32(i, !isBigEndian) + b) | 0;
    b = (b + view.getInt32(i + 4, !isBigEndian) + a) | 0;
  }
  return [a, b];
}

function isChecksum([first, second]: Checksum, bytes: Buffer, at: number): boolean {
  return bytes.readInt32BE(at) === (first | 0) && bytes.readInt32BE(at + 4) === (second | 0);
}
