/** Tests a tunnel whose peer breaks the rules: the stream ends with an error, and all connections end. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { Carrier } from '../../../cli/tunnel/carrier.ts';
import { windowBytes } from '../../../cli/tunnel/conduit.ts';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { FrameWriter, Kind } from '../../../cli/tunnel/frames.ts';
import { program } from './ends.ts';

/** Gives a carrier these frames, and resolves to the reason why it ended. */
async function endOf(accepts: boolean, write: (writer: FrameWriter) => void): Promise<string> {
  const behind = await program((socket) => socket.on('error', () => undefined).pause());
  const { hostname, port } = new URL(`tcp://${behind.address}`);
  const counts = newCounts();
  const why = await new Promise<unknown>((resolve) => {
    const carrier = new Carrier({
      counts,
      report: () => undefined,
      ...(accepts && { accept: () => connect(Number(port), hostname) }),
      onOver: resolve,
    });
    carrier.open = true;
    const writer = new FrameWriter();
    write(writer);
    void carrier.read(
      (async function* () {
        while (!writer.isEmpty) yield { parts: writer.take() };
        // The stream stays open, because its end would be another reason to end the connection.
        await once(process, 'never', { signal: AbortSignal.timeout(60_000) });
      })(),
    );
  });
  await behind.close();
  // The sockets of this side close in one of the next iterations.
  while (counts.open > 0) await new Promise((resolve) => setImmediate(resolve));
  return why instanceof Error ? why.message : String(why);
}

test.each<[string, boolean, (writer: FrameWriter) => void, RegExp]>([
  ['an unknown kind', true, (writer) => writer.add(77, 1), /a frame of kind 77/],
  ['a connection to the listening end', false, (writer) => writer.add(Kind.open, 1), /may not/],
  [
    'the same connection twice',
    true,
    (writer) => {
      writer.add(Kind.open, 1);
      writer.add(Kind.open, 1);
    },
    /has opened connection 1, which it may not/,
  ],
  [
    'more data than the window',
    true,
    (writer) => {
      writer.add(Kind.open, 1);
      for (let i = 0; i < 8; i++) writer.data(1, Buffer.alloc(windowBytes));
    },
    /more than it may/,
  ],
  [
    'a confirmation of data that was not sent',
    true,
    (writer) => {
      writer.add(Kind.open, 1);
      writer.add(Kind.window, 1, 1);
    },
    /confirmed more than it was sent/,
  ],
])('%s', async (_name, accepts, write, why) => {
  expect(await endOf(accepts, write)).toMatch(why);
});

test('frames of connections that are gone have no effect', async () => {
  const ended = await endOf(true, (writer) => {
    for (const kind of [Kind.fin, Kind.reset, Kind.window]) writer.add(kind, 9);
    writer.data(9, Buffer.from('late'));
    writer.add(77, 1);
  });
  expect(ended).toMatch(/a frame of kind 77/);
});
