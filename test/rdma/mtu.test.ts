/**
 * The MTU of the wire shrinks and grows again under load, in a guest with soft-RoCE. Packets of a session
 * that was made before are then too long, so that the session ends. Each time, the later calls need a session
 * with the current MTU. docs/internals/drivers.md ("Soft-RoCE keeps the MTU of its connections") says how the
 * session ends, and how long that takes.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { clientDevice, endAll, pattern, reach, same, startServer, until } from './pair.ts';

const isRxe = process.env.RDMA_VM === 'rxe';
const whyNot = isRxe ? '' : 'not run: only in a guest with soft-RoCE, whose packets are not those of TCP';

async function setMtu(bytes: number): Promise<void> {
  for (const end of ['v0', 'v1'])
    await promisify(execFile)('ip', ['link', 'set', end, 'mtu', String(bytes)], { timeout: 45_000 });
}

afterEach(async (context) => {
  await endAll(context);
  if (isRxe) await setMtu(9000);
});

/** The tests run with the default options, and with options that detect a dead connection soon. */
const waits = [
  ['as by default', {}],
  ['short', { ackTimeout: 14, retryCount: 4 }],
] as const;

describe.skipIf(whyNot !== '')(`the MTU changes under load${whyNot && ` (${whyNot})`}`, () => {
  test.each(waits)('9000, 1500 and 9000 again: calls work each time (ackTimeout %s)', async (name, verbs) => {
    const server = await startServer();
    const { client } = reach(server.address, { fabric: 'verbs', verbs: { device: clientDevice, ...verbs } });
    let over = false;
    /** Small calls fit into packets of either size, so only the answers of large ones are counted. */
    let right = 0;
    let wrong = 0;
    const load = Array.from({ length: 4 }, async (_, number) => {
      const payload = number % 2 === 0 ? pattern(64 * 1024, number) : new Uint8Array();
      while (!over) {
        await client.echo({ number, payload }).then(
          (answer) => {
            if (!same(answer.payload, payload)) ++wrong;
            else if (payload.length > 0) ++right;
          },
          () => undefined,
        );
      }
    });
    const goesOn = async (): Promise<void> => {
      const before = right;
      await until(
        () => right,
        (calls) => calls > before + 10,
      );
    };
    await goesOn();
    const tookMs: number[] = [];
    for (const mtu of [1500, 9000, 1500, 9000]) {
      await setMtu(mtu);
      const beginMs = performance.now();
      await goesOn();
      tookMs.push(Math.round(performance.now() - beginMs));
    }
    over = true;
    await Promise.all(load);
    console.log(`ackTimeout ${name}: 10 large calls after each change took ${tookMs.join(', ')} ms`);
    expect(wrong).toBe(0);
  });
});
