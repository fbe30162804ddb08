/**
 * A server refuses a connection that its client believes to be ready. The server has run no call of the
 * connection, and the client knows that.
 */
import { type Duplex, duplexPair } from 'node:stream';
import { createClient, type ServerOptions, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientChannel } from '../../runtime/client/channel.ts';
import { decodeFrame, encodeFrame } from '../../runtime/control/link.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { Bed, caught, until } from './bed.ts';

/**
 * Channels to a server. The first connection to it holds back its `ready`, and the test writes other bytes in
 * its place.
 */
class Held {
  readonly log: EchoLog = { started: 0, aborted: [] };
  readonly server: RpcServer;
  readonly channel: ClientChannel;
  write: (frame: Buffer) => unknown = () => {};
  /** The server's end of the last connection. */
  far: Duplex | undefined;
  #dialled = 0;

  constructor(options: ServerOptions) {
    const { log } = this;
    this.server = new RpcServer(options, ['sim'])
      .add(EchoDefinition, echoHandlers(log))
      .add(StreamsDefinition, {
        /** The first connection brings nothing. */
        async *count() {
          if (++log.started > 1) yield { number: 7 };
          else await new Promise(() => {});
        },
      });
    this.channel = new ClientChannel({ address: 'held', fabrics: ['sim'], dial: () => this.#dial() }, {});
  }

  async #dial(): Promise<Duplex> {
    const [near, far] = duplexPair();
    this.far = far;
    this.server.accept(far, 'client');
    if (++this.#dialled > 1) return near;
    const write = near.write.bind(near) as (frame: Buffer) => boolean;
    this.write = write;
    near.write = ((frame: Buffer) => {
      const read = decodeFrame(frame.subarray(4));
      return typeof read === 'object' && read.type === 'ready' ? true : write(frame);
    }) as typeof near.write;
    return near;
  }

  async close(): Promise<void> {
    await this.channel.close();
    await this.server.shutdown({ graceMs: 0 });
  }
}

describe('a server that gets no `ready`', () => {
  // The limit of a handshake passes when the test decides, even on a busy machine.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('refuses no client whose request has run, whatever frame arrives instead', async () => {
    const held = new Held({});
    const ended = createClient(EchoDefinition, held.channel).behave({ text: 'hang' });
    await until(() => held.log.started === 1);
    held.write(encodeFrame({ type: 'ping' }));
    expect(await caught(ended)).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    expect(held.log.started).toBe(1);
    await held.close();
  });

  test('runs no call of a connection that it has refused, and the call runs once, on the next connection', async () => {
    const held = new Held({ handshakeTimeoutMs: 100 });
    await held.channel.ready();
    // The call is sent. The server's time limit for the handshake passes before the server has read anything.
    const answer = createClient(EchoDefinition, held.channel).echo({ number: 7 });
    vi.advanceTimersByTime(100);
    expect([(await answer).number, held.log.started]).toEqual([7, 1]);
    await held.close();
  });
});

describe('a server that refuses a connection after its handshake', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = new Bed();
    bed.start('one');
  });
  afterEach(() => bed.close());

  const message = 'nothing was received for 500 ms while other handshakes wait';
  const refusal = encodeFrame({ type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message });
  const bye = encodeFrame({ type: 'bye', reason: message });

  test('makes the client repeat a call with `waitForReady` each time, with a pause from the second time on', async () => {
    const channel = bed.channel(['one'], { backoffMs: 1 });
    const client = createClient(EchoDefinition, channel, { '*': { waitForReady: true } });
    await channel.ready();
    const states: string[] = [];
    channel.on('state', (state) => states.push(state));
    const ended = caught(client.behave({ text: 'hang' }));
    for (let times = 1; times <= 4; ++times) {
      await until(() => bed.at('one').log.started === times);
      bed.far('one').write(refusal);
    }
    await until(() => bed.at('one').log.started === 5);
    expect(states.filter((state) => state === 'failing')).toHaveLength(3);
    await channel.close();
    expect(await ended).toMatchObject({ code: Status.UNAVAILABLE });
  });

  test('makes the client repeat a stream with `waitForReady` each time', async () => {
    const channel = bed.channel(['one'], { backoffMs: 1 });
    const client = createClient(StreamsDefinition, channel, { '*': { waitForReady: true } });
    let started = 0;
    bed.at('one').server.add(StreamsDefinition, {
      async *count() {
        if (++started > 4) yield { number: 7 };
        else await new Promise(() => {});
      },
    });
    const next = client.count({ count: 1 })[Symbol.asyncIterator]().next();
    for (let times = 1; times <= 4; ++times) {
      await until(() => started === times);
      bed.far('one').write(refusal);
    }
    expect(await next).toMatchObject({ value: { number: 7 } });
  });

  test('makes the client repeat once a call without `waitForReady`', async () => {
    const channel = bed.channel(['one']);
    const client = createClient(EchoDefinition, channel);
    await channel.ready();
    const ended = client.behave({ text: 'hang' });
    await until(() => bed.at('one').log.started === 1);
    bed.far('one').write(refusal);
    await until(() => bed.at('one').log.started === 2);
    expect(bed.dialled).toHaveLength(2);
    // The client has repeated the call once, so the server has run it twice. A second refusal is final.
    bed.far('one').write(refusal);
    const error = await caught(ended);
    expect([error.code, error.processed]).toEqual([Status.UNAVAILABLE, 'no']);
    expect(error.message).toContain(message);
  });

  test('makes the client repeat the call on another idle connection of the channel', async () => {
    bed.start('two');
    const channel = bed.channel(['one', 'two']);
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    const client = createClient(EchoDefinition, channel);
    // Each connection has one call. Neither call ends by itself, so nothing happens on the other connection.
    for (let i = 0; i < 2; ++i) client.behave({ text: 'hang' }).catch(() => {});
    await until(() => bed.at('one').log.started === 1 && bed.at('two').log.started === 1);
    bed.far('one').write(refusal);
    await until(() => bed.at('two').log.started === 2);
    expect(bed.at('one').log.started).toBe(1);
  });

  test('makes the client repeat a stream with one request once', async () => {
    const held = new Held({});
    const client = createClient(StreamsDefinition, held.channel);
    const all = (async () => {
      const numbers: number[] = [];
      for await (const { number } of client.count({ count: 1 })) numbers.push(number);
      return numbers;
    })();
    await until(() => held.log.started === 1);
    held.far!.write(refusal);
    expect(await all).toEqual([7]);
    await held.close();
  });

  test('does not count a `bye` as a refusal', async () => {
    const channel = bed.channel(['one']);
    await channel.ready();
    const ended = createClient(EchoDefinition, channel).behave({ text: 'hang' });
    await until(() => bed.at('one').log.started === 1);
    bed.far('one').write(bye);
    const error = await caught(ended);
    expect([error.code, error.processed]).toEqual([Status.UNAVAILABLE, 'maybe']);
    expect(bed.dialled).toHaveLength(1);
  });
});
