/**
 * The output of a call. Its messages go to stdout. An error with its details goes to stderr. With `-v`, the
 * negotiated session and all metadata that was sent and received go to stderr, too. With `--json` everything
 * goes to stdout, one line for each item. `rdma-rpc call` uses this file.
 */
import { Buffer } from 'node:buffer';
import pc from '#picocolors';
import { fromBinary, type JsonValue, toJson } from '#protobuf';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { toJson as ownToJson } from '../../runtime/codec/json/index.ts';
import { createRegistry } from '../../runtime/codec/wkt/any.ts';
import type { SecurityLevel } from '../../runtime/control/security-level.ts';
import type { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import type { ErrorDetail } from '../../runtime/core/errors/status-details.ts';
import type { Metadata, MetadataValue } from '../../runtime/core/metadata.ts';
import * as standardDetails from '../../runtime/details/index.ts';
import { jsonText, printable, printableLine } from '../output.ts';
import { declarationText } from './schema/declaration.ts';
import type { Schema } from './schema/schema.ts';
import type { FoundMethod } from './schema/suggest.ts';

interface OutputFlags {
  readonly json?: true;
  readonly verbose?: true;
  readonly emitDefaults?: true;
}

const textOf = (value: MetadataValue): string =>
  typeof value === 'string' ? value : Buffer.from(value).toString('base64');

/** Returns the values by key, in the order in which they arrived. Bytes are written as base64. */
function metadataJson(metadata: Iterable<readonly [string, MetadataValue]>): { [key: string]: string[] } {
  const all = new Map<string, string[]>();
  for (const [key, value] of metadata) all.set(key, [...(all.get(key) ?? []), textOf(value)]);
  return Object.fromEntries(all);
}

const standard = createRegistry(standardDetails);
const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;

/** The security of a session, and its meaning for calls. */
const promises: Readonly<Record<SecurityLevel, string>> = {
  none: "'none': the network must be trusted",
  peer: "'peer': calls pass as they are, and the queue pair is not bound",
  bound: "'bound': calls pass as they are, by a queue pair of the server",
  sealed: "'sealed': calls are encrypted",
};

export class CallReport {
  readonly #channel: Channel;
  readonly #schema: Schema;
  readonly #found: FoundMethod;
  readonly #flags: OutputFlags;
  readonly #tally = { requests: 0, requestBytes: 0, answers: 0, answerBytes: 0 };
  #began = 0;
  #trailer: Metadata | undefined;

  constructor(channel: Channel, schema: Schema, found: FoundMethod, flags: OutputFlags) {
    this.#channel = channel;
    this.#schema = schema;
    this.#found = found;
    this.#flags = flags;
  }

  begin(metadata: readonly [string, MetadataValue][]): void {
    this.#began = performance.now();
    const { method, registry } = this.#found;
    const session = this.#channel.session;
    if (session !== undefined) {
      const { peer, identity, security, fabric, device, exposure } = session;
      const at = device === fabric ? fabric : `${fabric} (${device})`;
      this.#note(`connected to ${peer} over ${at}, memory shown by ${exposure}`);
      const known =
        identity === undefined ? 'the identity of the server is unknown' : `the server is ${identity}`;
      this.#note(`the session is ${promises[security]}; ${known}`);
    }
    this.#note(declarationText(method, registry, 'alone'));
    this.#metadata('sent', metadata);
  }

  sent(bytes: Uint8Array): void {
    ++this.#tally.requests;
    this.#tally.requestBytes += bytes.byteLength;
  }

  header(header: Metadata): void {
    this.#event({ header: metadataJson(header) });
    this.#metadata('header', header);
  }

  trailer(trailer: Metadata): void {
    this.#trailer = trailer;
    this.#metadata('trailer', trailer);
  }

  /** Throws an Error when the bytes are not a message of the response's type. */
  message(bytes: Uint8Array): void {
    ++this.#tally.answers;
    this.#tally.answerBytes += bytes.byteLength;
    const { method, registry } = this.#found;
    let json: JsonValue;
    try {
      const alwaysEmitImplicit = this.#flags.emitDefaults === true;
      json = toJson(method.output, fromBinary(method.output, bytes), { registry, alwaysEmitImplicit });
    } catch (error) {
      throw new Error(`an answer of ${bytes.byteLength} bytes cannot be shown: ${(error as Error).message}`);
    }
    if (this.#flags.json === true) this.#event({ message: json });
    else console.log(jsonText(json, method.proto.serverStreaming ? 0 : 2));
  }

  succeeded(): void {
    this.#event({ status: { code: 'OK', trailer: metadataJson(this.#trailer ?? []) } });
    this.#sum('OK');
  }

  async failed(error: RpcError): Promise<void> {
    const { codeName: code, rawMessage: message, trailer: metadata } = error;
    const details: JsonValue[] = [];
    for (const { type, value } of error.details) {
      const known = await this.#detail({ type, value });
      details.push({ type, ...(known === undefined ? { bytes: textOf(value) } : { value: known }) });
    }
    const trailer = metadataJson(this.#trailer ?? metadata);
    if (this.#flags.json === true) return this.#event({ status: { code, message, details, trailer } });
    console.error(pc.red(`error: ${printableLine(error.message)}`));
    for (const [i, { type, value }] of error.details.entries()) {
      const known = (details[i] as { value?: JsonValue }).value;
      const text = known === undefined ? `${value.byteLength} bytes: ${textOf(value)}` : jsonText(known);
      console.error(printable(`  ${type} ${text}`));
    }
    // With -v, the trailer of a response has already been printed.
    if (this.#flags.verbose !== true || this.#trailer === undefined)
      this.#lines('trailer', this.#trailer ?? metadata);
    this.#sum(code);
  }

  /** Returns a detail as JSON if its type is known, either from the schema or as a type of google.rpc. */
  async #detail({ type, value }: ErrorDetail): Promise<JsonValue | undefined> {
    try {
      const { registry } = this.#found;
      const message =
        registry.getMessage(type) ??
        (standard.find(type) === undefined
          ? (await this.#schema.declaring(type))?.getMessage(type)
          : undefined);
      if (message !== undefined) return toJson(message, fromBinary(message, value), { registry });
      const own = standard.find(type);
      return own === undefined ? undefined : (ownToJson(own, own.decode(value)) as JsonValue);
    } catch {
      // The sender has another version of the type, or the schema is unavailable. The bytes are printed, and
      // the other details follow.
      return undefined;
    }
  }

  #sum(status: string): void {
    const { requests, requestBytes, answers, answerBytes } = this.#tally;
    const sent = `${count(requests, 'request')} (${count(requestBytes, 'byte')})`;
    const received = `${count(answers, 'answer')} (${count(answerBytes, 'byte')})`;
    this.#note(`${status}: ${sent}, ${received}, ${(performance.now() - this.#began).toFixed(1)} ms`);
  }

  #event(event: object): void {
    if (this.#flags.json === true) console.log(jsonText(event));
  }

  #note(text: string): void {
    if (this.#flags.verbose === true) console.error(pc.dim(printable(text)));
  }

  #metadata(what: string, metadata: Iterable<readonly [string, MetadataValue]>): void {
    if (this.#flags.verbose === true) this.#lines(what, metadata);
  }

  /** Prints `key: value`, one line each, with bytes as base64, as in HTTP. */
  #lines(what: string, metadata: Iterable<readonly [string, MetadataValue]>): void {
    for (const [key, value] of metadata) console.error(pc.dim(printable(`${what} ${key}: ${textOf(value)}`)));
  }
}
