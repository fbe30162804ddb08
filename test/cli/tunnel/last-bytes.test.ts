/**
 * The stream between the ends of a tunnel ends early, as it does when one of them drains. When the stream
 * ends, a program has not taken its last bytes, or the last messages have not been read.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Carrier } from '../../../cli/tunnel/carrier.ts';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { FrameWriter, Kind } from '../../../cli/tunnel/frames.ts';
import { SlowProgram } from './slow-program.ts';

/** Sends data to a program (and its end when `fin` is set), and then ends the stream. */
async function endWith(program: SlowProgram, fin: boolean): Promise<{ broken: number }> {
  const counts = newCounts();
  const accept = (): Socket => program as unknown as Socket;
  const carrier = new Carrier({ counts, report: () => undefined, accept, onOver: () => undefined });
  carrier.open = true;
  const writer = new FrameWriter();
  writer.add(Kind.open, 1);
  writer.data(1, Buffer.from('the last bytes'));
  if (fin) writer.add(Kind.fin, 1);
  await carrier.read(
    (async function* () {
      yield { parts: writer.take().map((part) => Buffer.from(part)) };
      program.push(null);
      await once(program, 'end');
    })(),
  );
  return counts;
}

test('a connection that both programs have ended goes on until its last bytes are taken', async () => {
  const program = new SlowProgram();
  const counts = await endWith(program, true);
  expect(program.destroyed).toBe(false);
  const closed = once(program, 'close');
  program.takes[0]!();
  await closed;
  expect(program.writableFinished).toBe(true);
  expect(program.errored).toBe(null);
  expect(counts.broken).toBe(0);
});

test('a connection that the other side has not ended is broken', async () => {
  const program = new SlowProgram();
  const counts = await endWith(program, false);
  expect(program.destroyed).toBe(true);
  expect(counts.broken).toBe(1);
});

test('frames that arrived before the stream ended are read, although the stream takes no more', async () => {
  const program = new SlowProgram();
  const counts = newCounts();
  let over: unknown = 'not over';
  const carrier = new Carrier({
    counts,
    report: () => undefined,
    onOver: (error) => {
      over = error;
    },
  });
  carrier.open = true;
  carrier.carry(program as unknown as Socket);
  program.push(null);
  await once(program.resume(), 'end');
  const writer = new FrameWriter();
  writer.data(1, Buffer.from('the last bytes'));
  writer.add(Kind.fin, 1);
  // A stream that has ended stops its requests at once, and its reader gets the last responses afterwards.
  await carrier.return();
  expect(over).toBe('not over');
  const closed = once(program, 'close');
  await carrier.read(
    (async function* () {
      yield { parts: writer.take().map((part) => Buffer.from(part)) };
    })(),
  );
  expect(over).toBe(undefined);
  program.takes[0]!();
  await closed;
  expect(program.errored).toBe(null);
  expect(counts.broken).toBe(0);
});

test('a carrier that is asked for messages after its stream has ended gives its last ones, and is done', async () => {
  const options = { counts: newCounts(), report: () => undefined, onOver: () => undefined };
  const carrier = new Carrier(options);
  const none = (async function* (): AsyncGenerator<{ parts: Buffer[] }> {})();
  carrier.send(Kind.reset, 1);
  await carrier.read(none);
  expect(await carrier.next()).toMatchObject({ done: false });
  expect(await carrier.next()).toMatchObject({ done: true });
});
