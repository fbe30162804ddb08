/**
 * Makes a server session with streams on a scripted native side. Tests send parts to it, correct ones and
 * wrong ones, and read its answers.
 */

import { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { KnownPeer } from '../../runtime/core/peer.ts';
import { EvKind, notRun } from '../../runtime/native/native.ts';
import { HandlerTable } from '../../runtime/server/handlers.ts';
import { Load } from '../../runtime/server/load.ts';
import { ServerSession } from '../../runtime/server/server-session.ts';
import { ServerStreams } from '../../runtime/server/stream/server-streams.ts';
import { PartFlag, PartHeader, PartKind, partHeader, pushMethod } from '../../runtime/stream/part-header.ts';
import type { FakeEvent } from '../runtime/fake-events.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { Item, type ItemInit, StreamsDefinition } from './gen/stream.rdma.ts';
import { newLog, type StreamLog, streamHandlers } from './streams-service.ts';

export type MethodName = keyof typeof StreamsDefinition.methods;

export interface PartAnswer {
  handle: number;
  status: number;
  notRun: boolean;
  /** The header of a PULL. */
  part: { sequence: number; count: number; last: boolean } | undefined;
  text: string;
}

/** Returns a part as an event. `handle` is the handle to which the server answers. */
export function part(
  handle: number,
  kind: number,
  given: { method?: MethodName; stream?: number; sequence?: number; count?: number; flags?: number } = {},
  message: Uint8Array = new Uint8Array(0),
): FakeEvent {
  const { method = 'echo', stream = 1, sequence = 0, count = 0, flags = 0 } = given;
  const id = kind === PartKind.push ? pushMethod : StreamsDefinition.methods[method].id | 0;
  const metadata = partHeader(stream, sequence, count, kind, flags).slice();
  return { kind: EvKind.request, call: handle, method: id, part: 1, metadata, message };
}

export const open = (handle: number, method: MethodName, stream = 1): FakeEvent =>
  part(handle, PartKind.open, { method, stream });
export const push = (handle: number, sequence: number, flags = 0): FakeEvent =>
  part(handle, PartKind.push, { sequence, flags });
export const pull = (handle: number, sequence: number, stream = 1): FakeEvent =>
  part(handle, PartKind.pull, { sequence, stream });
/** Returns a part with one message, which is not packed. */
export const pushOf = (handle: number, sequence: number, item: ItemInit): FakeEvent =>
  part(handle, PartKind.push, { sequence, count: 1 }, Item.encode(item));

export class StreamBed {
  readonly native: FakeNative;
  readonly streams: ServerStreams;
  readonly log: StreamLog = newLog();
  readonly load = new Load(100);

  constructor({ slots = 64, streamsMax = 4 } = {}) {
    this.native = new FakeNative({ slots });
    const context = new FabricContext('sim', this.native);
    const handlers = new HandlerTable();
    handlers.add(StreamsDefinition, streamHandlers(this.log));
    const number = context.sessions.create({
      role: 'server',
      inflightMax: 8,
      messageMaxBytes: 1e6,
      peerMessageMaxBytes: 1e6,
    });
    const target = { session: number, eagerBytes: 8192, messageMaxBytes: 1e6 };
    const from = { peer: new KnownPeer('alice'), account: undefined };
    const session = new ServerSession(context, target, from, handlers, this.load, {
      onHandlerError: () => undefined,
      onSessionDown: () => undefined,
    });
    this.streams = new ServerStreams(session.shared, streamsMax);
    session.makeParts = () => this.streams;
  }

  /** Returns the answers since the last call, oldest first. */
  async answers(): Promise<PartAnswer[]> {
    await new Promise((resolve) => setImmediate(resolve));
    this.native.flush();
    return this.native.submitted.splice(0).map(({ call, method, metadata, message }) => {
      const header = new PartHeader();
      const isPart = header.read(metadata, 0, metadata.length) === '';
      const { sequence, count, last } = header;
      return {
        handle: call,
        status: method & 0xff,
        notRun: (method & notRun) !== 0,
        part: isPart ? { sequence, count, last } : undefined,
        text: (method & 0xff) === 0 ? '' : Buffer.from(message).toString(),
      };
    });
  }
}

export const last: number = PartFlag.last;
