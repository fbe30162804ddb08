/**
 * Load reports of servers: the message `xds.data.orca.v3.OrcaLoadReport` in the trailer of a response, as
 * gRPC and Envoy send and read it (gRPC A51). Servers write the reports (server/report-load.ts), and channels
 * with weighted round robin read them. The code is written by hand, because generated code is not part of the
 * main entry point.
 */
import { Buffer } from 'node:buffer';

/** The metadata key of reports. */
export const loadReportKey = 'endpoint-load-metrics-bin';

/** The load that a server reports. All values are at least 0; names and meanings are those of ORCA. */
export interface LoadReport {
  /** Share of the CPU time that the server may use; more than 1 beyond a soft limit. */
  readonly cpuUtilization?: number;
  /** Share of the memory, from 0 to 1. */
  readonly memUtilization?: number;
  /** The cost of this call, in units of the application. */
  readonly requestCost?: Readonly<Record<string, number>>;
  /** Shares of other resources, from 0 to 1. */
  readonly utilization?: Readonly<Record<string, number>>;
  /** Calls per second of the whole server. */
  readonly rpsFractional?: number;
  /** Failed calls per second of the whole server. */
  readonly eps?: number;
  /** Other figures of the application. */
  readonly namedMetrics?: Readonly<Record<string, number>>;
  /** Share of the capacity from the application's point of view; clients prefer it to `cpuUtilization`. */
  readonly applicationUtilization?: number;
}

/** Field numbers of the message. */
const doubles = {
  cpuUtilization: 1,
  memUtilization: 2,
  rpsFractional: 6,
  eps: 7,
  applicationUtilization: 9,
} as const;
const maps = { requestCost: 4, utilization: 5, namedMetrics: 8 } as const;
/** Calls per second as an integer, which servers sent before `rpsFractional`. */
const rpsField = 3;

/** Wire types of protobuf. */
const varint = 0;
const fixed64 = 1;
const lengthed = 2;
const fixed32 = 5;

function checkedDouble(name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return value;
  throw new RangeError(`load report: ${name}: ${String(value)} is not a number of at least 0`);
}

function varintBytes(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  bytes.push(value);
  return bytes;
}

function doubleField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = (field << 3) | fixed64;
  bytes.writeDoubleLE(value, 1);
  return bytes;
}

function entryField(field: number, key: string, value: number): Buffer {
  const name = Buffer.from(key);
  const entry = Buffer.concat([
    Buffer.from([(1 << 3) | lengthed, ...varintBytes(name.length)]),
    name,
    doubleField(2, value),
  ]);
  return Buffer.concat([Buffer.from([(field << 3) | lengthed, ...varintBytes(entry.length)]), entry]);
}

/** Returns the encoding of the message. Throws a RangeError for a value that is no number of at least 0. */
export function encodeLoadReport(report: LoadReport): Uint8Array {
  const fields: Buffer[] = [];
  for (const [name, field] of Object.entries(doubles) as [keyof typeof doubles, number][]) {
    const value = report[name];
    if (value !== undefined) fields.push(doubleField(field, checkedDouble(name, value)));
  }
  for (const [name, field] of Object.entries(maps) as [keyof typeof maps, number][])
    for (const [key, value] of Object.entries(report[name] ?? {}))
      fields.push(entryField(field, key, checkedDouble(`${name}.${key}`, value)));
  return Buffer.concat(fields);
}

/** The part of a report that weights need. */
export interface DecodedLoad {
  readonly qps: number;
  readonly eps: number;
  readonly utilization: number;
}

/** Reads fields one after another; `at` is -1 after malformed bytes. */
class Fields {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): boolean {
    return this.at >= 0 && this.at < this.#bytes.length;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10 && this.left; ++i, scale *= 128) {
      const byte = this.#bytes[this.at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    this.at = -1;
    return 0;
  }

  double(): number {
    const at = this.at;
    this.skip(8);
    return this.at < 0 ? 0 : this.#view.getFloat64(at, true);
  }

  skip(bytes: number): void {
    if (this.at >= 0) this.at = bytes > this.#bytes.length - this.at ? -1 : this.at + bytes;
  }
}

/**
 * Returns the report, or undefined for malformed bytes. Values below 0, values that are not numbers, and
 * missing values count as 0.
 */
export function decodeLoadReport(bytes: Uint8Array): DecodedLoad | undefined {
  const fields = new Fields(bytes);
  /** The names of the fields, by field number. */
  const known = new Float64Array(10);
  while (fields.left) {
    const tag = fields.varint();
    const field = tag >>> 3;
    let value = 0;
    switch (tag & 7) {
      case varint:
        value = fields.varint();
        break;
      case fixed64:
        value = fields.double();
        break;
      case lengthed:
        fields.skip(fields.varint());
        break;
      case fixed32:
        fields.skip(4);
        break;
      default:
        return undefined;
    }
    if (field === 0) return undefined;
    if (field < known.length) known[field] = Math.max(value, 0) || 0;
  }
  if (fields.at < 0) return undefined;
  return {
    qps: known[doubles.rpsFractional]! || known[rpsField]!,
    eps: known[doubles.eps]!,
    utilization: known[doubles.applicationUtilization]! || known[doubles.cpuUtilization]!,
  };
}
